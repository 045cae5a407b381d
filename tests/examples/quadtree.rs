//! The `quadtree` example: its trees against the CPU's, and its command line.

use super::program::{Example, Folder};
use crate::support::{devices, gpu};
use parts::builder::Builder;
use parts::points::{Point, Shape};
use parts::tree::{Cell, Rule, Square, Tree};
use parts::{cli, points};
use std::fs;
use std::path::Path;
use tilework::Gpu;

#[path = "../../examples/quadtree"]
mod parts {
    use super::super::common;

    pub(super) mod builder;
    pub(super) mod cli;
    mod picture;
    pub(super) mod points;
    mod results;
    pub(super) mod tree;
}

/// Builds a tree in one submission and compares it with the CPU's.
fn build(
    gpu: &Gpu,
    points: &[Point],
    (leaf, deepest): (u32, u32),
    limit: usize,
) -> (Tree, Result<(), String>) {
    let (square, rule) = (Square::around(points), Rule { leaf, deepest });
    let builder = Builder::new(gpu, points, &square, rule, limit).unwrap();
    let mut rec = gpu.recorder();
    (0..builder.stages()).try_for_each(|stage| builder.record(&mut rec, stage)).unwrap();
    rec.submit().unwrap();
    let tree = builder.read().unwrap();
    let checked = tree.check(points, &square, rule, &builder.room);
    (tree, checked)
}

/// Cells of each level.
fn sizes(tree: &Tree) -> Vec<usize> {
    tree.levels.iter().map(|(summary, _)| summary.cells).collect()
}

#[test]
fn quadtrees_match_the_cpu() {
    for device in devices() {
        let sizes: &[usize] = if device.main { &[0, 1, 2, 17, 1000, 30_000] } else { &[1000] };
        for &n in sizes {
            for (shape, rule) in [
                (Shape::Uniform, (16, 5)),
                (Shape::Clusters, (1, 16)),
                (Shape::Spiral, (3, 9)),
                (Shape::Spiral, (1, 0)),
                (Shape::Uniform, (2000, 12)),
            ] {
                let points = points::generate(shape, n, n as u64).unwrap();
                let (tree, checked) = build(&device.gpu, &points, rule, usize::MAX);
                assert_eq!(checked, Ok(()), "{}: {n} {shape:?} {rule:?}", device.label);
                assert!(tree.levels.iter().all(|(s, _)| s.wanted == s.split));
                assert_eq!(tree.leaves().map(|(_, cell)| cell.count as usize).sum::<usize>(), n);
            }
        }
    }
}

#[test]
fn a_small_quadtree_matches_a_known_one() {
    // One point in each lower quarter, none in the upper left one, and three in the upper right one, two of
    // which separate later.
    let points = [[0.0, 0.0], [1.0, 1.0], [0.6, 0.2], [0.8, 0.8], [0.55, 0.95]];
    for device in devices() {
        let (tree, checked) = build(&device.gpu, &points, (1, 16), usize::MAX);
        assert_eq!(checked, Ok(()), "{}", device.label);
        assert_eq!(sizes(&tree), [1, 4, 4, 4], "{}", device.label);
        let cell = |path, first, count, child| Cell { path, first, count, child };
        let quarters =
            [cell(0, 0, 1, None), cell(1, 1, 1, None), cell(2, 2, 0, None), cell(3, 2, 3, Some(0))];
        assert_eq!(tree.levels[0].1, [cell(0, 0, 5, Some(0))]);
        assert_eq!(tree.levels[1].1, quarters);
        assert_eq!(tree.order[..2], [0, 2]);
        // The check finds errors.
        let square = Square::around(&points);
        let rule = Rule { leaf: 1, deepest: 16 };
        let room = [1, 8, 8, 8, 8];
        let wrong = |change: &dyn Fn(&mut Tree)| {
            let levels = tree.levels.clone();
            let mut tree = Tree { levels, order: tree.order.clone() };
            change(&mut tree);
            tree.check(&points, &square, rule, &room).unwrap_err()
        };
        assert!(wrong(&|t| t.order.swap(0, 1)).contains("other points"));
        assert!(wrong(&|t| t.levels[1].1[1].count = 2).contains("has 1 points"));
        assert!(wrong(&|t| t.levels[1].1[3].child = None).contains("children"));
        assert!(wrong(&|t| t.levels.truncate(3)).contains("level 3 has 4 cells; the device says 0"));
    }
}

#[test]
fn quadtrees_stop_at_inseparable_points() {
    let corner = |i: u32| [(i % 9) as f32 / 8.0, (i / 9) as f32 / 8.0];
    let cases: Vec<(&str, Vec<Point>)> = vec![
        ("all in one place", vec![[3.5, -2.0]; 1000]),
        ("two places far apart", (0..100).map(|i| [[-1e36, 0.0], [1e36, 9e35]][i % 2]).collect()),
        ("two neighbours and one far away", vec![[0.0, 0.0], [1e-7, 0.0], [1.0, 1.0]]),
        ("on the borders of cells", (0..81).map(corner).collect()),
        ("on one line", (0..500).map(|i| [i as f32, 7.0]).collect()),
        ("subnormal numbers apart", vec![[1e-40, 0.0], [0.0, 1e-42], [0.0, 0.0]]),
        ("near the limit of what is taken", vec![[9e36, 9e36], [-9e36, -9e36], [9e36, -9e36]]),
    ];
    for device in devices() {
        for (what, points) in &cases {
            for deepest in [1, 7, 16] {
                let (tree, checked) = build(&device.gpu, points, (2, deepest), usize::MAX);
                assert_eq!(checked, Ok(()), "{}: {what}, {deepest}", device.label);
                if points.len() == 1000 {
                    let mut wanted = vec![4; deepest as usize + 1];
                    wanted[0] = 1;
                    assert_eq!(sizes(&tree), wanted, "{}: {what}", device.label);
                }
            }
        }
    }
    // A point on a border belongs to the cell that begins there; on the last border, to the cell that ends there.
    let square = Square::around(&[[0.0, 0.0], [8.0, 8.0]]);
    assert_eq!(square.place([4.0, 8.0]), [32_768, 65_535]);
    assert_eq!(square.place([3.999, 0.0]), [32_759, 0]);
    // Non-finite points are skipped.
    let mixed =
        vec![[0.0, 1.0], [f32::NAN, 0.0], [0.0, f32::INFINITY], [f32::NEG_INFINITY, 0.0], [-2e37, 0.0]];
    assert_eq!(points::finite(mixed), (vec![[0.0, 1.0]], 4));
}

#[test]
fn a_full_level_stops_splitting_and_reports_it() {
    for device in devices() {
        let points = points::generate(Shape::Uniform, 5000, 3).unwrap();
        for (limit, level) in [(4, 1), (7, 1), (16, 2), (100, 3)] {
            let (tree, checked) = build(&device.gpu, &points, (4, 10), limit);
            assert_eq!(checked, Ok(()), "{}: {limit}", device.label);
            assert!(sizes(&tree).iter().all(|cells| *cells <= limit.max(1)), "{:?}", sizes(&tree));
            let (summary, cells) = &tree.levels[level];
            assert!(summary.wanted > summary.split, "{limit}: {summary:?}");
            assert_eq!(cells.iter().filter(|cell| cell.child.is_some()).count(), summary.split);
            assert!(summary.to_string().contains("there is room for the children of"));
            assert_eq!(tree.leaves().map(|(_, cell)| cell.count).sum::<u32>(), 5000);
        }
    }
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
        assert!(
            code == 0 && out.starts_with("4 points") && out.contains("same cells and points"),
            "{out}{err}"
        );
        assert_eq!(out.contains("1 with infinite, huge or NaN coordinates"), input == &text, "{out}");
        let (width, height, different) = colours(&png);
        assert!((width, height) == (200, 200) && different > 20, "{different} colours");
    }
    let tree: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(tree["cells"].as_array().unwrap().len(), 21);
    assert_eq!(tree["cells"][0], serde_json::json!([0, 0, 0, 0, 4, 0]));
    assert_eq!(tree["order"].as_array().unwrap().len(), 4);
    assert_eq!(tree["square"], serde_json::json!({ "low": [0.0, 0.0], "side": 1.0 }));
    let bytes = fs::read(&npy).unwrap();
    let cells = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(cells.shape(), [21, 6]);
    assert_eq!(cells.into_vec::<i64>().unwrap()[..6], [0, 0, 0, 0, 4, 0]);

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
    assert!(code == 0 && out.contains("want to split, and there is room for the children of 2"), "{out}");
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
    let wide: Vec<u8> =
        numpy("(1, 2)", &[0.0; 4]).iter().map(|b| if *b == b'4' { b'8' } else { *b }).collect();
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
