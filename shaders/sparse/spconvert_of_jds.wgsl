// Length: the number of diagonals longer than the row's position. Their lengths never rise.
@group(0) @binding(2) var<storage, read> row_order: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;
@group(0) @binding(4) var<storage, read> diagonal_ptrs: array<u32>;

fn length(place: u32) -> u32 {
    var low = 0u;
    var high = params.longest;
    while low < high {
        let middle = low + (high - low) / 2u;
        if diagonal_ptrs[middle + 1u] - diagonal_ptrs[middle] > place {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}
