// The parameters of the kernels of a convolution layer. x is `groups` times `channels_in` channels of h x w, the
// result `groups` times `channels_out` of p x q, the filters r x s. A kernel computes items of its own kind, from
// number `first` to below `count`. LAST: channels lie next to each other. Requires f16 where T is f16.
#import workgroup/index
#if F16
enable f16;
#endif

// Elements of x, the weights and the output's gradient.
alias T = f32;

const WORKGROUP_SIZE: u32 = 256u;
// Cells of x are spread this far apart, with zeros between them.
const UP_H: u32 = 1u;
const UP_W: u32 = 1u;

struct Params {
    count: u32, first: u32, images: u32, groups: u32, channels_in: u32, channels_out: u32, h: u32,
    w: u32, p: u32, q: u32, r: u32, s: u32, stride_h: u32, stride_w: u32,
    bound_h: u32, // extents of x when spread: what is beyond is 0
    bound_w: u32,
    pad_h: u32, // what is negative wraps
    pad_w: u32, dilation_h: u32, dilation_w: u32,
    x_at: u32, // where x and the result begin in their bindings
    y_at: u32,
    columns: u32, // of those that im2col writes: in memory
    all_images: u32, // where `images` are those of a slice
    first_channel: u32, // of x, where a dispatch adds a slice of them
    end_channel: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
