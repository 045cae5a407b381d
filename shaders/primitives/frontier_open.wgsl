// Opens the next level of a work list: counts the children of the listed items, as far as there is room. With TREE, all
// levels share one array: the level begins behind the last one, and its workgroups are counted too. One thread.
#import workgroup/fold

struct Params {
    children: u32, // of an item; not 0
    room: u32,     // children of this level
    most: u32,     // nodes of all levels
    each: u32,     // children of a workgroup
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> wanted: array<u32>;
@group(0) @binding(2) var<storage, read_write> length: array<u32>;
#if TREE
@group(0) @binding(3) var<storage, read_write> count: array<u32>; // nodes of the levels above
@group(0) @binding(4) var<storage, read_write> workgroups: array<u32>;
#endif

@compute @workgroup_size(1)
fn frontier_open() {
    var room = params.room;
#if TREE
    let begin = min(count[0], params.most);
    room = min(room, params.most - begin);
#endif
    let opened = params.children * min(wanted[0], room / params.children);
    length[0] = opened;
#if TREE
    count[0] = begin + opened;
    let folded = folded_workgroups(opened, params.each);
    workgroups[0] = folded.x;
    workgroups[1] = folded.y;
    workgroups[2] = folded.z;
#endif
}
