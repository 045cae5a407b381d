// Elements of u8, as numbers.
#import conv/stencil_bytes_in
#import conv/stencil_bytes_out

alias Group = vec4<f32>;
