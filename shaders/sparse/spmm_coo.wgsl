// C += alpha A B, A in COO sorted by row, without atomics: segmented sums (G. Blelloch et al. 1993). A team takes ITEMS
// entries, each lane a chunk of columns, and adds the rows that end among them. Its unfinished row is a carry (row,
// sums) for the next dispatch, whose terms are carries (PRODUCTS: without columns). A single team carries nothing. With
// ORDERED, `order` gives the index of each value.
#import sparse/spmm_params
#import sparse/spmm_result
#if !PRODUCTS
#import sparse/spmv_values
#import sparse/spmm_dense
#endif

const ITEMS: u32 = 64u;
const CARRY_ROWS_BINDING: u32 = 6u;
const CARRY_SUMS_BINDING: u32 = 7u;

@group(0) @binding(1) var<storage, read> row_idxs: array<u32>;
#if PRODUCTS
@group(0) @binding(2) var<storage, read> sums: array<Chunk>;
#else
@group(0) @binding(2) var<storage, read> col_idxs: array<u32>;
#endif
#if ORDERED
@group(0) @binding(6) var<storage, read> order: array<u32>;
#endif
#if CARRIES
@group(0) @binding(CARRY_ROWS_BINDING) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(CARRY_SUMS_BINDING) var<storage, read_write> carry_sums: array<Chunk>;
#endif

// The current row and its sum so far.
var<private> current: u32;
var<private> sum: Chunk;

// The contribution of an entry to its row.
fn term(i: u32) -> Chunk {
#if PRODUCTS
    return sums[i * params.chunks + chunk];
#else
#if ORDERED
    return product(value(min(order[i], params.entries - 1u)), col_idxs[i]);
#else
    return product(value(i), col_idxs[i]);
#endif
#endif
}

fn add(row: u32, total: Chunk) {
    if row < params.rows {
        c[row * params.stride_c + chunk] += params.alpha * total;
    }
}

// Adds the next term.
fn take(row: u32, next: Chunk) {
    if row != current {
        add(current, sum);
        current = row;
        sum = Chunk();
    }
    sum += next;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_coo(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let team = join_team(group, lane);
    if team >= params.parts || chunk >= params.chunks {
        return;
    }
    let first = team * ITEMS;
    let end = first + min(ITEMS, params.entries - first);
    current = row_idxs[first];
    sum = Chunk();
    for (var i = first; i < end; i += 4u) {
        // Four loads in flight. Beyond the end, the last term is loaded again and ignored.
        let places = vec4<u32>(i, i + 1u, i + 2u, i + 3u);
        let at = min(places, vec4<u32>(end - 1u));
        let inside = places < vec4<u32>(end);
        let rows = vec4<u32>(row_idxs[at.x], row_idxs[at.y], row_idxs[at.z], row_idxs[at.w]);
        let x = term(at.x);
        let y = select(Chunk(), term(at.y), inside.y);
        let z = select(Chunk(), term(at.z), inside.z);
        let w = select(Chunk(), term(at.w), inside.w);
        take(rows.x, x);
        take(rows.y, y);
        take(rows.z, z);
        take(rows.w, w);
    }
#if CARRIES
    carry_sums[team * params.chunks + chunk] = sum;
    if chunk == 0u {
        carry_rows[team] = current;
    }
#else
    add(current, sum);
#endif
}
