//! The `adaptive` example: its grids against the CPU's, and its command line.

use super::program::{Example, Folder};
use super::quadtree::colours;
use crate::support::{Random, devices, gpu};
use parts::adaptive_grid::{Grid, Maker, Rule};
use parts::cli;
use parts::field::{Field, Grey};
use tilework::Gpu;

#[path = "../../examples/adaptive"]
mod parts {
    use super::super::common;

    pub(super) mod adaptive_grid;
    pub(super) mod cli;
    pub(super) mod field;
    mod picture;
}

/// Makes a grid and compares it with the reference.
fn make(gpu: &Gpu, field: &Field, rule: Rule) -> (Grid, Result<(), String>) {
    let (maker, rule) = Maker::new(gpu, field, rule).unwrap();
    let mut rec = gpu.recorder();
    maker.record(&mut rec).unwrap();
    rec.submit().unwrap();
    let grid = maker.read().unwrap();
    let checked = grid.check(field, rule);
    (grid, checked)
}

fn rule(first: u32, deepest: u32, threshold: f32) -> Rule {
    Rule { first, deepest, threshold, limit: usize::MAX }
}

#[test]
fn adaptive_grids_match_the_reference() {
    let names = ["waves", "vortex", "spots", "step"];
    let mut fields: Vec<_> = names.iter().map(|name| (*name, Field::parse(name).unwrap())).collect();
    let mut random = Random::new(5);
    let pixels = (0..37 * 23).map(|_| random.unit() as f32).collect();
    fields.push(("noise", Field::Image(Grey { width: 37, height: 23, pixels })));
    for device in devices() {
        for (name, field) in &fields {
            for rule in [rule(3, 6, 0.1), Rule { limit: 200, ..rule(0, 5, 0.05) }] {
                let (grid, checked) = make(&device.gpu, field, rule);
                assert_eq!(checked, Ok(()), "{}: {name}, {rule:?}", device.label);
                // The leaves cover the square exactly once.
                let area: f64 = grid.leaves().map(|cell| 0.25f64.powi(cell.level as i32)).sum();
                assert_eq!(area, 1.0, "{name}, {rule:?}");
                let levels = grid.levels(rule);
                assert!(levels.iter().any(|s| s.split < s.wanted) == (grid.0.len() + 4 > rule.limit), "{name}");
            }
        }
    }
}

#[test]
fn a_refined_grid_is_as_good_as_a_fine_one() {
    let Some(gpu) = gpu() else { return };
    for (name, exact) in [("spots", true), ("waves", false), ("vortex", false), ("step", false)] {
        let field = Field::parse(name).unwrap();
        let (coarse, _) = make(gpu, &field, rule(3, 6, 0.1));
        let (fine, checked) = make(gpu, &field, rule(6, 6, 0.1));
        assert_eq!(checked, Ok(()), "{name}");
        let off = (coarse.integral() - fine.integral()).abs();
        // Cells vary by at most a tenth, and their errors cancel.
        assert!(off < 2e-3, "{name}: {off}");
        assert!(3 * coarse.leaves().count() < 2 * fine.leaves().count(), "{name}");
        if exact {
            // Gaussians whose tails alone lie outside.
            let bells = [(0.9, 0.09), (0.8, 0.15), (1.0, 0.04), (0.9, 0.02), (0.7, 0.06), (1.0, 0.012)];
            let wanted: f64 = bells.iter().map(|(high, r)| std::f64::consts::PI * high * r * r).sum();
            assert!((fine.integral() - wanted).abs() < 2e-4, "{} of {wanted}", fine.integral());
        }
    }
}

#[test]
fn the_grid_check_finds_errors() {
    let Some(gpu) = gpu() else { return };
    let wrong = |change: &dyn Fn(&mut Grid)| {
        let (mut grid, checked) = make(gpu, &Field::Spots, rule(1, 4, 0.1));
        assert_eq!(checked, Ok(()));
        change(&mut grid);
        grid.check(&Field::Spots, rule(1, 4, 0.1)).unwrap_err()
    };
    assert!(wrong(&|g| g.0[6].mean += 1e-3).contains("cell 6 is"));
    assert!(wrong(&|g| g.0[6].range = f32::NAN).contains("cell 6 is"));
    assert!(wrong(&|g| g.0.swap(4, 5)).contains("cell 4 is"));
    assert!(wrong(&|g| g.0.truncate(4)).contains("the device says 4"));
}

const PROGRAM: Example = Example("adaptive", cli::run);

#[test]
fn adaptive_draws_fields_and_images() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("adaptive");
    let png = folder.0.join("a.png");
    let name = png.to_str().unwrap();
    let (code, out, err) = PROGRAM.run(&["--field", "spots", "--deepest", "5", "--picture", name, "--size", "128"]);
    assert!(code == 0 && out.starts_with("spots on") && out.contains("same cells and values"), "{out}{err}");
    assert!(out.contains("the even grid of level 5 has 1024 cells"), "{out}");
    let (width, height, different) = colours(&png);
    assert!((width, height) == (128, 128) && different > 50, "{different} colours");

    // The output keeps the aspect ratio of the input image.
    let image = folder.0.join("in.png");
    let pixels = (0..60 * 30).flat_map(|i| if i % 60 < 20 { [250, 10, 10] } else { [i as u8, 200, 90] });
    let (rgb, file) = (pixels.collect::<Vec<u8>>(), image.to_str().unwrap());
    ::image::save_buffer(&image, &rgb, 60, 30, ::image::ColorType::Rgb8).unwrap();
    let more = ["--first", "1", "--deepest", "5", "--capacity", "64", "--threshold", "0.02"];
    let (code, out, err) = PROGRAM.run(&[&["--image", file, "--picture", name, "--size", "100"][..], &more].concat());
    assert!(code == 0 && out.contains("same cells and values"), "{out}{err}");
    assert!(out.contains("want to split, and there is room for the children of"), "{out}");
    let (width, height, different) = colours(&png);
    assert!((width, height) == (100, 50) && different > 50, "{different} colours");
    let (code, out, _) = PROGRAM.run(&["--deepest", "3", "--no-check"]);
    assert!(code == 0 && out.starts_with("vortex") && !out.contains("checked"), "{out}");
}

#[test]
fn adaptive_rejects_bad_input() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("adaptive-bad");
    let text = folder.file("a.png", b"no picture");
    let cases: &[(&[&str], &str)] = &[
        (&["--field", "sea"], "waves, vortex, spots or step"),
        (&["--field", "step", "--image", "a.png"], "give one"),
        (&["--threshold", "-1"], "must be a number, 0 or more"),
        (&["--threshold", "nan"], "--threshold nan"),
        (&["--first", "5", "--deepest", "4"], "--first 5 is deeper"),
        (&["--deepest", "12"], "from 0 to 11"),
        (&["--capacity", "0"], "from 4"),
        (&["--capacity", "63"], "level 3 alone has 64 cells"),
        (&["--size", "9"], "--size 9"),
        (&["--picture", "a.jpg"], "must end with .png"),
        (&["--picture", "no such folder/a.png", "--deepest", "3", "--size", "64"], "no such folder"),
        (&["--image", "no such file"], "no such file"),
        (&["--image", text.to_str().unwrap()], "a.png"),
        (&["file"], "file"),
        (&["--size", "64", "--no-check", "--size", "64"], "--size is given twice"),
        (&["--adapter", "no such adapter"], "no such adapter"),
    ];
    PROGRAM.rejects_early(cases);
}
