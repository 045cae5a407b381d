//! What `Attention` saves for its gradients, and `AttentionBackward` from it.

use crate::nn::training::{names, random};
use crate::support::coverage::{all, sample};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::attention::KvType;
use tilework::program::{Ask, DeviceProfile, Op, Program, Settings};
use tilework::reference::{
    AttentionInputs, attention, attention_backward, attention_backward_bound, attention_backward_saved,
    attention_backward_saved_bound, attention_logsumexp, attention_logsumexp_bound,
};
use tilework::{Attention, AttentionBackward, Element, ErrorKind, Gpu, HostArray, Plannable};

/// Batch, heads, kv heads, queries, keys, sizes of heads and of values.
type Shape = [usize; 7];

/// Returns q, k, v and dy.
fn operands<T: Sample>([b, h, g, t, s, d, e]: Shape) -> [Vec<T>; 4] {
    [random(1, b * h * t * d), random(2, b * g * s * d), random(3, b * g * s * e), random(4, b * h * t * e)]
}

/// Runs the forward pass and returns the output and the logarithms.
fn forward<T: Sample>(gpu: &Gpu, op: &Attention, [q, k, v]: [&[T]; 3], e: usize) -> (Vec<T>, Vec<f32>)
where
    Attention: Op<T>,
{
    let plan = op.plan::<T>(gpu).unwrap();
    let rows = plan.program().operands.last().unwrap().len;
    let [q, k, v] = [q, k, v].map(|x| gpu.upload(x).unwrap());
    let output = gpu.upload(&vec![T::from_f64(f64::NAN); rows * e]).unwrap();
    let logarithms = gpu.upload(&vec![f32::NAN; rows + 1]).unwrap();
    let mut rec = gpu.recorder();
    let with = plan.with().with_logsumexp(logarithms.slice(..rows).unwrap());
    with.record(&mut rec, &q, &k, &v, &output).unwrap();
    rec.submit().unwrap();
    let mut got = logarithms.read().unwrap();
    assert!(got.pop().unwrap().is_nan(), "{op:?} writes after the end");
    (output.read().unwrap(), got)
}

fn check_logsumexp<T: Sample>(device: &Device, shape: Shape, with: fn(Attention) -> Attention)
where
    Attention: Op<T>,
{
    let [b, h, g, t, s, d, e] = shape;
    let [q, k, v, _] = operands::<T>(shape);
    let kv = if T::DTYPE == f16::DTYPE { KvType::F16 } else { KvType::F32 };
    for variant in names(Attention::variants()) {
        let op = with(Attention::new([b, h, t, d], [g, s])).value_size(e).kv(kv).logsumexp().variant(variant);
        match op.plan::<T>(&device.gpu) {
            Err(e) if variant == "coop" && e.kind() == ErrorKind::Unsupported => continue,
            plan => drop(plan.unwrap()),
        }
        let (_, got) = forward(&device.gpu, &op, [&q, &k, &v], e);
        let inputs = AttentionInputs::default();
        let (want, bound) = (attention_logsumexp(&op, &q, &k, inputs), attention_logsumexp_bound(&op, &q, &k, inputs));
        // Matrices may truncate sums.
        let bound: Vec<f64> = bound.iter().map(|b| if variant == "coop" { 4.0 * b } else { *b }).collect();
        assert_close(&format!("{}: {op:?}", device.label), &numbers(&got), &numbers(&want), &bound);
    }
}

#[test]
fn logarithms_of_sums_match_reference() {
    for device in devices() {
        // The first queries see no key.
        check_logsumexp::<f32>(device, [2, 4, 2, 9, 5, 8, 8], |op| op.causal());
        check_logsumexp::<f16>(device, [1, 2, 2, 70, 130, 64, 64], |op| op.causal());
        if all() {
            check_logsumexp::<f32>(device, [2, 4, 2, 9, 5, 24, 40], |op| op.causal());
            check_logsumexp::<f16>(device, [1, 2, 2, 70, 130, 64, 64], |op| op.window(50));
        }
        if device.main {
            check_logsumexp::<f32>(device, [1, 2, 1, 3, 0, 8, 7], |op| op);
            if all() {
                check_logsumexp::<f16>(device, [1, 2, 1, 1, 300, 33, 33], |op| op.softcap(2.0));
            }
        }
    }
}

/// Runs the backward pass on what the forward pass saved.
fn backward<T: Sample>(
    gpu: &Gpu, op: &impl Op<T>, [q, k, v, dy]: &[Vec<T>; 4], (output, logarithms): (&[T], &[f32]),
) -> [Vec<T>; 3] {
    let executable = op.plan::<T>(gpu).unwrap().into_executable();
    let given = [q, k, v, dy].map(|x| gpu.upload(x).unwrap());
    let (output, logarithms) = (gpu.upload(output).unwrap(), gpu.upload(logarithms).unwrap());
    let results = [q, k, v].map(|x| gpu.upload(&vec![T::from_f64(f64::NAN); x.len()]).unwrap());
    let raw = |x| tilework::Slice::from(x).untyped();
    let mut all: Vec<_> = given.iter().map(raw).collect();
    all.push(raw(&output));
    all.push(tilework::Slice::from(&logarithms).untyped());
    all.extend(results.iter().map(raw));
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &all).unwrap();
    rec.submit().unwrap();
    results.map(|x| x.read().unwrap())
}

/// Options of both passes.
#[derive(Clone, Copy, Default)]
struct Options {
    causal: bool,
    window: Option<usize>,
}

/// Returns both passes with the same options.
fn passes<T: Element>([b, h, g, t, s, d, e]: Shape, options: Options) -> (Attention, AttentionBackward) {
    let kv = if T::DTYPE == f16::DTYPE { KvType::F16 } else { KvType::F32 };
    let mut forward = Attention::new([b, h, t, d], [g, s]).value_size(e).kv(kv);
    let mut backward = AttentionBackward::new([b, h, t, d], [g, s]).value_size(e);
    if options.causal {
        (forward, backward) = (forward.causal(), backward.causal());
    }
    if let Some(window) = options.window {
        (forward, backward) = (forward.window(window), backward.window(window));
    }
    (forward, backward)
}

fn check_gradients<T: Sample>(device: &Device, shape: Shape, options: Options)
where
    AttentionBackward: Op<T>,
{
    let x = operands::<T>(shape);
    let (forward, op) = passes::<T>(shape, options);
    let op = op.saved();
    let none = AttentionInputs::default();
    let output = attention(&forward, &x[0], &x[1], &x[2], none);
    let logarithms = attention_logsumexp(&forward, &x[0], &x[1], none);
    let inputs = x.each_ref().map(Vec::as_slice);
    let want = attention_backward_saved(&op, inputs, &output, &logarithms);
    for variant in names(AttentionBackward::variants()) {
        let op = op.clone().variant(variant);
        match Op::<T>::lower(&op, device.gpu.profile()) {
            Err(e) if ["coop", "coop-stored", "stored"].contains(&variant) && e.kind() == ErrorKind::Unsupported => {
                continue;
            }
            program => drop(program.unwrap()),
        }
        let bound = attention_backward_saved_bound(&op, inputs, &output, &logarithms);
        let got = backward(&device.gpu, &op, &x, (&output, &logarithms));
        for i in 0..3 {
            let what = format!("{}: {op:?}, result {i}", device.label);
            assert_close(&what, &numbers(&got[i]), &numbers(&want[i]), &bound[i]);
        }
    }
}

#[test]
fn gradients_from_saved_results_match_reference() {
    let causal = Options { causal: true, window: None };
    for device in devices() {
        // Heads of 8 and 64 elements as in the other tests, which compile the same kernels.
        check_gradients::<f32>(device, [2, 4, 2, 40, 37, 8, 8], causal);
        if device.main || all() {
            let window = all().then_some(40);
            check_gradients::<f16>(device, [1, 2, 2, 37, 70, 64, 64], Options { causal: true, window });
        }
        if device.main {
            // Padded rows, and rows of single words.
            for &sizes in sample(&[[7, 5], [33, 20], [7, 12], [2, 2]], 1) {
                check_gradients::<f32>(device, [1, 2, 1, 9, 11, sizes[0], sizes[1]], causal);
                if all() {
                    check_gradients::<f16>(device, [1, 2, 1, 9, 11, sizes[0], sizes[1]], Options::default());
                }
            }
            // Steps of queries.
            check_gradients::<f32>(device, [1, 2, 2, 700, 650, 8, 8], causal);
            check_gradients::<f32>(device, [1, 2, 2, 0, 5, 8, 8], causal);
            check_gradients::<f32>(device, [1, 2, 2, 3, 0, 8, 8], causal);
            if all() {
                check_gradients::<f16>(
                    device,
                    [1, 6, 2, 150, 170, 128, 128],
                    Options { causal: false, window: Some(50) },
                );
            }
        }
    }
}

/// Both passes on the device: the gradients are those without saved results.
#[test]
fn passes_together_give_the_gradients() {
    fn compare<T: Sample>(device: &Device, shape: Shape, roundings: f64)
    where
        Attention: Op<T>,
        AttentionBackward: Op<T>,
    {
        let options = Options { causal: true, window: None };
        let (forward_op, op) = passes::<T>(shape, options);
        let x = operands::<T>(shape);
        let (output, logarithms) = forward(&device.gpu, &forward_op.logsumexp(), [&x[0], &x[1], &x[2]], shape[6]);
        let got = backward(&device.gpu, &op.clone().saved(), &x, (&output, &logarithms));
        let want = attention_backward(&op, &x[0], &x[1], &x[2], &x[3]);
        let bound = attention_backward_bound(&op, &x[0], &x[1], &x[2], &x[3]);
        for i in 0..3 {
            // Rounding of the output and of the logarithms adds to the bound.
            let bound: Vec<f64> = bound[i].iter().map(|b| 4.0 * b + roundings).collect();
            assert_close(&format!("{}: result {i}", device.label), &numbers(&got[i]), &numbers(&want[i]), &bound);
        }
    }
    for device in devices() {
        compare::<f32>(device, [1, 4, 2, 70, 70, 8, 8], 1e-5);
        compare::<f16>(device, [1, 2, 2, 70, 70, 64, 64], 1e-2);
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
fn saved_results_are_read_in_chunks() {
    let Some(device) = devices().first() else { return };
    let shape = [3, 8, 4, 200, 50, 8, 8];
    let (forward, op) = passes::<f32>(shape, Options::default());
    let x = operands::<f32>(shape);
    let none = AttentionInputs::default();
    let output = attention(&forward, &x[0], &x[1], &x[2], none);
    let logarithms = attention_logsumexp(&forward, &x[0], &x[1], none);
    let op = Chunked(op.saved().variant("flash"));
    assert_eq!(op.lower(device.gpu.profile()).unwrap().dispatches.len(), 9);
    let got = backward(&device.gpu, &op, &x, (&output, &logarithms));
    let inputs = x.each_ref().map(Vec::as_slice);
    let want = attention_backward_saved(&op.0, inputs, &output, &logarithms);
    let bound = attention_backward_saved_bound(&op.0, inputs, &output, &logarithms);
    for i in 0..3 {
        assert_close(&format!("result {i}"), &numbers(&got[i]), &numbers(&want[i]), &bound[i]);
    }
}

#[test]
fn saved_results_must_be_given() {
    let Some(gpu) = gpu() else { return };
    let x = gpu.alloc_zeroed::<f32>(32).unwrap();
    let [dq, dk, dv] = [0; 3].map(|_| gpu.alloc::<f32>(32).unwrap());
    let plan = AttentionBackward::new([1, 1, 4, 8], [1, 4]).saved().plan::<f32>(gpu).unwrap();
    let e = plan.record(&mut gpu.recorder(), &x, &x, &x, &x, &dq, &dk, &dv).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    assert!(e.to_string().contains("output"), "{e}");
    let rows = gpu.alloc_zeroed::<f32>(3).unwrap();
    let with = plan.with().with_saved(&x, &rows);
    let e = with.record(&mut gpu.recorder(), &x, &x, &x, &x, &dq, &dk, &dv).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("logsumexp"), "{e}");
}

/// Optional results by name: the declared shapes are those of the results that the options ask for.
#[test]
fn results_by_name_have_their_shapes() {
    let op = tilework::operations().find(|op| op.name == "attention").unwrap();
    for (stage, flag, outputs) in [(false, true, 2), (true, false, 2), (true, true, 3), (false, false, 1)] {
        let mut settings = Settings::new(op);
        if stage {
            settings.text("scores", "weights").unwrap();
        }
        if flag {
            settings.flag("logsumexp").unwrap();
        }
        let x = || HostArray::new(&[1, 2, 5, 8], vec![0.5f32; 80]).unwrap();
        let call = op.build(Ask::new(&settings).inputs([x(), x(), x()])).unwrap();
        assert_eq!(call.outputs().count(), outputs);
        let wanted = tilework::reference::wanted(op, &call).unwrap().unwrap();
        assert_eq!(wanted.len(), outputs);
        assert!(!flag || wanted[outputs - 1].array.shape() == [1, 2, 5]);
    }
}
