// A matrix product with sums in registers and both factors straight from storage: its tiles. A thread computes
// THREAD_M x THREAD_N elements of C, four steps of k at a time, a workgroup TILE_M x TILE_N. Requires of the importer
// F, TILE_M and TILE_N, and the factors that are not matrices in memory (WALKED_a, WALKED_b).
const THREAD_M: u32 = 4u;
const THREAD_N: u32 = 4u;
const ACROSS: u32 = TILE_N / THREAD_N;
const LANES: u32 = TILE_M / THREAD_M * ACROSS;
const SIDE_a: u32 = THREAD_M;
const SIDE_b: u32 = THREAD_N;

// fn {name}: four elements of a factor from column `col` of row `row` on, as it is stored; of columns behind the
// last, that one.
#block four(name, x, base, vec)
fn {name}(row: u32, col: u32, ld: u32, last: u32) -> vec4<F> {
    let at = {base} + row * ld;
#if {vec}
    return vec4<F>({x}[(at + min(col, last)) / 4u]);
#else
    return vec4(
        F({x}[at + min(col, last)]), F({x}[at + min(col + 1u, last)]),
        F({x}[at + min(col + 2u, last)]), F({x}[at + min(col + 3u, last)]),
    );
#endif
}
#end
#if !WALKED_a
#put four(four_a, a, base_a, VEC_A)
#endif
#if !WALKED_b
#put four(four_b, b, base_b, VEC_B)
#endif
