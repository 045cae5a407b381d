// Item i of an array that is made element by element: an element of 4 bytes or, with PACKED, the PACK elements of BITS
// bits of a word, which keeps the rest where the array fills it only in part. The importer declares `params.n`, the
// number of elements, `output`, PACK, BITS, and `fn element(i: u32) -> u32`, the bits of an element.
fn make_item(i: u32) {
    if i >= (params.n - 1u) / PACK + 1u { return; }
#if PACKED
    let first = i * PACK;
    let count = min(PACK, params.n - first);
    var word = 0u;
    if count < PACK { word = output[i]; }
    for (var k = 0u; k < count; k++) { word = insertBits(word, element(first + k), k * BITS, BITS); }
    output[i] = word;
#else
    output[i] = element(i);
#endif
}
