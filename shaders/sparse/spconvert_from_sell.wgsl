// Source: entry k of the row at a position is in slot k of that row of its slice.
@group(0) @binding(6) var<storage, read> places: array<u32>;
@group(0) @binding(7) var<storage, read> slice_ptrs: array<u32>;

fn source(row: u32, nth: u32) -> u32 {
    // If the order leaves a row out, any entry will do.
    let place = min(places[row], (params.rows - 1u) / params.width * params.width + (params.width - 1u));
    return slice_ptrs[place / params.width] + nth * params.width + place % params.width;
}
