// Opens a level of a tree: sets its number of cells to four children for each selected cell of the level above, up to
// the room there is. One thread.

struct Params {
    room: u32, // cells whose children fit
    level: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> wanted: array<u32>; // cells that want to split
@group(0) @binding(2) var<storage, read_write> count: array<u32>;
@group(0) @binding(3) var<storage, read_write> summary: array<u32>; // per level: cells, and how many want to split

@compute @workgroup_size(1)
fn open_level() {
    let cells = 4u * min(wanted[0], params.room);
    count[0] = cells;
    summary[2u * params.level] = cells;
    summary[2u * params.level - 1u] = wanted[0];
}
