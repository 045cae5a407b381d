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

/// Makes a grid in one submission and compares it with the CPU's.
fn make(gpu: &Gpu, field: &Field, rule: Rule, limit: usize) -> (Grid, Result<(), String>) {
    let maker = Maker::new(gpu, field, rule, limit).unwrap();
    let mut rec = gpu.recorder();
    (0..maker.stages()).try_for_each(|stage| maker.record(&mut rec, stage)).unwrap();
    rec.submit().unwrap();
    let grid = maker.read().unwrap();
    let checked = grid.check(field, rule, &maker.room);
    (grid, checked)
}

fn grey(width: usize, height: usize, pixels: Vec<u8>) -> Field {
    Field::Image(Grey { width, height, pixels })
}

fn noise(width: usize, height: usize) -> Field {
    let mut random = Random::new(5);
    grey(width, height, (0..width * height).map(|_| random.next() as u8).collect())
}

#[test]
fn adaptive_grids_match_the_cpu() {
    let names = ["waves", "vortex", "spots", "step"];
    let mut fields: Vec<_> = names.iter().map(|name| (*name, Field::parse(name).unwrap())).collect();
    fields.push(("noise", noise(37, 23)));
    fields.push(("one pixel", grey(1, 1, vec![128])));
    for device in devices() {
        for (name, field) in &fields {
            for (first, deepest, threshold) in
                [(3, 6, 0.1), (0, 5, 0.5), (0, 0, 0.1), (2, 4, 0.0), (1, 4, 9.0)]
            {
                if !device.main && first != 3 {
                    continue;
                }
                let rule = Rule { first, deepest, threshold };
                let (grid, checked) = make(&device.gpu, field, rule, usize::MAX);
                assert_eq!(checked, Ok(()), "{}: {name}, {rule:?}", device.label);
                // The leaves cover the square exactly once.
                let area: f64 = (first..)
                    .zip(&grid.levels)
                    .map(|(level, (s, cells))| (cells.len() - s.split) as f64 * 0.25f64.powi(level as i32))
                    .sum();
                assert_eq!(area, 1.0, "{name}, {rule:?}");
                if threshold > 1.0 {
                    assert_eq!(grid.levels.len(), 1, "{name}: nothing varies as much");
                }
            }
        }
    }
}

#[test]
fn a_refined_grid_is_as_good_as_a_fine_one() {
    let Some(gpu) = gpu() else { return };
    for (name, exact) in [("spots", true), ("waves", false), ("vortex", false), ("step", false)] {
        let field = Field::parse(name).unwrap();
        let rule = |first, threshold| Rule { first, deepest: 6, threshold };
        let (coarse, _) = make(gpu, &field, rule(3, 0.1), usize::MAX);
        let (fine, checked) = make(gpu, &field, rule(6, 0.1), usize::MAX);
        assert_eq!(checked, Ok(()), "{name}");
        let off = (coarse.integral - fine.integral).abs();
        // Cells vary by at most a tenth, and their errors cancel.
        assert!(off < 2e-3, "{name}: {off}");
        assert!(3 * coarse.leaves().count() < 2 * fine.leaves().count(), "{name}");
        if exact {
            // Gaussians whose tails alone lie outside.
            let bells = [(0.9, 0.09), (0.8, 0.15), (1.0, 0.04), (0.9, 0.02), (0.7, 0.06), (1.0, 0.012)];
            let wanted: f64 = bells.iter().map(|(high, r)| std::f64::consts::PI * high * r * r).sum();
            assert!((fine.integral - wanted).abs() < 2e-4, "{} of {wanted}", fine.integral);
        }
    }
}

#[test]
fn the_grid_check_finds_errors() {
    let Some(gpu) = gpu() else { return };
    let (field, rule) = (Field::Spots, Rule { first: 1, deepest: 4, threshold: 0.1 });
    let room = [4, 16, 64, 256];
    let wrong = |change: &dyn Fn(&mut Grid)| {
        let (mut grid, checked) = make(gpu, &field, rule, usize::MAX);
        assert_eq!(checked, Ok(()));
        change(&mut grid);
        grid.check(&field, rule, &room).unwrap_err()
    };
    assert!(wrong(&|g| g.integral += 1e-3).contains("add up"));
    assert!(wrong(&|g| g.levels[1].1[2].mean += 1e-3).contains("mean"));
    assert!(wrong(&|g| g.levels[1].1[2].range = f32::NAN).contains("range"));
    assert!(wrong(&|g| g.levels[0].1[1].child = None).contains("children"));
    assert!(wrong(&|g| g.levels[2].1.swap(0, 1)).contains("other cells"));
}

#[test]
fn a_full_grid_stops_refining_and_reports_it() {
    for device in devices() {
        let rule = Rule { first: 2, deepest: 5, threshold: 0.01 };
        for limit in [4, 30, 100] {
            let (grid, checked) = make(&device.gpu, &Field::Vortex, rule, limit);
            assert_eq!(checked, Ok(()), "{}: {limit}", device.label);
            assert!(grid.levels[1..].iter().all(|(s, _)| s.cells <= limit), "{limit}");
            assert!(grid.levels.iter().any(|(s, _)| s.split < s.wanted), "{limit}");
        }
    }
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
    let (code, out, err) =
        PROGRAM.run(&["--field", "spots", "--deepest", "5", "--picture", name, "--size", "128"]);
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
    let (code, out, err) =
        PROGRAM.run(&[&["--image", file, "--picture", name, "--size", "100"][..], &more].concat());
    assert!(code == 0 && out.contains("same cells and values"), "{out}{err}");
    assert!(out.contains("want to split, and there is room for the children of 16"), "{out}");
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
