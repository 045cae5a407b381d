//! The `quadtree` example: its trees against the CPU's, and its command line.

use super::program::{Example, Folder};
use crate::support::{devices, gpu};
use parts::points::{Point, Shape};
use parts::tree::{Builder, Rule, Tree};
use parts::{cli, points};
use std::fs;
use std::path::Path;
use tilework::Gpu;

#[path = "../../examples/quadtree"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    mod picture;
    pub(super) mod points;
    mod results;
    pub(super) mod tree;
}

/// Builds a tree and compares it with the reference.
fn build(gpu: &Gpu, points: &[Point], rule: Rule) -> (Tree, Result<(), String>) {
    let (builder, rule) = Builder::new(gpu, points, rule).unwrap();
    let mut rec = gpu.recorder();
    builder.record(&mut rec).unwrap();
    rec.submit().unwrap();
    let tree = builder.read().unwrap();
    let checked = tree.check(points, rule);
    (tree, checked)
}

#[test]
fn quadtrees_of_generated_points_match_the_reference() {
    for device in devices() {
        for (shape, leaf, deepest, limit) in
            [(Shape::Uniform, 16, 5, usize::MAX), (Shape::Clusters, 1, 16, usize::MAX), (Shape::Spiral, 3, 9, 100)]
        {
            let points = points::generate(shape, 1000, 7).unwrap();
            let rule = Rule { leaf, deepest, limit };
            let (tree, checked) = build(&device.gpu, &points, rule);
            assert_eq!(checked, Ok(()), "{}: {shape:?}", device.label);
            assert_eq!(tree.leaves().map(|cell| cell.count).sum::<u32>(), 1000);
            let full = tree.levels(rule).iter().find(|s| s.split < s.wanted).copied();
            assert_eq!(full.is_some(), limit < usize::MAX, "{shape:?}");
            assert!(full.is_none_or(|s| s.to_string().contains("there is room for the children of")));
        }
    }
}

#[test]
fn the_tree_check_finds_errors() {
    let Some(gpu) = gpu() else { return };
    let points = [[0.0, 0.0], [1.0, 1.0], [0.6, 0.2], [0.8, 0.8], [0.55, 0.95]];
    let rule = Rule { leaf: 1, deepest: 16, limit: usize::MAX };
    let (tree, checked) = build(gpu, &points, rule);
    assert_eq!((checked, tree.cells.len()), (Ok(()), 13));
    let wrong = |change: &dyn Fn(&mut Tree)| {
        let mut tree = tree.clone();
        change(&mut tree);
        tree.check(&points, rule).unwrap_err()
    };
    assert!(wrong(&|t| t.order.swap(0, 1)).contains("point 0 of the order is Some(0)"));
    assert!(wrong(&|t| t.cells[2].count = 2).contains("cell 2 is"));
    assert!(wrong(&|t| t.cells.truncate(9)).contains("the device says None"));
    // Non-finite points are skipped.
    let mixed = vec![[f32::NAN, 0.0], [0.0, 1.0], [f32::INFINITY, 0.0], [0.0, -1e38], [1e37, 0.0]];
    assert_eq!(points::finite(mixed), (vec![[0.0, 1.0]], 4));
}

const PROGRAM: Example = Example("quadtree", cli::run);

/// The colours of an image.
pub(super) fn colours(path: &Path) -> (u32, u32, usize) {
    let picture = ::image::open(path).unwrap().into_rgb8();
    let all: std::collections::HashSet<_> = picture.pixels().map(|pixel| pixel.0).collect();
    (picture.width(), picture.height(), all.len())
}

/// A NumPy file of f32 with that shape.
fn numpy(shape: &str, elements: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), bytemuck::cast_slice(elements)].concat()
}

#[test]
fn quadtree_reads_points_and_writes_trees() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("quadtree");
    let text = folder.file("a.csv", b"x,y\n# two\n0, 0\n1;1\n0.9 \t0.9\n\nnan,4\n0.1,0.2\n");
    let array = folder.file("a.npy", &numpy("(4, 2)", &[0.0, 0.0, 1.0, 1.0, 0.9, 0.9, 0.1, 0.2]));
    let (json, npy, png) = (folder.0.join("t.json"), folder.0.join("t.npy"), folder.0.join("t.png"));
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    for (input, output) in [(&text, &json), (&array, &npy)] {
        let rule = ["--leaf-capacity", "1", "--max-depth", "3"];
        let files = [&name(input), "-o", &name(output), "--picture", &name(&png), "--size", "200"];
        let (code, out, err) = PROGRAM.run(&[&files[..], &rule].concat());
        assert!(code == 0 && out.starts_with("4 points") && out.contains("same cells and points"), "{out}{err}");
        assert_eq!(out.contains("1 with infinite, huge or NaN coordinates"), input == &text, "{out}");
        let (width, height, different) = colours(&png);
        assert!((width, height) == (200, 200) && different > 20, "{different} colours");
    }
    let tree: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(tree["cells"].as_array().unwrap().len(), 21);
    assert_eq!(tree["cells"][0], serde_json::json!([0, 0, 0, 0, 4, 1]));
    assert_eq!(tree["order"].as_array().unwrap().len(), 4);
    assert_eq!(tree["square"], serde_json::json!({ "low": [0.0, 0.0], "side": 1.0 }));
    let bytes = fs::read(&npy).unwrap();
    let cells = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(cells.shape(), [21, 6]);
    assert_eq!(cells.into_vec::<i64>().unwrap()[..6], [0, 0, 0, 0, 4, 1]);

    // No points, one, and all in one place.
    let empty = folder.file("empty.txt", b"# nothing\n");
    let (code, out, _) = PROGRAM.run(&[&name(&empty), "--picture", &name(&png), "--size", "64"]);
    assert!(code == 0 && out.starts_with("0 points") && out.contains("1 cells, 1 of them leaves"), "{out}");
    let (code, out, _) = PROGRAM.run(&["--points", "1", "--shape", "spiral", "--capacity", "4"]);
    assert!(code == 0 && out.contains("1 points (spiral, seed 1)"), "{out}");
    let same = folder.file("same.txt", "5 5\n".repeat(40).as_bytes());
    let (code, out, _) = PROGRAM.run(&[&name(&same), "--max-depth", "16", "--no-check"]);
    assert!(code == 0 && out.contains("65 cells, 49 of them leaves") && !out.contains("checked"), "{out}");
    let (code, out, _) = PROGRAM.run(&["--points", "3000", "--capacity", "8"]);
    assert!(code == 0 && out.contains("want to split, and there is room for the children of 0"), "{out}");
}

#[test]
fn quadtree_rejects_bad_input() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("quadtree-bad");
    let file = |name: &str, bytes: &[u8]| folder.file(name, bytes).to_str().unwrap().to_owned();
    let three = file("three.txt", b"1 2\n1 2 3\n");
    let word = file("word.txt", b"1 2\nx y\n");
    let binary = file("binary", b"\xff\xfe\x00");
    let flat = file("flat.npy", &numpy("(4,)", &[0.0; 4]));
    let short = file("short.npy", &numpy("(4, 2)", &[0.0; 5]));
    let cut = file("cut.npy", b"\x93NUMPY\x01\0\xff\0{'descr'");
    // The parser's time doubles with every bracket.
    let deep: Vec<u8> = [b"\x93NUMPY\x01\0\x60\0{'descr': (1, ".as_slice(), &[b'{'; 82]].concat();
    let deep = file("deep.npy", &deep);
    let many = file("many.npy", &numpy("(4, 7766279631452241919)", &[0.0; 4]));
    let wide: Vec<u8> = numpy("(1, 2)", &[0.0; 4]).iter().map(|b| if *b == b'4' { b'8' } else { *b }).collect();
    let wide = file("wide.npy", &wide);
    let cases: &[(&[&str], &str)] = &[
        (&["--points", "x"], "--points x: must be a whole number"),
        (&["--points", "-1"], "--points -1"),
        (&["--leaf-capacity", "0"], "from 1 to"),
        (&["--max-depth", "17"], "from 0 to 16"),
        (&["--capacity", "3"], "from 4"),
        (&["--shape", "cube"], "uniform, clusters or spiral"),
        (&["--picture", "a.gif"], "must end with .png"),
        (&["-o", "a.txt"], ".json or .npy"),
        (&["-o", "no such folder/a.json"], "no such folder"),
        (&["--picture", "no such folder/a.png", "--points", "10", "--size", "64"], "no such folder"),
        (&["--frob"], "--frob"),
        (&["a", "b"], "b"),
        (&["a", "--points", "5"], "leave them out with a file"),
        (&["no such file"], "no such file"),
        (&["."], "is a directory"),
        (&["--no-check", "--no-check"], "--no-check is given twice"),
        (&["--adapter", "no such adapter"], "no such adapter"),
        (&[&three], "three.txt: line 2: `1 2 3`: expected two numbers"),
        (&[&word], "line 2"),
        (&[&binary], "neither a NumPy file nor text"),
        (&[&flat], "the shape is [4]"),
        (&[&short], "ends after 2 of 4 points"),
        (&[&cut], "cut off"),
        (&[&deep], "nested too deeply"),
        (&[&many], "more elements than this machine can count"),
        (&[&wide], "the elements are"),
    ];
    PROGRAM.rejects_early(cases);
}
