//! The `encoder` example: its tokens, a small and a published network against f64, and malformed files.

use super::program::{Example, Folder, path};
use crate::support::{Random, gpu};
use parts::{cli, model, tokens};
use safetensors::tensor::{Dtype, TensorView, serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tilework::Gpu;

#[path = "../../examples/encoder"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod exact;
    pub(super) mod model;
    pub(super) mod tokens;
    mod weights;
}

const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncafe\nun\n##aff\n##able\n,\n!\n東\na\n##a\n\u{394}\n$\n";

/// The tensors of an encoder of two layers, of vectors of 16 in two heads, for twelve places.
fn tensors(pieces: usize) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut random = Random::new(7);
    let mut all = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], around: f64, spread: f64| {
        let values = (0..shape.iter().product()).map(|_| (around + spread * random.unit()) as f32).collect();
        all.insert(name, (shape.to_vec(), values));
    };
    for (name, rows) in [("word", pieces), ("position", 12), ("token_type", 2)] {
        add(format!("embeddings.{name}_embeddings.weight"), &[rows, 16], 0.0, 1.0);
    }
    let mut norms = vec!["embeddings".to_owned()];
    for layer in (0..2).map(|i| format!("encoder.layer.{i}")) {
        for (name, outputs, inputs) in [
            ("attention.self.query", 16, 16),
            ("attention.self.key", 16, 16),
            ("attention.self.value", 16, 16),
            ("attention.output.dense", 16, 16),
            ("intermediate.dense", 24, 16),
            ("output.dense", 16, 24),
        ] {
            add(format!("{layer}.{name}.weight"), &[outputs, inputs], 0.0, 0.5);
            add(format!("{layer}.{name}.bias"), &[outputs], 0.0, 0.5);
        }
        norms.extend([format!("{layer}.attention.output"), format!("{layer}.output")]);
    }
    for norm in norms {
        add(format!("{norm}.LayerNorm.weight"), &[16], 1.0, 0.2);
        add(format!("{norm}.LayerNorm.bias"), &[16], 0.0, 0.2);
    }
    all
}

fn save(path: &Path, tensors: &BTreeMap<String, (Vec<usize>, Vec<f32>)>) {
    let bytes: Vec<Vec<u8>> = tensors.values().map(|(_, values)| bytemuck::cast_slice(values).to_vec()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, (shape, _)), bytes)| (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    fs::write(path, serialize(views, None).unwrap()).unwrap();
}

/// A folder for a test, with weights and a vocabulary.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("encoder-{name}"));
    save(&folder.0.join("model.safetensors"), &tensors(PIECES.lines().count()));
    folder.file("vocab.txt", PIECES.as_bytes());
    folder
}

const PROGRAM: Example = Example("encoder", cli::run);

/// Arguments with the files of a folder.
fn with_files(folder: &Path, args: &[&str]) -> Vec<String> {
    let [weights, vocabulary] = ["model.safetensors", "vocab.txt"].map(|name| path(&folder.join(name)).to_owned());
    let files = ["--weights".to_owned(), weights, "--vocab".to_owned(), vocabulary];
    files.into_iter().chain(args.iter().map(|arg| (*arg).to_owned())).collect()
}

fn succeeds(folder: &Path, args: &[&str]) -> String {
    PROGRAM.succeeds(&with_files(folder, args).iter().map(String::as_str).collect::<Vec<_>>())
}

/// The precisions that the device has kernels for.
fn precisions(gpu: &Gpu) -> Vec<&'static str> {
    let all = model::PRECISIONS.iter().map(|(storage, _)| storage.name());
    all.filter(|name| *name != "f16" || gpu.profile().features.f16).collect()
}

#[test]
fn words_split_into_their_longest_pieces() {
    let vocabulary = tokens::Vocabulary::parse(PIECES).unwrap();
    for (text, wanted) in [
        ("", vec![2, 3]),
        ("The cafe,", vec![2, 4, 5, 9, 3]),
        // Removes accents, precomposed or combining, and control characters.
        ("CAF\u{c9} cafe\u{301} c\u{0}a\u{200b}fe", vec![2, 5, 5, 5, 3]),
        ("unaffable the!the", vec![2, 6, 7, 8, 4, 10, 4, 3]),
        // A word without a complete split is unknown as a whole.
        ("unaffablex the", vec![2, 1, 4, 3]),
        ("the東\u{a0}the\nthe", vec![2, 4, 11, 4, 4, 3]),
        // The vocabulary's capital letter never matches: words are lowercase.
        ("\u{394} $$", vec![2, 1, 15, 15, 3]),
    ] {
        assert_eq!(vocabulary.tokens(text, 100), wanted, "{text}");
    }
    assert_eq!(vocabulary.tokens("the the the the", 4), [2, 4, 4, 3]);
    let long = |n: usize| vocabulary.tokens(&"a".repeat(n), 200).len();
    assert_eq!((long(100), long(101)), (102, 3));
}

#[test]
fn encoder_matches_f64_in_every_precision() {
    let Some(gpu) = gpu() else { return };
    let folder = folder("matches");
    let sentences = ["the cafe, unaffable!", "a aaa 東 $", "", "the the the the the the the the the the the the the"];
    for precision in precisions(gpu) {
        for batch in ["3", "1"] {
            let options = ["--heads", "2", "--precision", precision, "--batch", batch, "--check"];
            let out = succeeds(&folder.0, &[options.as_slice(), &sentences].concat());
            assert!(out.contains("right: smallest cosine") && out.lines().count() == 6, "{out}");
        }
    }
    let out = succeeds(&folder.0, &["--heads", "2", "--batch", "2", "--bench", "the", "a,"]);
    let rates: Vec<_> = out.lines().rev().take(2).map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert!(rates[0][..2] == ["2", "7"] && rates[1][..2] == ["1", "3"], "{out}");
}

#[test]
fn encoder_rejects_invalid_models() {
    if gpu().is_none() {
        return;
    }
    let folder = folder("refuses");
    let refused = |args: &[&str], text: &str| {
        let args = with_files(&folder.0, args);
        assert_eq!(PROGRAM.rejects(&args.iter().map(String::as_str).collect::<Vec<_>>(), text), "");
    };
    let usual = ["--heads", "2", "the"];
    refused(&[], "no sentence given");
    refused(&["--precision", "f8", "the"], "--precision f8");
    refused(&["--batch", "0", "the"], "--batch 0");
    refused(&["--batch", "999999999999", "the"], "--batch 999999999999");
    refused(&["--bench", "--bench", "the"], "--bench is given twice");
    refused(&["--heads", "3", "the"], "3 heads (--heads)");

    let file = folder.0.join("model.safetensors");
    let whole = fs::read(&file).unwrap();
    let all = tensors(PIECES.lines().count());
    let changed = |name: &str, shape: Option<&[usize]>, text: &str| {
        let mut tensors = all.clone();
        let (_, values) = tensors.remove(name).unwrap();
        if let Some(shape) = shape {
            let n = shape.iter().product();
            tensors.insert(name.to_owned(), (shape.to_vec(), values.into_iter().cycle().take(n).collect()));
        }
        save(&file, &tensors);
        refused(&usual, text);
    };
    changed("embeddings.word_embeddings.weight", None, "has no tensor `embeddings.word_embeddings.weight`");
    changed("embeddings.word_embeddings.weight", Some(&[256]), "must have two extents");
    changed("embeddings.word_embeddings.weight", Some(&[17, 16]), "has 16 pieces; the encoder");
    changed("embeddings.position_embeddings.weight", Some(&[12, 8]), "[12, 8] of F32; the encoder needs [12, 16]");
    changed(
        "encoder.layer.1.output.dense.bias",
        None,
        "has no tensor `encoder.layer.1.output.dense.bias` of shape [16]",
    );
    changed("encoder.layer.1.intermediate.dense.weight", Some(&[16, 24]), "encoder.layer.1.intermediate");
    changed("encoder.layer.0.attention.self.query.weight", None, "encoder.layer.0.attention.self.query.weight");
    let mut tensors = all.clone();
    tensors.get_mut("embeddings.LayerNorm.bias").unwrap().1[3] = f32::NAN;
    save(&file, &tensors);
    refused(&usual, "`embeddings.LayerNorm.bias` holds NaN");
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    refused(&usual, "is not a safetensors file");
    fs::write(&file, "{}").unwrap();
    refused(&usual, "is not a safetensors file");
    fs::write(&file, &whole).unwrap();

    let vocabulary = folder.0.join("vocab.txt");
    fs::write(&vocabulary, PIECES.replace("[SEP]", "end")).unwrap();
    refused(&usual, "has no line `[SEP]`");
    fs::write(&vocabulary, PIECES.replace("cafe", "the")).unwrap();
    refused(&usual, "line 6 repeats `the` of line 5");
    fs::write(&vocabulary, format!("{PIECES}more\n")).unwrap();
    refused(&usual, "has 17 pieces");
    fs::write(&vocabulary, [0xff, 0xfe]).unwrap();
    refused(&usual, "UTF-8");
    fs::remove_file(&vocabulary).unwrap();
    refused(&usual, "vocab.txt");
}

/// The encoder of six layers that .ci/oracles fetches, in the folder that TILEWORK_MINILM names. Tokens are from
/// Hugging Face's tokenizers 0.23; cosines from a forward pass in f64 by NumPy.
#[test]
fn published_weights_reproduce_published_similarities() {
    let (Some(gpu), Some(folder)) = (gpu(), std::env::var_os("TILEWORK_MINILM").map(PathBuf::from)) else {
        eprintln!("skipped: set TILEWORK_MINILM to the folder of the encoder (.ci/oracles fetches it)");
        return;
    };
    let vocabulary = tokens::Vocabulary::read(&folder.join("vocab.txt")).unwrap();
    for (text, wanted) in [
        ("A man is eating food.", vec![1037, 2158, 2003, 5983, 2833, 1012]),
        (
            "Crème brûlée, naïve façade & Ångström",
            vec![13675, 21382, 7987, 9307, 2063, 1010, 15743, 8508, 1004, 17076, 15687],
        ),
        ("東京は日本の首都です。", vec![1879, 1755, 1672, 1864, 1876, 1671, 100, 1961, 1665, 30184, 1636]),
        (
            "unaffable supercalifragilisticexpialidocious",
            vec![14477, 20961, 3468, 3565, 9289, 10128, 29181, 24411, 4588, 10288, 19312, 21273, 10085, 6313],
        ),
        ("tabs\tand\nnew\u{a0}lines\u{200b}, zero-width", vec![21628, 2015, 1998, 2047, 3210, 1010, 5717, 1011, 9381]),
        (
            "3.14159 — “quotes” (e.g. U.S.A.) $5 + 5% = 10€",
            vec![
                1017, 1012, 15471, 28154, 1517, 1523, 16614, 1524, 1006, 1041, 1012, 1043, 1012, 1057, 1012, 1055,
                1012, 1037, 1012, 1007, 1002, 1019, 1009, 1019, 1003, 1027, 2184, 30102,
            ],
        ),
        ("İstanbul ΑΘΗΝΑ Straße ﬁne", vec![9960, 1155, 29725, 24824, 16177, 14608, 2358, 27807, 1984, 2638]),
        ("😀 emoji ok", vec![100, 7861, 29147, 2072, 7929]),
        ("हिन्दी भाषा", vec![1339, 29877, 29863, 29861, 29878, 1330, 29876, 29873, 29876]),
    ] {
        assert_eq!(vocabulary.tokens(text, 512), [&[101], wanted.as_slice(), &[102]].concat(), "{text}");
    }
    let sentences = ["A man is eating food.", "Someone has a meal.", "The stock market fell sharply today."];
    for (i, precision) in precisions(gpu).into_iter().enumerate() {
        // One comparison with f64, which takes the processor seconds.
        let options = ["--precision", precision, "--check"];
        let options = &options[..if i == 0 { 3 } else { 2 }];
        let out = succeeds(&folder, &[options, &sentences].concat());
        let cosines: Vec<f64> =
            (out.lines().skip(1).take(2)).map(|row| row.split_whitespace().nth(3).unwrap().parse().unwrap()).collect();
        let within = if precision == "int8" { 0.03 } else { 0.0007 };
        for (got, want) in cosines.iter().zip([0.003728, -0.013818]) {
            assert!((got - want).abs() < within, "{precision}: {out}");
        }
    }
}
