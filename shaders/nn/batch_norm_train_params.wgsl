// The parameters of the kernels of batch norm in training and of its gradients that walk along channels.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    images: u32,
    channels: u32,
    len: u32, // elements of a plane
    origin: u32, // of the first image in its binding
    block: u32, // items of a part
    parts: u32, // of each channel in this dispatch
    first_part: u32,
    all_parts: u32,
    count: f32, // elements of a channel
    eps: f32,
    momentum: f32,
    correction: f32, // from the variance to the one that is averaged
}
@group(0) @binding(0) var<uniform> params: Params;
