//! Every variant of `AttentionBackward` against the reference.

use crate::nn::training::{Given, check, names, random, run};
use crate::support::coverage::{all, sample, turn};
use crate::support::matrices::{with_matrices, without_matrices};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers, spoil};
use half::f16;
use tilework::program::{DeviceProfile, Grid, Op, Program, Resource};
use tilework::reference::{
    AttentionInputs, attention, attention_backward, attention_backward_bound, attention_backward_saved,
    attention_backward_saved_bound, attention_logsumexp,
};
use tilework::shader::Target;
use tilework::{Arg, Attention, AttentionBackward, Buffer, ErrorKind, Plannable, Slice};

/// Batch, heads, kv heads, queries, keys, head size.
type Shape = [usize; 6];

fn op_of([b, h, g, t, s, d]: Shape) -> AttentionBackward {
    AttentionBackward::new([b, h, t, d], [g, s])
}

/// Returns q, k, v and dy.
fn operands<T: Sample>(shape @ [.., d]: Shape) -> [Vec<T>; 4] {
    with_values(shape, d)
}

/// The same for values of `e` elements.
fn with_values<T: Sample>([b, h, g, t, s, d]: Shape, e: usize) -> [Vec<T>; 4] {
    let [queries, keys] = [b * h * t, b * g * s];
    let wide: Vec<T> = random::<T>(1, queries * d).iter().map(|x| T::from_f64(3.0 * x.to_f64())).collect();
    [wide, random(2, keys * d), random(3, keys * e), random(4, queries * e)]
}

/// Compares every variant that takes the shape with the reference.
fn compare<T: Sample>(device: &Device, op: &AttentionBackward, operands: &[Vec<T>; 4])
where
    AttentionBackward: Op<T>,
{
    for variant in names(AttentionBackward::variants()) {
        let op = op.clone().variant(variant);
        match Op::<T>::lower(&op, device.gpu.profile()) {
            // Only on cooperative matrices of f16, and only for f32.
            Err(e) if ["coop", "coop-stored", "stored"].contains(&variant) && e.kind() == ErrorKind::Unsupported => {
                continue;
            }
            program => drop(program.unwrap()),
        }
        compare_one(device, &op, operands);
    }
}

fn compare_one<T: Sample>(device: &Device, op: &AttentionBackward, [q, k, v, dy]: &[Vec<T>; 4])
where
    AttentionBackward: Op<T>,
{
    let want = attention_backward(op, q, k, v, dy);
    let bound = attention_backward_bound(op, q, k, v, dy);
    check(device, &format!("{op:?}"), op, &[q, k, v, dy], &want, &bound);
}

fn compare_all<T: Sample>(device: &Device, shape: Shape, with: fn(AttentionBackward) -> AttentionBackward)
where
    AttentionBackward: Op<T>,
{
    compare(device, &with(op_of(shape)), &operands::<T>(shape));
}

#[test]
fn matches_reference_for_every_kind() {
    for device in devices() {
        compare_all::<f16>(device, [2, 4, 2, 37, 70, 64], |op| op.causal().window(40));
        // Heads of 8 elements as in other tests, which compile the same kernels.
        let d = if all() { 40 } else { 8 };
        compare_all::<f32>(device, [1, 2, 1, 70, 37, d], |op| op.causal());
        if device.main && all() {
            compare_all::<f32>(device, [2, 4, 2, 5, 37, 16], |op| op);
            compare_all::<f32>(device, [1, 2, 2, 66, 67, 64], |op| op.window(5).scale(0.5));
            compare_all::<f16>(device, [1, 6, 2, 33, 40, 72], |op| op.window(50));
        }
    }
}

#[test]
fn further_shapes_match_reference_on_the_first_device() {
    let Some(device) = devices().first() else { return };
    compare_all::<f32>(device, [1, 1, 1, 1, 1, 8], |op| op);
    if all() {
        compare_all::<f16>(device, [1, 1, 1, 40, 34, 128], |op| op.causal());
        compare_all::<f32>(device, [3, 1, 1, 200, 3, 16], |op| op.causal().window(2));
        compare_all::<f32>(device, [1, 3, 3, 65, 129, 96], |op| op.causal());
        compare_all::<f32>(device, [1, 1, 1, 18, 20, 256], |op| op.window(1));
    }
}

/// Steps of some queries, of some heads, and heads one after the other.
#[test]
fn stored_matches_reference_in_steps() {
    let Some(gpu) = gpu() else { return };
    type With = fn(AttentionBackward) -> AttentionBackward;
    let cases: [(Shape, u64, With); 6] = [
        ([1, 3, 3, 64, 130, 16], 1 << 16, |op| op),
        ([2, 2, 2, 200, 64, 8], 1 << 16, |op| op.causal()),
        ([1, 6, 2, 200, 192, 8], 1 << 18, |op| op.causal()),
        ([1, 1, 1, 300, 260, 8], 1 << 17, |op| op.window(40)),
        ([1, 2, 2, 256, 128, 4], 1 << 16, |op| op.causal().window(30).scale(0.5)),
        ([1, 4, 1, 128, 64, 16], 1 << 16, |op| op.window(9)),
    ];
    for &(shape, binding, with) in sample(&cases, 3) {
        let op = with(op_of(shape)).variant("stored");
        let mut profile = gpu.profile().clone();
        profile.limits.max_storage_binding = binding;
        let program = Op::<f32>::lower(&op, &profile).unwrap();
        let whole = Op::<f32>::lower(&op, gpu.profile()).unwrap();
        assert!(program.dispatches.len() > whole.dispatches.len(), "{op:?}: steps");
        let [q, k, v, dy] = operands::<f32>(shape);
        let mut held: Vec<_> = [&q, &k, &v, &dy].map(|x| gpu.upload(x).unwrap()).into();
        held.extend([&q, &k, &v].map(|x| gpu.upload(&vec![f32::NAN; x.len()]).unwrap()));
        let executable = gpu.prepare(program).unwrap();
        let mut rec = gpu.recorder();
        let operands: Vec<_> = held.iter().map(|x| Slice::from(x).untyped()).collect();
        executable.record(&mut rec, &operands).unwrap();
        rec.submit().unwrap();
        let want = attention_backward(&op, &q, &k, &v, &dy);
        let bound = attention_backward_bound(&op, &q, &k, &v, &dy);
        for i in 0..3 {
            let got = numbers(&held[4 + i].read().unwrap());
            assert_close(&format!("{op:?}, result {i}"), &got, &numbers(&want[i]), &bound[i]);
        }
    }
}

#[test]
fn any_sizes_of_heads_and_values_match_reference() {
    let Some(device) = devices().first() else { return };
    // The first is padded to 8.
    let sizes = [(7, 5), (300, 300), (70, 33), (5, 12), (1, 1), (7, 7)];
    for (i, &(d, e)) in sample(&sizes, 2).iter().enumerate() {
        let shape = [2, 2, 1, 9, 11, d];
        let op = op_of(shape).value_size(e).causal();
        let wide = d > 256;
        let refused = op.clone().variant("flash").plan::<f32>(&device.gpu).is_err();
        assert_eq!(refused, wide, "{d}");
        for variant in ["naive", "flash", "stored"].into_iter().filter(|v| !wide || *v != "flash") {
            let op = op.clone().variant(variant);
            let halves = variant != "stored";
            if turn(i, 2) || !halves {
                compare_one::<f32>(device, &op, &with_values(shape, e));
            }
            if turn(i + 1, 2) && halves {
                compare_one::<f16>(device, &op, &with_values(shape, e));
            }
        }
    }
}

#[test]
fn empty_extents_give_empty_or_zero_gradients() {
    let Some(device) = devices().first() else { return };
    let shapes = [
        [1, 2, 1, 0, 5, 8],
        [1, 2, 1, 5, 0, 8],
        [0, 2, 1, 5, 5, 8],
        [1, 2, 2, 0, 0, 7],
        [1, 2, 1, 0, 5, 7],
        [1, 0, 2, 5, 5, 8],
        [1, 0, 0, 5, 5, 8],
    ];
    for shape in shapes {
        compare_all::<f32>(device, shape, |op| op);
        compare_all::<f32>(device, shape, |op| op.causal());
        compare_all::<f16>(device, shape, |op| op.window(2));
    }
}

#[test]
fn special_numbers_spread_no_further_than_documented() {
    for device in devices().iter().filter(|device| device.main) {
        let shape @ [_, _, _, t, s, d] = [1, 4, 2, 20, 40, if all() { 40 } else { 8 }];
        for (part, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, f64::NAN), (3, f64::NEG_INFINITY)] {
            let mut x = operands::<f32>(shape);
            let row = [t, s, s, t][part] - 3;
            spoil(&mut x[part], d, [row], value);
            compare(device, &op_of(shape).causal(), &x);
        }
        // Scores of -infinity: no query adds anything.
        let mut x = operands::<f32>(shape);
        x[0].fill(1.0);
        x[1].fill(f32::NEG_INFINITY);
        let given = x.each_ref().map(|x| Given::Floats(x));
        for variant in ["naive", "flash", "stored"] {
            let got = run(&device.gpu, &op_of(shape).causal().variant(variant), &given);
            assert!(got[1..].iter().flatten().all(|x| *x == 0.0), "{variant}");
        }
    }
}

/// The text of `coop` with separate storage for own rows: emulated matrices lie in workgroup memory, and slopes replace
/// own rows there.
fn with_lasting_rows(text: &str) -> String {
    let (head, rest) = text.split_once("for (var walk =").unwrap();
    let place = head.lines().find(|line| line.starts_with("var<workgroup> wg_g:")).unwrap();
    let (mut enabled, mut out, mut barriers) = (String::new(), String::new(), 0);
    for line in head.lines() {
        // `enable` directives come first. Two barriers follow each strip of rows.
        let to = if line.starts_with("enable ") { &mut enabled } else { &mut out };
        *to += &line.replace("wg_g[", &format!("wg_own{}[", barriers / 2));
        to.push('\n');
        barriers += usize::from(line.contains("workgroupBarrier()"));
    }
    let strips = (0..barriers / 2).map(|i| place.replace("wg_g", &format!("wg_own{i}")) + "\n");
    format!("{enabled}{}{out}for (var walk ={rest}", strips.collect::<String>())
}

/// The kernels of `coop` on emulated matrices, with tiles that leave room for own rows.
#[test]
fn emulated_coop_matches_reference() {
    let Some(gpu) = gpu().filter(|gpu| gpu.profile().features.f16) else { return };
    type With = fn(AttentionBackward) -> AttentionBackward;
    let whole: [(Shape, u32, With); 5] = [
        ([1, 4, 2, 90, 130, 64], 20 << 10, |op| op.causal().saved()),
        ([2, 2, 2, 70, 90, 48], 20 << 10, |op| op.causal()),
        ([1, 2, 1, 70, 75, 80], 20 << 10, |op| op),
        ([1, 4, 2, 90, 130, 64], 20 << 10, |op| op.window(20)),
        // Two pairs of subgroups.
        ([1, 1, 1, 70, 200, 16], 22 << 10, |op| op.causal().window(50).scale(0.5)),
    ];
    let cases = whole.iter().flat_map(|case| ["coop", "coop-stored"].map(|variant| (variant, case)));
    for &(variant, &(shape, bytes, with)) in sample(&cases.collect::<Vec<_>>(), 2) {
        let [b, h, g, t, s, d] = shape;
        let op = with(op_of(shape)).variant(variant);
        let saves = op == op.clone().saved();
        let mut profile = with_matrices(gpu, 16);
        profile.limits.max_workgroup_bytes = bytes;
        let program = Op::<f16>::lower(&op, &profile).unwrap();
        let [q, k, v, dy] = operands::<f16>(shape);
        let mut held: Vec<_> = [&q, &k, &v, &dy].map(|x| gpu.upload(x).unwrap()).into();
        let results = [&q, &k, &v].map(|x| gpu.alloc::<f16>(x.len()).unwrap());
        let forward = Attention::new([b, h, t, d], [g, s]).causal();
        let none = AttentionInputs::default();
        let output = attention(&forward, &q, &k, &v, none);
        let logarithms = attention_logsumexp(&forward, &q, &k, none);
        let on_logarithms = gpu.upload(&logarithms).unwrap();
        held.extend(saves.then(|| gpu.upload(&output).unwrap()));
        // Scratch that nothing wrote is NaN.
        let scratch: Vec<Buffer<u32>> =
            program.scratch.iter().map(|bytes| gpu.upload(&vec![!0; *bytes as usize / 4]).unwrap()).collect();
        let mut rec = gpu.recorder();
        for dispatch in &program.dispatches {
            let kernel = &program.kernels[dispatch.kernel];
            let text = kernel.expand(Target::Naga).unwrap().text().to_owned();
            let on_matrices = text.contains("wgpu_cooperative_matrix");
            let text = match kernel.entry {
                "attention_backward_slopes" => without_matrices(&text, 16),
                _ if on_matrices => without_matrices(&with_lasting_rows(&text), 16),
                _ => text,
            };
            let own = gpu.kernel("coop", &text, kernel.entry).unwrap();
            let bound = dispatch.bindings.iter().map(|binding| match binding.resource {
                Resource::Operand(5) if saves => Arg::from(&on_logarithms),
                Resource::Operand(i) if i >= program.operands.len() - 3 => {
                    Arg::from(&results[i + 3 - program.operands.len()])
                }
                Resource::Operand(i) => Arg::from(&held[i]),
                Resource::Scratch(i) => Arg::from(&scratch[i]),
                _ => panic!("operands and scratch"),
            });
            let args: Vec<_> = std::iter::once(Arg::Uniform(&dispatch.params)).chain(bound).collect();
            let Grid::Direct(grid) = dispatch.grid else { panic!("known workgroups") };
            own.record(&mut rec, &args, grid).unwrap();
        }
        rec.submit().unwrap();
        let inputs = [&q[..], &k, &v, &dy];
        let (want, bound) = if saves {
            let want = attention_backward_saved(&op, inputs, &output, &logarithms);
            (want, attention_backward_saved_bound(&op, inputs, &output, &logarithms))
        } else {
            (attention_backward(&op, &q, &k, &v, &dy), attention_backward_bound(&op, &q, &k, &v, &dy))
        };
        for i in 0..3 {
            let got = numbers(&results[i].read().unwrap());
            assert_close(&format!("emulated {op:?}, result {i}"), &got, &numbers(&want[i]), &bound[i]);
        }
    }
}

/// Every head size, on devices with cooperative matrices.
#[test]
fn coop_matches_reference_on_cooperative_matrices() {
    for device in devices().iter().filter(|d| d.main && d.gpu.profile().cooperative_side() == Some(16)) {
        for d in [16, 64, 80, 128] {
            compare_all::<f16>(device, [1, 2, 1, 150, 170, d], |op| op);
            compare_all::<f16>(device, [2, 2, 2, 129, 140, d], |op| op.causal());
            compare_all::<f16>(device, [1, 4, 2, 70, 300, d], |op| op.window(33).scale(0.5));
        }
        compare_all::<f16>(device, [1, 2, 1, 60, 70, 37], |op| op);
    }
}

#[test]
fn scores_take_no_scratch() {
    // 4 TiB of scores in f32.
    let op = AttentionBackward::new([1, 1, 1 << 20, 8], [1, 1 << 20]);
    for variant in ["naive", "flash"] {
        let program = Op::<f32>::lower(&op.clone().variant(variant), &DeviceProfile::h100()).unwrap();
        assert_eq!((program.scratch_bytes(), program.dispatches.len()), (8 << 20, 2), "{variant}");
    }
}

/// The op on a device whose bindings hold 64 KiB.
struct Chunked(AttentionBackward);

impl Op<f32> for Chunked {
    fn lower(&self, profile: &DeviceProfile) -> tilework::Result<Program> {
        let mut small = profile.clone();
        small.limits.max_storage_binding = 1 << 16;
        Op::<f32>::lower(&self.0, &small)
    }
}

#[test]
fn large_batches_are_computed_in_chunks() {
    let Some(device) = devices().first() else { return };
    let shape = [3, 8, 4, 200, 50, 8];
    let [q, k, v, dy] = operands::<f32>(shape);
    for variant in ["naive", "flash"] {
        let op = op_of(shape).variant(variant);
        // A kv head has 12,800 bytes of q: four fit a binding wherever they start.
        assert_eq!(Chunked(op.clone()).lower(device.gpu.profile()).unwrap().dispatches.len(), 6);
        let want = attention_backward(&op, &q, &k, &v, &dy);
        let bound = attention_backward_bound(&op, &q, &k, &v, &dy);
        check(device, variant, &Chunked(op), &[&q, &k, &v, &dy], &want, &bound);
    }
    let e = Chunked(op_of([1, 8, 1, 6000, 50, 8])).lower(device.gpu.profile()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TooLarge);
}

#[test]
fn rejects_bad_requests() {
    let Some(gpu) = gpu() else { return };
    let new = AttentionBackward::new;
    let rejects = |op: AttentionBackward, kind| {
        let e = op.plan::<f32>(gpu).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().starts_with("attention-backward"), "{e}");
    };
    rejects(new([1, 3, 4, 8], [2, 4]), ErrorKind::Shape);
    rejects(new([1, 2, 4, 0], [2, 4]), ErrorKind::Shape);
    rejects(new([1, 2, 4, 8], [2, 4]).value_size(0), ErrorKind::Shape);
    rejects(new([1, 2, 4, 264], [2, 4]).variant("flash"), ErrorKind::Unsupported);
    rejects(new([1, 2, 4, 8], [2, 4]).window(0), ErrorKind::InvalidArgument);
    rejects(new([1, 2, 4, 8], [2, 4]).scale(f32::NAN), ErrorKind::InvalidArgument);
    rejects(new([1, 2, 4, 8], [2, 4]).variant("fast"), ErrorKind::InvalidArgument);
}
