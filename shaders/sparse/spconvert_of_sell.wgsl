// Length: the slots before the first padding of a row in its slice.
#import sparse/spconvert_first_padding

@group(0) @binding(2) var<storage, read> row_order: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;
@group(0) @binding(4) var<storage, read> slice_ptrs: array<u32>;
@group(0) @binding(5) var<storage, read> idxs: array<u32>;

fn length(place: u32) -> u32 {
    let first = min(slice_ptrs[place / params.width], params.sources);
    let last = clamp(slice_ptrs[place / params.width + 1u], first, params.sources);
    return before_padding(first + place % params.width, params.width, (last - first) / params.width);
}
