// The workgroups that cover `items` items, `each` a workgroup (0 counts as 1), folded as workgroup_index unfolds them.
// For kernels that write the counts of an indirect dispatch.
#import workgroup/index

fn whole(n: u32, unit: u32) -> u32 { return n / unit + u32(n % unit != 0u); }

fn folded_workgroups(items: u32, each: u32) -> vec3<u32> {
    let all = whole(items, max(each, 1u));
    let rows = whole(all, FOLD);
    return vec3<u32>(min(all, FOLD), min(rows, FOLD), whole(rows, FOLD));
}
