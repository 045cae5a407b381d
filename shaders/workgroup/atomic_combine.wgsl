// Combines a value into `totals[at]`, an array of atomic words: by a native atomic for sums of integers and for the
// order of unsigned keys, otherwise by a compare-exchange loop on the bits, which serves any 32-bit monoid. The device
// decides the order of combination.
fn atomic_combine(at: u32, x: Acc) {
#if NATIVE_ADD
    atomicAdd(&totals[at], bitcast<u32>(x));
#else
#if NATIVE_MIN
    atomicMin(&totals[at], bitcast<u32>(x));
#else
#if NATIVE_MAX
    atomicMax(&totals[at], bitcast<u32>(x));
#else
    var old = atomicLoad(&totals[at]);
    loop {
        let combined = bitcast<u32>(op_combine(bitcast<Acc>(old), x));
        let swapped = atomicCompareExchangeWeak(&totals[at], old, combined);
        if swapped.exchanged { break; }
        old = swapped.old_value;
    }
#endif
#endif
#endif
}
