// The parameters of the pooling kernels: planes of h x w, one for each channel of each image, with p x q windows of
// r x s cells.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    planes: u32,
    channels: u32,
    first: u32, // index of the first plane among all
    h: u32,
    w: u32,
    p: u32,
    q: u32,
    r: u32,
    s: u32,
    stride_h: u32,
    stride_w: u32,
    top: u32,
    left: u32,
    dilation_h: u32,
    dilation_w: u32,
    wide: u32, // offset of the first plane in its binding, in elements
    narrow: u32, // offset of the first plane of windows
    block: u32, // windows of a part, the first part of this chunk, and all parts, where they are summed
    first_part: u32,
    all_parts: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
