// The walk of a workgroup over its part of a histogram's input: each thread takes one element or, with COARSENED, vec4
// a fixed distance apart, four in flight with WIDE. Requires `tally(slot, amount)` of its importer.
// A slot is a bin or, with BYTES, the byte itself, whose bin is looked up once, when counts are added up. AGGREGATED: a
// thread adds up a run of equal slots before it tallies. ROLLED: a short kernel, for the compilers of software drivers.
#import primitives/histogram_bins

const WORKGROUP_SIZE: u32 = 256u;

fn slot_of(word: u32, i: u32) -> u32 {
#if BYTES
    return extractBits(word, 8u * i, 8u);
#else
    return bin_of(decode(word, i));
#endif
}

#if AGGREGATED
var<private> run_slot: u32;
var<private> run_length: u32;

fn count(slot: u32) {
    if slot == run_slot {
        run_length += 1u;
    } else if slot != NOT_COUNTED {
        tally(run_slot, run_length);
        run_slot = slot;
        run_length = 1u;
    }
}
#else
fn count(slot: u32) {
#if BYTES
    tally(slot, 1u);
#else
    if slot != NOT_COUNTED { tally(slot, 1u); }
#endif
}
#endif

fn count_word(word: u32) {
#if AGGREGATED
#if BYTES
    if word == run_slot * 0x01010101u {
        run_length += 4u;
        return;
    }
#endif
#endif
    for (var i = 0u; i < PACK; i++) { count(slot_of(word, i)); }
}

fn count_vector(v: vec4<u32>) {
#if ROLLED
    var words = v;
    for (var i = 0u; i < 4u; i++) { count_word(words[i]); }
#else
    count_word(v.x);
    count_word(v.y);
    count_word(v.z);
    count_word(v.w);
#endif
}

fn walk(part: u32, lane: u32) {
    let there = extent();
#if AGGREGATED
    run_slot = 0u;
    run_length = 0u;
#endif
#if COARSENED
    let vectors_end = vectors_there();
#if VECTORS
#if WIDE
    let step = 4u * WORKGROUP_SIZE;
    var v = part * step + lane;
    while v + 3u * WORKGROUP_SIZE < vectors_end {
        let v0 = vectors[v];
        let v1 = vectors[v + WORKGROUP_SIZE];
        let v2 = vectors[v + 2u * WORKGROUP_SIZE];
        let v3 = vectors[v + 3u * WORKGROUP_SIZE];
        count_vector(v0);
        count_vector(v1);
        count_vector(v2);
        count_vector(v3);
        v += step * params.parts;
    }
    // The last step of the whole chunk may be short.
    for (var i = 0u; i < 3u && v < vectors_end; i++) {
        count_vector(vectors[v]);
        v += WORKGROUP_SIZE;
    }
#else
    for (var v = part * WORKGROUP_SIZE + lane; v < vectors_end; v += WORKGROUP_SIZE * params.parts) {
        count_vector(vectors[v]);
    }
#endif
#endif
    if part == 0u {
        // What fills no vec4.
        for (var at = vectors_end * 4u * PACK + lane; at < there; at += WORKGROUP_SIZE) {
            count(slot_of(input[at / PACK], at % PACK));
        }
    }
#else
    let at = part * WORKGROUP_SIZE + lane;
    if at < there {
        count(slot_of(input[at / PACK], at % PACK));
    }
#endif
#if AGGREGATED
    tally(run_slot, run_length);
#endif
}
