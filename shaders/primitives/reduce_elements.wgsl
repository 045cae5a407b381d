// Elements of a reduction and its results: `load(at, column)` lifts element `at` of the binding, whose place in the
// whole is `column`; `store(at, total)` writes a result. FROM_PARTIALS elements, and results that are not FINAL, are
// accumulators.
#import element/f32 as element
#import primitives/lift_value as lift
#import op/add as op

#if FROM_PARTIALS
@group(0) @binding(1) var<storage, read> input: array<Acc>;

fn load(at: u32, column: u32) -> Acc { return input[at]; }
#else
@group(0) @binding(1) var<storage, read> input: array<u32>;

#if STATE
fn load(at: u32, column: u32) -> Acc {
    let first = IN_WORDS * at;
    return pack(state_of(
#for k in IN_WORDS
        decode(input[(first + {k}u) / PACK], (first + {k}u) % PACK),
#end
    ));
}
#else
fn load(at: u32, column: u32) -> Acc { return lift(decode(input[at / PACK], at % PACK), column); }
#endif
#endif

#if FINAL
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

#if STATE
fn store(at: u32, total: Acc) {
    let result = finish(total);
#for k in OUT_WORDS
    output[OUT_WORDS * at + {k}u] = result[{k}];
#end
}
#else
fn store(at: u32, total: Acc) { output[at] = bitcast<u32>(finish(total)); }
#endif
#else
@group(0) @binding(2) var<storage, read_write> output: array<Acc>;

fn store(at: u32, total: Acc) { output[at] = total; }
#endif
