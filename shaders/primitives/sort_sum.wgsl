// Sums over the threads of a workgroup, through workgroup memory.
var<workgroup> wg_sums: array<u32, WORKGROUP_SIZE>;

var<private> invocation: u32;

// The sum of `x` over all threads before this one.
fn sum_before(x: u32) -> u32 {
    var sum = x;
    wg_sums[invocation] = x;
    workgroupBarrier();
    for (var step = 1u; step < WORKGROUP_SIZE; step *= 2u) {
        if invocation >= step { sum += wg_sums[invocation - step]; }
        workgroupBarrier();
        wg_sums[invocation] = sum;
        workgroupBarrier();
    }
    return sum - x;
}
