//! The `decode` example: the decoder against f64 and against itself token by token, its head, and its errors.

use super::common::Random;
use super::common::network::exact::{Heads, add, attention, linear};
use super::common::network::layers::{Linear, Storage};
use super::program::{Example, Folder, path};
use crate::support::coverage::turn;
use crate::support::gpu;
use parts::{cli, model, text, train, transformer, weights};
use tilework::Activation;
use tilework::attention::KvType;
use tilework::reference::activate;

#[path = "../../examples/decode"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod head;
    pub(super) mod model;
    pub(super) mod text;
    pub(super) mod train;
    pub(super) mod transformer;
    pub(super) mod weights;
}

const SHAPE: weights::Shape = weights::Shape { layers: 2, width: 32, heads: 4, kv_heads: 2, context: 13 };

/// A decoder whose head is random too.
fn decoder() -> weights::Decoder {
    let mut decoder = weights::Decoder::new(SHAPE, 5);
    decoder.head.weight = (0..256).flat_map(|i| decoder.embeddings[i * 32..(i + 1) * 32].to_vec()).collect();
    decoder
}

/// All logits of a text, in f64 on the CPU.
fn exact(decoder: &weights::Decoder, tokens: &[u8]) -> Vec<f64> {
    let shape = decoder.shape;
    let (width, size) = (shape.width, shape.size());
    let of = |token: &u8| decoder.embeddings[usize::from(*token) * width..][..width].iter().map(|x| f64::from(*x));
    let mut x: Vec<f64> = tokens.iter().flat_map(of).collect();
    let by = |x: &[f64], layer: &Linear| linear(x, layer.inputs, &layer.weight, &layer.bias);
    let norm = |x: &[f64], gamma: &[f32]| -> Vec<f64> {
        let row = |row: &[f64]| {
            let mean = row.iter().map(|v| v * v).sum::<f64>() / width as f64;
            let factor = 1.0 / (mean + f64::from(weights::EPS)).sqrt();
            row.iter().zip(gamma).map(|(v, g)| v * factor * f64::from(*g)).collect::<Vec<_>>()
        };
        x.chunks(width).flat_map(row).collect()
    };
    // Pairs of elements, half a head apart, rotated by position times 10000^(-2 i / size).
    let turn = |x: &mut [f64], heads: usize| {
        for (place, row) in x.chunks_mut(heads * size).enumerate() {
            for head in row.chunks_mut(size) {
                let (first, second) = head.split_at_mut(size / 2);
                for (i, (a, b)) in first.iter_mut().zip(second).enumerate() {
                    let angle = place as f64 / 10_000f64.powf(2.0 * i as f64 / size as f64);
                    (*a, *b) = (*a * angle.cos() - *b * angle.sin(), *b * angle.cos() + *a * angle.sin());
                }
            }
        }
    };
    for layer in &decoder.layers {
        let all = by(&norm(&x, &layer.before), &layer.projection);
        let part = |first: usize, heads: usize| -> Vec<f64> {
            let rows = all.chunks(shape.all_heads() * size);
            rows.flat_map(|row| row[first * size..(first + heads) * size].to_vec()).collect()
        };
        let (mut q, mut k) = (part(0, shape.heads), part(shape.heads, shape.kv_heads));
        let v = part(shape.heads + shape.kv_heads, shape.kv_heads);
        turn(&mut q, shape.heads);
        turn(&mut k, shape.kv_heads);
        let heads = Heads { queries: shape.heads, keys: shape.kv_heads, size, causal: true };
        add(&mut x, &by(&attention(&q, &k, &v, heads), &layer.attended));
        let mut inner = by(&norm(&x, &layer.between), &layer.up);
        inner.iter_mut().for_each(|v| *v = activate(Activation::Gelu, *v));
        add(&mut x, &by(&inner, &layer.down));
    }
    by(&norm(&x, &decoder.norm), &decoder.head)
}

/// The largest difference, relative to the largest expected value.
fn off(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let largest = want.iter().fold(0f64, |most, x| most.max(x.abs()));
    got.iter().zip(want).map(|(g, w)| (f64::from(*g) - w).abs()).fold(0f64, f64::max) / largest
}

#[test]
fn decoder_matches_f64_and_itself_token_by_token() {
    let Some(gpu) = gpu() else { return };
    let (decoder, tokens) = (decoder(), b"Hello, tokens");
    let want = exact(&decoder, tokens);
    for (i, storage) in Storage::ALL.into_iter().enumerate() {
        let model = model::Model::new(gpu, &decoder, storage).unwrap();
        // In the default run each meets one.
        let kinds = KvType::ALL.into_iter().enumerate().filter(|(j, _)| turn(i + j, 4));
        for kv in kinds.map(|(_, kv)| kv) {
            let what = format!("{} weights, {} cache", storage.name(), kv.name());
            let whole = model.pass(tokens.len(), &model.cache(kv).unwrap()).unwrap();
            whole.run(gpu, tokens, 0).unwrap();
            let got = whole.logits.read().unwrap();
            // The rounding of a number, times its growth through the layers.
            let bound = |name| match name {
                "f32" => 1e-5,
                "f16" => 3e-3,
                "int8" => 5e-2,
                _ => 0.2,
            };
            let largest = bound(storage.name()) + bound(kv.name());
            assert!(off(&got, &want) < largest, "{what}: off by {} of the largest", off(&got, &want));
            // Some tokens at once, the others one by one.
            let cache = model.cache(kv).unwrap();
            let (first, one) = (model.pass(5, &cache).unwrap(), model.pass(1, &cache).unwrap());
            first.run(gpu, &tokens[..5], 0).unwrap();
            let mut logits = first.logits.read().unwrap();
            for place in 5..tokens.len() {
                one.run(gpu, &tokens[place..=place], place).unwrap();
                logits.extend(one.logits.read().unwrap());
            }
            let same: Vec<f64> = got.iter().map(|x| f64::from(*x)).collect();
            // If one bit decides a rounding tie of bytes, the whole row may move by a step.
            let bound = if kv == KvType::F32 && storage == Storage::F32 { 1e-5 } else { 2e-2 };
            assert!(off(&logits, &same) < bound, "{what}: one by one off by {}", off(&logits, &same));
        }
    }
}

#[test]
fn decode_reports_the_cost_of_quantisation() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("decode");
    let file = folder.file("a.txt", "the cat sat on the mat and the dog sat on the log. ".repeat(16).as_bytes());
    let (program, name) = (Example("decode", cli::run), path(&file));
    let small = ["--width", "32", "--heads", "4", "--context", "48", "--layers", "1", "--epochs", "60"];
    let out = program.succeeds(&[&[name], &small[..]].concat());
    let row = |name: &str| -> Vec<f64> {
        let line = out.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().rev().take(4).map(|word| word.parse().unwrap()).collect()
    };
    // The head has learned which byte follows which: a perplexity of 256 would mean that it learned nothing.
    for name in ["f32 ", "f16 ", "int8 ", "fp8 "] {
        assert!(row(name).iter().all(|perplexity| (1.0..8.0).contains(perplexity)), "{out}");
    }
    assert_eq!(row("bytes a token"), [48.0, 48.0, 64.0, 128.0]);
    assert!(out.contains("are as those of the whole pass"), "{out}");

    program.rejects_early(&[
        (&[], "no text is named"),
        (&[name, "--heads", "3"], "must be a multiple of --kv-heads, 2"),
        (&[name, "--width", "100"], "a multiple of 64"),
        (&[name, "--layers", "0"], "--layers"),
        (&[name, "--layers", "2", "--layers", "2"], "--layers is given twice"),
        (&[name, "--layers", "1000", "--width", "16384"], "2147483648000 parameters"),
        (&[name, "--width", "18446744073709551615"], "parameters"),
        (&[name, "--bytes", "99999999999"], "--bytes 99999999999"),
        (&[name, "--context", "1"], "--context 1"),
        (&[name, "--context", "500"], "at least two pieces of 500"),
        (&[name, "--seed", "x"], "x"),
        (&["nowhere.txt"], "nowhere.txt"),
    ]);
}

#[test]
fn counting_predicts_repeated_text() {
    // Four pieces of "abab...": three to fit, one to evaluate.
    let text = text::Text::of(&b"ab".repeat(80), 40).unwrap();
    assert_eq!((text.fitted.len(), text.judged.len()), (3, 1));
    let [single, pairs] = text.by_counting();
    assert!((2.0..2.4).contains(&single) && (1.0..1.3).contains(&pairs), "{single} {pairs}");
}

#[test]
fn gradients_of_the_transformer_match_differences_of_its_loss() {
    let Some(gpu) = gpu() else { return };
    let shape = weights::Shape { layers: 2, width: 32, heads: 4, kv_heads: 2, context: 6 };
    let symbols = train::Symbols::of(b"abcabdabeabf, abc");
    let tensors = transformer::Tensors::new(&shape, symbols.count());
    let start = tensors.initial(3);
    let parameters = gpu.upload(&start).unwrap();
    let forward = transformer::Forward::new(gpu, shape, 3, symbols.count(), &parameters).unwrap();
    let trainer = transformer::Trainer::new(forward, 0.01).unwrap();
    let [ids, next] = symbols.draw(&mut Random::new(1), 3, shape.context);
    trainer.differentiate(&ids, &next).unwrap();
    let gradients = trainer.gradients.read().unwrap();
    for tensor in &tensors.all {
        // Along the tensor's gradient the loss grows by its square.
        let own = &gradients[tensor.at..][..tensor.len()];
        let square: f32 = own.iter().map(|x| x * x).sum();
        assert!(square > 0.0, "{tensor:?}");
        let step = 0.005 / square.sqrt();
        let loss = |by: f32| {
            let mut moved = start.clone();
            moved[tensor.at..][..tensor.len()].iter_mut().zip(own).for_each(|(x, g)| *x += by * g);
            parameters.slice(..).unwrap().write(&moved).unwrap();
            trainer.differentiate(&ids, &next).unwrap()
        };
        let slope = (loss(step) - loss(-step)) / (2.0 * step);
        assert!((slope / square - 1.0).abs() < 0.01, "{tensor:?}: {slope}, {square}");
    }
}

#[test]
fn train_learns_a_text_and_writes_a_line() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("train");
    let file = folder.file("a.txt", "the cat sat on the mat. ".repeat(20).as_bytes());
    let (program, name, picture) = (Example("decode", cli::run), path(&file), folder.0.join("loss.svg"));
    let small = ["--width", "32", "--heads", "4", "--context", "24", "--rate", "0.01", "--steps", "60"];
    let more = ["--batch", "4", "--length", "24", "--curve", path(&picture)];
    let out = program.succeeds(&[&["train", name], &small[..], &more].concat());
    let losses: Vec<f32> = (out.lines().filter(|line| line.starts_with("step ")))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    // There are 11 kinds of characters, and ln 11 is 2.4.
    assert!(losses.len() == 10 && losses[0] > 1.5 && losses[9] < 0.3, "{out}");
    let line = out.lines().last().unwrap();
    assert!(line.len() == 24 && line.contains(" the "), "{out}");
    assert!(std::fs::read_to_string(&picture).unwrap().contains("Loss of"), "{out}");

    program.rejects_early(&[
        (&["train"], "no text is named"),
        (&["train", name, "--epochs", "3"], "--epochs: not used with `train`"),
        (&[name, "--steps", "3"], "--steps: needs `train`"),
        (&["train", name, "--context", "480"], "480 bytes of 11 kinds are too few"),
        (&["train", name, "--steps", "0"], "--steps 0"),
        (&["train", name, "--rate", "-1"], "rate"),
        (&["train", name, "--curve", "loss.txt"], ".svg or .png"),
        (&["train", "nowhere.txt"], "nowhere.txt"),
    ]);
}
