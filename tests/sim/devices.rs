//! The simulator against a device: the same results, bit for bit on integers, within rounding on floats.

use super::ops::operands;
use super::programs::program;
use crate::support::coverage::{self, cases, sample};
use crate::support::{self, Random};
use half::f16;
use std::collections::BTreeSet;
use tilework::gpu::{Arg, RawSlice};
use tilework::program::Program;
use tilework::sim::{self, Options, Schedule};
use tilework::{Buffer, DType, Element, ErrorKind, Gpu, Slice};

/// A buffer of any element type.
trait Held {
    fn raw(&self) -> RawSlice<'_>;
    fn bytes(&self) -> Vec<u8>;
}

impl<T: Element> Held for Buffer<T> {
    fn raw(&self) -> RawSlice<'_> {
        Slice::from(self).untyped()
    }

    fn bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(&self.read().unwrap()).to_vec()
    }
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn upload(gpu: &Gpu, dtype: DType, bytes: &[u8]) -> Box<dyn Held> {
    fn of<T: Element>(gpu: &Gpu, bytes: &[u8]) -> Box<dyn Held> {
        Box::new(gpu.upload(&elements::<T>(bytes)).unwrap())
    }
    match dtype {
        DType::F32 => of::<f32>(gpu, bytes),
        DType::F16 => of::<f16>(gpu, bytes),
        DType::I32 => of::<i32>(gpu, bytes),
        DType::U32 => of::<u32>(gpu, bytes),
        DType::U64 => of::<u64>(gpu, bytes),
        DType::U8 => of::<u8>(gpu, bytes),
        DType::I8 => of::<i8>(gpu, bytes),
        other => panic!("no buffer of {other}"),
    }
}

fn on_device(gpu: &Gpu, program: &Program, operands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let executable = gpu.prepare(program.clone()).unwrap();
    let held = program.operands.iter().zip(operands).map(|(o, bytes)| upload(gpu, o.dtype, bytes));
    let held: Vec<_> = held.collect();
    let raw: Vec<_> = held.iter().map(|buffer| buffer.raw()).collect();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &raw).unwrap();
    rec.submit().unwrap();
    held.iter().map(|buffer| buffer.bytes()).collect()
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => elements::<f32>(bytes).into_iter().map(f64::from).collect(),
        _ => elements::<f16>(bytes).into_iter().map(f64::from).collect(),
    }
}

/// The largest difference, relative to the largest number.
fn difference(dtype: DType, a: &[u8], b: &[u8]) -> f64 {
    let (a, b) = (floats(dtype, a), floats(dtype, b));
    let largest = a.iter().filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs()));
    let wrong = a.iter().zip(&b).map(|(x, y)| if x == y || x.is_nan() && y.is_nan() { 0.0 } else { (x - y).abs() });
    // Not `max`, which would ignore a NaN.
    wrong.fold(0.0, |m: f64, d| if d <= m { m } else { d }) / largest
}

#[test]
fn every_variant_matches_the_device() {
    let Some(gpu) = support::gpu() else { return };
    let profile = gpu.profile();
    let (least, most) = profile.subgroup_sizes;
    if least != most || !(4..=64).contains(&least) {
        return;
    }
    let mut ran = BTreeSet::new();
    for (i, op) in tilework::operations().filter(|op| !op.solver).enumerate() {
        // The default run compares an op in eight: other tests compare each op with its reference in both places.
        for variant in
            sample((op.variants)(), usize::from(i % 8 == 0)).iter().filter(|v| v.requires.missing(profile).is_none())
        {
            let mut all = match (op.samples)(profile, variant.name) {
                Ok(all) => all,
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                Err(e) => panic!("{e}"),
            };
            // Skips samples for larger subgroups, and with 64-bit integers, which the simulator does not have.
            let skipped = |spec: String| spec.contains("LARGE_SUBGROUPS") || spec.contains("INT64");
            all.retain(|p| p.kernels.iter().all(|k| !skipped(k.spec.to_string())));
            all.retain(|p| p.operands.iter().all(|o| o.dtype != DType::Bf16));
            let work = |p: &Program| p.operands.iter().map(|o| o.len as f64).sum::<f64>() + p.cost.flop;
            let Some(program) = all.into_iter().min_by(|a, b| work(a).total_cmp(&work(b))) else { continue };
            let what = format!("{} {}", op.name, variant.name);
            let random = &mut Random::new(3);
            let given = operands(&program, random);
            let mut simulated = given.clone();
            let options = Options { subgroup_size: least, ..Options::default() };
            sim::run(&program, &mut simulated, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            let wanted = on_device(gpu, &program, &given);
            // Rounding to f16 or to a code may differ by one step.
            let halves = program.operands.iter().any(|o| o.dtype == DType::F16);
            for ((operand, got), wanted) in program.operands.iter().zip(&simulated).zip(&wanted) {
                let name = operand.name;
                if operand.dtype.is_float() {
                    let bound = if halves { 2f64.powi(-8) } else { 2f64.powi(-16) };
                    let by = difference(operand.dtype, got, wanted);
                    assert!(by <= bound, "{what}: {name} differs by {by}");
                } else if operand.dtype.size() == 1 {
                    let off = got.iter().zip(wanted).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
                    assert!(off <= 1 || off == 255, "{what}: {name} differs by {off}");
                } else {
                    assert_eq!(got, wanted, "{what}: {name}");
                }
            }
            ran.insert(what);
        }
    }
    assert!(ran.len() > if coverage::all() { 100 } else { 10 }, "{ran:?}");
}

/// Expressions of WGSL, each with a result of one word.
const INTEGERS: &str = "
    a + b, a - b, a * b, a / max(b, 1u), a % max(b, 1u), a & b, a | b, a ^ b, ~a, a << (b % 32u), a >> (b % 32u),
    u32(i >> (b % 32u)), u32(i / max(j, 1)), u32(i % max(j, 1)), u32(-i), u32(abs(i)), u32(sign(i)), min(a, b), max(a, b),
    clamp(a, 100u, 5000u), u32(min(i, j)), u32(max(i, j)), u32(clamp(i, -50, 70)), countOneBits(a), countLeadingZeros(a),
    countTrailingZeros(a), reverseBits(a), firstLeadingBit(a), firstTrailingBit(a), u32(firstLeadingBit(i)),
    extractBits(a, b % 32u, a % 33u), u32(extractBits(i, b % 32u, a % 33u)), insertBits(a, b, b % 32u, a % 33u),
    select(a, b, a > b), u32(all(vec2(a > b, a > 7u))), u32(any(vec2(a > b, a == 7u))), dot(vec3(a, b, 3u), vec3(b, a, 5u)),
    dot4U8Packed(a, b), u32(dot4I8Packed(a, b)), pack4xU8(unpack4xU8(a)), pack4xI8(unpack4xI8(b)), pack4xU8Clamp(vec4(a, b, 300u, 2u)),
    vec4(a, b, 3u, 4u)[a % 4u], vec4(a, b, 3u, 4u).wzyx[b % 4u], u32(i < j) + 2u * u32(i <= j) + 4u * u32(a > b) + 8u * u32(a >= b),
    bitcast<u32>(f32(a)), bitcast<u32>(f32(i)), u32(f32(a % 100000u) / 8.0), bitcast<u32>(i32(f32(i % 100000) / 8.0)),
    u32(bool(a % 2u)), bitcast<u32>(abs(x)), bitcast<u32>(floor(x)), bitcast<u32>(ceil(x)), bitcast<u32>(trunc(x)),
    bitcast<u32>(round(x)), bitcast<u32>(sign(x)), bitcast<u32>(min(x, y)), bitcast<u32>(max(x, y)), bitcast<u32>(clamp(x, -1.0, 2.0)),
    bitcast<u32>(saturate(x)), bitcast<u32>(step(x, y)), bitcast<u32>(x + y), bitcast<u32>(x - y), bitcast<u32>(x * y), bitcast<u32>(-x),
    u32(x < y) + 2u * u32(x <= y) + 4u * u32(x == y) + 8u * u32(x != y), bitcast<u32>(quantizeToF16(x)),
    bitcast<u32>(unpack2x16float(a & 0x3bff3bffu).x), pack2x16float(vec2(x, y)), looped(a), switched(a), called(a, b), privately(a),
    matrices(a), nested(a), shared_word";

const FLOATS: &str = "
    sqrt(abs(x)), inverseSqrt(abs(x) + 0.1), exp(x), exp2(x), log(abs(x) + 0.1), log2(abs(x) + 0.1), pow(abs(x) + 0.1, y), sin(x), cos(x),
    tanh(x), sinh(x), cosh(x), atan(x), atan2(x, y), x / (y + 3.0), fma(x, y, 1.5), mix(x, y, 0.25), smoothstep(-1.0, 1.0, x), fract(x),
    length(vec2(x, y)), distance(vec2(x, y), vec2(y, 1.0)), normalize(vec3(x, y, 1.0)).y, cross(vec3(x, y, 1.0), vec3(y, 2.0, x)).z,
    dot(vec4(x, y, 1.0, 2.0), vec4(y, x, 3.0, x)), ldexp(x, 3), modf(x).fract, frexp(x).fract, f32(frexp(x).exp), radians(x), degrees(x),
    (mat2x2(x, y, 1.0, 2.0) * vec2(y, x)).y, (vec2(y, x) * mat2x2(x, y, 1.0, 2.0)).x, unpack4x8snorm(a).z, unpack2x16unorm(a).y,
    f32(pack4x8unorm(vec4(x, y, 0.3, 0.7)) % 65536u), subgroupAdd(x), subgroupMax(x), subgroupInclusiveAdd(x), subgroupExclusiveMul(y),
    subgroupShuffleXor(x, 1u), subgroupShuffleUp(x, 1u) * f32(lane % size != 0u), subgroupBroadcastFirst(y), f32(countOneBits(subgroupBallot(x > y).x))";

/// A kernel that evaluates expressions of `a` and `b`, of the same as signed `i` and `j`, and of `x` and `y`, which are
/// exact in f16: WGSL lets devices round quotients and conversions to f16 either way.
fn kernel(functions: &[&str], ty: &str) -> String {
    let stores: String =
        functions.iter().enumerate().map(|(i, f)| format!("        output[at + {i}u] = {ty}({f});\n")).collect();
    let n = functions.len();
    format!(
        "@group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<{ty}>;
    var<private> last: array<u32, 3>;
    var<workgroup> wg_words: array<u32, 64>;
    struct Pair {{ x: u32, both: vec2<u32> }}
    fn looped(n: u32) -> u32 {{
        var sum = 0u;
        for (var i = 0u; i < 20u; i++) {{
            if i == n % 7u {{ continue; }}
            if i > n % 19u {{ break; }}
            for (var j = i; j < 5u; j++) {{ if j == 3u {{ continue; }} sum += j; if sum > 90u {{ return sum; }} }}
            sum = sum * 3u + i;
        }}
        return sum;
    }}
    fn switched(n: u32) -> u32 {{
        var x = 1u;
        switch n % 5u {{
            case 0u, 3u: {{ x = 10u; }}
            default: {{ x = 20u; if n % 2u == 0u {{ break; }} x = 21u; }}
            case 1u: {{ x = 30u; }}
        }}
        loop {{ x += 1u; continuing {{ x += 2u; break if x > 35u; }} }}
        return x;
    }}
    fn add_to(p: ptr<function, u32>, by: u32) -> Pair {{ *p += by; return Pair(*p, vec2(by, *p)); }}
    fn called(a: u32, b: u32) -> u32 {{
        var list = array<u32, 3>(a, b, 7u);
        var one = list[a % 3u];
        let pair = add_to(&one, b);
        list[a % 3u] = one;
        return pair.x + pair.both.y * 3u + list[0] + 5u * list[2];
    }}
    fn privately(a: u32) -> u32 {{ last = array<u32, 3>(); last[a % 3u] = a; return last[0] + 2u * last[1]; }}
    fn matrices(a: u32) -> u32 {{ let m = mat3x2<f32>(1.0, 2.0, f32(a % 8u), 4.0, 5.0, 6.0); return u32((m * vec3(f32(a % 9u), 1.0, 2.0)).y + transpose(m)[1][a % 3u]); }}
    fn nested(a: u32) -> u32 {{
        var pairs: array<Pair, 2>;
        pairs[a % 2u].both = vec2(a, 1u);
        pairs[0].x = 9u;
        let copy = pairs;
        pairs[1] = copy[0];
        return pairs[1].x + pairs[1].both.x * 2u + copy[a % 2u].both[1];
    }}
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32,
            @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32) {{
        let a = input[2u * id.x];
        let b = input[2u * id.x + 1u];
        let i = bitcast<i32>(a);
        let j = bitcast<i32>(b);
        let x = f32(i % 2000) / 512.0;
        let y = f32(j % 2000) / 1024.0;
        let at = id.x * {n}u;
        wg_words[index] = a;
        workgroupBarrier();
        let shared_word = wg_words[63u - index];
{stores}    }}"
    )
}

/// Splits at commas outside parentheses.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut all) = (0i32, 0, Vec::new());
    for (i, c) in list.char_indices() {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        if c == ',' && depth == 0 {
            all.push(list[begin..i].trim());
            begin = i + 1;
        }
    }
    all.push(list[begin..].trim());
    all
}

fn both(gpu: &Gpu, functions: &[&str], ty: &str) -> (Vec<u32>, Vec<u32>) {
    let text = kernel(functions, ty);
    let random = &mut Random::new(5);
    let mut input: Vec<u32> = (0..256).map(|_| random.next() as u32 >> (random.next() % 28)).collect();
    input[..8].copy_from_slice(&[0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff, 32, 31, 255]);
    let n = 128 * functions.len();
    let mut buffers = vec![bytemuck::cast_slice(&input).to_vec(), vec![0; 4 * n]];
    let options = Options { subgroup_size: gpu.profile().subgroup_sizes.0, ..Options::default() };
    let report = sim::run_wgsl("language.wgsl", &text, "main", [2, 1, 1], &mut buffers, &options).unwrap();
    assert!(report.is_clean(), "{report}");
    let (x, y) = (gpu.upload(&input).unwrap(), gpu.alloc_zeroed::<u32>(n).unwrap());
    let kernel = gpu.kernel("language.wgsl", &text, "main").unwrap();
    let mut rec = gpu.recorder();
    kernel.record(&mut rec, &[Arg::from(&x), Arg::from(&y)], [2, 1, 1]).unwrap();
    rec.submit().unwrap();
    (elements(&buffers[1]), y.read().unwrap())
}

#[test]
fn wgsl_functions_match_the_device() {
    let Some(gpu) = support::gpu().filter(|gpu| gpu.profile().features.subgroups) else { return };
    let functions = parts(INTEGERS);
    let (got, wanted) = both(gpu, &functions, "u32");
    for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
        let what = functions[at % functions.len()];
        assert_eq!(got, wanted, "{what} in thread {}", at / functions.len());
    }
    let functions = parts(FLOATS);
    let (got, wanted) = both(gpu, &functions, "f32");
    for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
        let (got, wanted) = (f32::from_bits(*got), f32::from_bits(*wanted));
        // Drivers may be off by thousands of ULP in functions computed by series.
        let bound = 2f32.powi(-9) * wanted.abs().max(1.0);
        let what = functions[at % functions.len()];
        assert!((got - wanted).abs() <= bound, "{what}: {got}, the device has {wanted}");
    }
}

#[test]
fn random_kernels_match_the_device() {
    let Some(gpu) = support::gpu().filter(|gpu| gpu.profile().features.subgroups) else { return };
    let subgroup_size = gpu.profile().subgroup_sizes.0;
    let schedules = [Schedule::InOrder, Schedule::Reverse, Schedule::Random(9), Schedule::LastFirst, Schedule::Stalled];
    for (seed, schedule) in (0..cases(25) as u64).zip(schedules.into_iter().cycle()) {
        let text = program(seed);
        let random = &mut Random::new(seed);
        let mut input: Vec<u32> = (0..256).map(|_| random.next() as u32 >> (random.next() % 28)).collect();
        input[..8].copy_from_slice(&[0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff, 32, 31, 255]);
        // 128 words, 128 structs of 160 bytes, 8 sums.
        let sizes = [128, 128 * 40, 8];
        let mut buffers = vec![bytemuck::cast_slice(&input).to_vec()];
        buffers.extend(sizes.map(|n| vec![0; 4 * n]));
        let options = Options { subgroup_size, schedule, ..Options::default() };
        let report = sim::run_wgsl("random.wgsl", &text, "main", [2, 1, 1], &mut buffers, &options)
            .unwrap_or_else(|e| panic!("{seed}: {e}\n{text}"));
        assert!(report.is_clean(), "{seed}: {report}\n{text}");
        let input = gpu.upload(&input).unwrap();
        let held = sizes.map(|n| gpu.alloc_zeroed::<u32>(n).unwrap());
        let kernel = gpu.kernel("random.wgsl", &text, "main").unwrap();
        let mut rec = gpu.recorder();
        let [x, y, z] = &held;
        let bound = [Arg::from(&input), Arg::from(x), Arg::from(y), Arg::from(z)];
        kernel.record(&mut rec, &bound, [2, 1, 1]).unwrap();
        rec.submit().unwrap();
        for ((got, held), name) in buffers[1..].iter().zip(&held).zip(["output", "deep", "sums"]) {
            assert_eq!(elements::<u32>(got), held.read().unwrap(), "{seed}: {name}\n{text}");
        }
    }
}
