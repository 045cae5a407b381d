// Blocks of one thread each, for devices whose cores run the threads of a workgroup one after the other: a thread
// counts or moves the keys of its block in order, with counters of its own and without a barrier.
// The importer has `params` of sort_block.
#import primitives/sort_key

const WORKGROUP_SIZE: u32 = 8u;

// For each digit those of all threads.
var<workgroup> wg_counters: array<u32, RADIX * WORKGROUP_SIZE>;

// The block of a thread; it ends the thread if there is none.
#block block_of_thread(group, index)
    let block = workgroup_index({group}) * WORKGROUP_SIZE + {index};
    if block >= params.blocks { return; }
    let range = block_range(block);
    let shift = params.shift;
    let mask = params.mask;
#end

// Where the counter of `digit` is, and the count of a block for it.
fn counter(digit: u32, index: u32) -> u32 { return digit * WORKGROUP_SIZE + index; }
fn count_of(digit: u32, block: u32) -> u32 { return digit * params.all_blocks + params.first_block + block; }
