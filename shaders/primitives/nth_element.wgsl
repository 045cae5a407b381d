// The element that has the number of a finished radix select: the inverse of order() in sort_key. One thread.
struct Params { flip: u32 } // bits in which an element differs from its number
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> search: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(1)
fn nth_element() {
    let number = search[0];
    let key = number ^ params.flip;
#if FLOAT
    let float = select(~key, key ^ 0x80000000u, key >= 0x80000000u);
    // The number of every NaN; 0, which no float has, if there are no elements.
    output[0] = select(float, 0x7fc00000u, number == 0xffffffffu || number == 0u);
#else
    output[0] = key;
#endif
}
