// An element of IN_WORDS numbers as a state, and a state as a result of OUT_WORDS: that of `state_result`, or without
// RESULT the words of the state. The importer has the state's functions: op/state.
const IN_WORDS: u32 = 1u;
const OUT_WORDS: u32 = 2u;
alias Result = vec2<u32>;

#if IN_WORDS == 1
fn lift(x: T, index: u32) -> Acc { return pack(state_of(x)); }
#endif

// An element that follows all of those in `total`.
fn accumulate(total: Acc, x: Acc) -> Acc { return op_combine(total, x); }

fn finish(total: Acc) -> Result {
#if RESULT
#if OUT_WORDS == 1
    return Result(bitcast<u32>(state_result(unpack(total))));
#else
    return bitcast<Result>(state_result(unpack(total)));
#endif
#else
    return Result(total);
#endif
}
