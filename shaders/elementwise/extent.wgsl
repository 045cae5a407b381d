// The elements that a walk covers: `params.n` or, LIMITED, as many of them as the device says; the importer's Params
// then has `first`, the elements of earlier dispatches.
#if LIMITED
const LENGTH_BINDING: u32 = 3u;
@group(0) @binding(LENGTH_BINDING) var<storage, read> length_of_all: array<u32>;

fn extent() -> u32 { return min(params.n, max(length_of_all[0], params.first) - params.first); }
#else
fn extent() -> u32 { return params.n; }
#endif
