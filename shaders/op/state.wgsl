// Operators over a state of 1 to 4 words. Kernels keep, shuffle and post its words as an `Acc`; the operator's own
// functions see a struct `State`, whose members STATE_FIELDS have the types WORD_0, WORD_1, ...
// The importer declares `T`, the type of elements.
#import op/min_max as state

const STATE_WORDS: u32 = 2u;
alias Acc = vec2<u32>;
alias WORD_0 = u32;
alias WORD_1 = u32;
alias WORD_2 = u32;
alias WORD_3 = u32;

fn pack(s: State) -> Acc {
    return Acc(
#for field in STATE_FIELDS
        bitcast<u32>(s.{field}),
#end
    );
}

fn unpack(x: Acc) -> State {
#if STATE_WORDS == 1
    return State(bitcast<WORD_0>(x));
#else
    return State(
#for i in STATE_WORDS
        bitcast<WORD_{i}>(x[{i}]),
#end
    );
#endif
}

fn op_identity() -> Acc { return pack(state_identity()); }
fn op_combine(a: Acc, b: Acc) -> Acc { return pack(state_combine(unpack(a), unpack(b))); }
