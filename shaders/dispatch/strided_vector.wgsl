// Moves a vector whose elements lie `step` apart to memory of its own, where they lie side by side, or with SCATTERS
// back. An element has WIDTH words or, with HALVES, half a word. A thread writes a word, or scatters half of one, whose
// other half stays: halves that lie two or more apart are in different words.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WIDTH: u32 = 1u;

// The step is modulo 2^32.
struct Params { n: u32, origin: u32, step: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn place(i: u32) -> u32 { return params.origin + i * params.step; }

#if HALVES
fn half_of(at: u32) -> u32 { return extractBits(source[at / 2u], 16u * (at % 2u), 16u); }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn strided_vector(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
#if HALVES
#if SCATTERS
    if i >= params.n { return; }
    let at = place(i);
    output[at / 2u] = insertBits(output[at / 2u], half_of(i), 16u * (at % 2u), 16u);
#else
    if i >= params.n / 2u + params.n % 2u { return; }
    var next = 0u;
    if 2u * i + 1u < params.n {
        next = half_of(place(2u * i + 1u));
    }
#if KEEPS
    else { next = output[i] >> 16u; }
#endif
    output[i] = half_of(place(2u * i)) | (next << 16u);
#endif
#else
    if i / WIDTH >= params.n { return; }
    let at = place(i / WIDTH) * WIDTH + i % WIDTH;
#if SCATTERS
    output[at] = source[i];
#else
    output[i] = source[at];
#endif
#endif
}
