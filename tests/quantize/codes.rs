//! The fragments that pack and unpack bytes, on the device.

use crate::support::{Device, Random, devices};
use tilework::gpu::Arg;
use tilework::reference::{fp8_code, fp8_value};

/// Packs four floats to a word with each fragment, and unpacks the word.
const KERNEL: &str = "
#import quantize/fp8
#import quantize/int8
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> packed: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read_write> unpacked: array<vec4<u32>>;

@compute @workgroup_size(64)
fn codes(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) {
        packed[id.x] = vec2(pack_fp8(x[id.x]), pack_int8(x[id.x]));
    }
    if id.x < arrayLength(&words) {
        // As bits, which no device changes.
        unpacked[2u * id.x] = bitcast<vec4<u32>>(unpack_fp8(words[id.x]));
        unpacked[2u * id.x + 1u] = bitcast<vec4<u32>>(unpack_int8(words[id.x]));
    }
}";

fn int8_code(x: f32) -> i8 {
    // A cast takes NaN to 0.
    f64::from(x).round_ties_even().clamp(-127.0, 127.0) as i8
}

/// The result of each fragment for `x` and for every byte.
fn run(device: &Device, x: &[f32]) -> (Vec<[u8; 8]>, Vec<[f32; 8]>) {
    let gpu = &device.gpu;
    let bytes: Vec<u8> = (0..=255).collect();
    let inputs = (gpu.upload(x).unwrap(), gpu.upload(&bytes).unwrap());
    let packed = gpu.alloc::<u8>(2 * x.len()).unwrap();
    let unpacked = gpu.alloc::<f32>(2 * 256).unwrap();
    let kernel = gpu.kernel("codes.wgsl", KERNEL, "codes").unwrap();
    let mut rec = gpu.recorder();
    let args = [Arg::from(&inputs.0), (&packed).into(), (&inputs.1).into(), (&unpacked).into()];
    kernel.record(&mut rec, &args, [(x.len() / 4).div_ceil(64) as u32, 1, 1]).unwrap();
    rec.submit().unwrap();
    let eights = |bytes: Vec<u8>| bytes.chunks(8).map(|c| c.try_into().unwrap()).collect();
    (eights(packed.read().unwrap()), unpacked.read().unwrap().chunks(8).map(|c| c.try_into().unwrap()).collect())
}

/// Every code, values around the midpoint between neighbours, and random floats of every magnitude.
fn floats() -> Vec<f32> {
    let mut random = Random::new(1);
    let mut x: Vec<f32> = (0..=255).map(fp8_value).collect();
    for code in 0..0x7e {
        let middle = (fp8_value(code) + fp8_value(code + 1)) / 2.0;
        x.extend([-1i32, 0, 1].map(|step| f32::from_bits(middle.to_bits().wrapping_add_signed(step))));
    }
    x.extend((-260..=260).map(|halves| halves as f32 / 2.0));
    x.extend([464.0, 465.0, 1e-45, 1e-39, 1e38, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0]);
    x.extend(random.any::<f32>(20_000));
    x.extend(random.elements::<f32>(20_000).iter().map(|x| 500.0 * x * x * x));
    x.truncate(x.len() / 4 * 4);
    x
}

#[test]
fn codes_match_reference() {
    let x = floats();
    for device in devices() {
        let (packed, unpacked) = run(device, &x);
        for (x, codes) in x.chunks(4).zip(packed) {
            let wanted: Vec<u8> = x.iter().map(|x| fp8_code(*x)).chain(x.iter().map(|x| int8_code(*x) as u8)).collect();
            assert_eq!(codes.as_slice(), wanted, "{} {x:?}", device.label);
        }
        for (word, got) in unpacked.iter().enumerate() {
            for (i, got) in got.iter().enumerate() {
                let byte = (4 * word + i % 4) as u8;
                let wanted = if i < 4 { fp8_value(byte) } else { f32::from(byte as i8) };
                let same = got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan();
                assert!(same, "{}: {byte:#x} is {got}, not {wanted}", device.label);
            }
        }
    }
}
