// Shared by all reduction kernels: element, monoid, and the chunk of the input that a dispatch covers.
#import dispatch/extent
#import element/f32 as element
#import primitives/lift_value as lift
#import op/add as op
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,        // rows of the chunk
    row_stride: u32,  // elements from one row to the next
    len: u32,         // elements of each row in the chunk
    column: u32,      // column of the first of them
    origin: u32,      // where the chunk begins in the binding
    parts: u32,       // workgroups that share a row of the chunk
    part_len: u32,    // elements of a part, where parts are contiguous
    part_stride: u32, // results from one row to the next
    first: u32,       // where the first result goes
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.len, params.column)

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
