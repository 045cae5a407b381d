// Stores an array that may begin and end inside a word of PACK elements. Each word has one writer, which keeps elements
// outside the array.
const OUTPUT_BINDING: u32 = 2u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

#if HALVES
fn store_word(word: u32, first: u32, end: u32, a: f32, b: f32) {
    let bits = encode(a, b);
    let low = 2u * word >= first;
    let high = 2u * word + 1u < end;
    if low && high {
        output[word] = bits;
    } else {
        let mask = select(0u, 0xffffu, low) | select(0u, 0xffff0000u, high);
        output[word] = (output[word] & ~mask) | (bits & mask);
    }
}
#endif

// Stores `element(i)` for each element i of planes of h x w, from `origin` on. A thread stores one word.
#block write_words(element, origin, h, w)
    let first = params.{origin};
    let end = first + params.planes * params.{h} * params.{w};
    let word = first / PACK + workgroup_index(group) * WORKGROUP_SIZE + lane;
    if word > (end - 1u) / PACK {
        return;
    }
#if HALVES
    let a = max(2u * word, first);
    let b = min(2u * word + 1u, end - 1u);
    store_word(word, first, end, {element}(a - first), {element}(b - first));
#else
    output[word] = encode({element}(word - first), 0.0);
#endif
#end
