// Reads and writes rows that do not fill their vec4s, element by element. Elements past the end of a row are 0.

// Declares `{name}_vec4` for rows of `dims` elements. The importer declares `{name}_element(row, at)`; `base` counts
// the vec4s before the binding.
#block ragged_vec4(name, dims, base)
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    let place = 4u * column + vec4(0u, 1u, 2u, 3u);
    let at = row * {dims} - 4u * params.{base} + min(place, vec4({dims} - 1u));
    let x = vec4(
#for e in x, y, z, w
        {name}_element(row, at.{e}),
#end
    );
    return select(vec4<f32>(), x, place < vec4({dims}));
}
#end

// Declares `{name}_eight` by `{name}_vec4`, for rows of `vec4s`.
#block ragged_eight(name, vec4s)
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let next = min(2u * eight + 1u, {vec4s} - 1u);
    return Eight({name}_vec4(row, 2u * eight), select(vec4<f32>(), {name}_vec4(row, next), next > 2u * eight));
}
#end

// Declares `store_element` for elements of `bits` bits. Rows may share a word: each thread writes its own bits.
#block shared_words(list, bits)
fn store_element(at: u32, code: u32) {
    let word = at / (32u / {bits}u);
    let shift = at % (32u / {bits}u) * {bits}u;
    let mask = ((1u << {bits}u) - 1u) << shift;
    atomicAnd(&{list}[word], ~mask);
    atomicOr(&{list}[word], (code << shift) & mask);
}
#end
