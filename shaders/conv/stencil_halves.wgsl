// Elements of f16, as numbers.
#import conv/stencil_halves_in
#import conv/stencil_halves_out

alias Group = vec4<f32>;
