// Entry k of the row at a place of the order is in place k of that row of its slice.
@group(0) @binding(6) var<storage, read> places: array<u32>;
@group(0) @binding(7) var<storage, read> slice_ptrs: array<u32>;

fn source(row: u32, nth: u32) -> u32 {
    let place = places[row];
    return slice_ptrs[place / params.width] + nth * params.width + place % params.width;
}
