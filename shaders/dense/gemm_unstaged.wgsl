// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers and both factors straight from storage:
// no workgroup memory and no barrier, for processors, whose caches serve the loads. A thread computes
// THREAD_M x THREAD_N elements of C, four steps of k at a time, a workgroup TILE_M x TILE_N. Requires f16 where T is
// f16. BYTES: an element is a word of four signed bytes along k.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c

const THREAD_M: u32 = 4u;
const THREAD_N: u32 = 4u;
const ACROSS: u32 = TILE_N / THREAD_N;
const LANES: u32 = TILE_M / THREAD_M * ACROSS;

// fn {name}: four elements of a factor from column `col` of row `row` on, as it is stored; of columns behind the last,
// that one.
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
#put four(four_a, a, base_a, VEC_A)
#put four(four_b, b, base_b, VEC_B)

// {x}{g}_0 to {x}{g}_3: group `g` of four rows of A or columns of B at steps i to i + 3.
#block steps(x, g, along)
#if {along}
#for j in 4
        let {x}{g}_along_{j} = four_{x}(min({x}_first + {4 * g + j}u, {x}_last), i, ld{x}, k_last);
#end
#for j in 4
        let {x}{g}_{j} = vec4({x}{g}_along_0[{j}], {x}{g}_along_1[{j}], {x}{g}_along_2[{j}], {x}{g}_along_3[{j}]);
#end
#else
#for j in 4
        let {x}{g}_{j} = four_{x}(i + {j}u, {x}_first + {4 * g}u, ld{x}, {x}_last);
#end
#endif
#end

// {x}{g}_0 alone, of a factor that is read element by element along k.
#block step(x, g, along)
#if {along}
        let {x}{g}_0 = vec4(
#for j in 4
            four_{x}(min({x}_first + {4 * g + j}u, {x}_last), i, ld{x}, i).x,
#end
        );
#else
        let {x}{g}_0 = four_{x}(i, {x}_first + {4 * g}u, ld{x}, {x}_last);
#endif
#end

#block multiply(count)
#for j in {count}
#for r in THREAD_M
#for g in THREAD_N / 4
#if BYTES
        c_{r}_{g} += vec4(
#for x in x, y, z, w
            dot4I8Packed(a{r / 4}_{j}[{r % 4}], b{g}_{j}.{x}),
#end
        );
#else
        c_{r}_{g} = fma(vec4(a{r / 4}_{j}[{r % 4}]), b{g}_{j}, c_{r}_{g});
#endif
#end
#end
#end
#end

@compute @workgroup_size(LANES)
fn gemm_unstaged(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
    let a_first = part.origin.x + local / ACROSS * THREAD_M;
    let b_first = part.origin.y + local % ACROSS * THREAD_N;
    let a_last = params.m - 1u;
    let b_last = params.n - 1u;
    if a_first > a_last || b_first > b_last { return; }
    let k_last = params.k - 1u;
    let lda = params.lda;
    let ldb = params.ldb;
#for r in THREAD_M
#for g in THREAD_N / 4
    var c_{r}_{g} = begin_four(a_first + {r}u, b_first + {4 * g}u);
#end
#end
    var i = part.first_k;
    for (; i + 3u < part.end_k; i += 4u) {
#for g in THREAD_M / 4
#put steps(a, {g}, !TRANS_A)
#end
#for g in THREAD_N / 4
#put steps(b, {g}, TRANS_B)
#end
#put multiply(4)
    }
    // With rows of vec4 along k there is no rest.
#if !(VEC_A && !TRANS_A || VEC_B && TRANS_B)
    for (; i < part.end_k; i++) {
#for g in THREAD_M / 4
#put step(a, {g}, !TRANS_A)
#end
#for g in THREAD_N / 4
#put step(b, {g}, TRANS_B)
#end
#put multiply(1)
    }
#endif
#for r in THREAD_M
#for g in THREAD_N / 4
    end_four(part.slice, a_first + {r}u, b_first + {4 * g}u, c_{r}_{g});
#end
#end
}
