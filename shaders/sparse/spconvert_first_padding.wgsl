// The number of entries of a row before its first padding, by binary search. Slot k is at `first + k * stride`.
fn before_padding(first: u32, stride: u32, width: u32) -> u32 {
    var low = 0u;
    var high = width;
    while low < high {
        let middle = low + (high - low) / 2u;
        if idxs[first + middle * stride] != PADDING {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}
