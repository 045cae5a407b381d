//! The `sanitize` example: its findings, its report, and its errors.

use super::common;
use super::program::{Example, Folder};

#[path = "../../examples/sanitize/cli.rs"]
mod cli;

const PROGRAM: Example = Example("sanitize", cli::run);

fn run(line: &str) -> (u8, String, String) {
    PROGRAM.run(&line.split_whitespace().collect::<Vec<_>>())
}

/// A kernel of the simulator's tests, without its error.
fn kernel(name: &str) -> String {
    format!("{}/tests/sim/kernels/{name}.wgsl", env!("CARGO_MANIFEST_DIR"))
}

/// The same with its error.
fn broken(folder: &Folder, name: &str) -> String {
    let text = std::fs::read_to_string(kernel(name)).unwrap().replace("BROKEN", "true");
    folder.file(&format!("{name}.wgsl"), text.as_bytes()).display().to_string()
}

#[test]
fn sanitize_reports_a_kernels_errors_and_cost() {
    let folder = Folder::new("sanitize-kernels");
    let one_cell = broken(&folder, "one_cell");
    let (code, out, err) = run(&format!("{one_cell} --workgroups 4 --buffer zeros:1024 --buffer zeros:4"));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains(&format!("{one_cell}:21: data race")) && out.contains("worst lines"), "{out}");
    let repaired = kernel("one_cell");
    let options = "--workgroups 4,1,1 --entry total --subgroup 8 --schedule adversarial --source";
    let (code, out, _) = run(&format!("{repaired} {options} --buffer zeros:1024 --buffer zeros:4"));
    assert!(code == 0 && out.contains("nothing found") && out.contains("fn total("), "{out}");
    let (code, out, _) = run(&format!("{} --buffer zeros:256 --json", broken(&folder, "shift")));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["findings"][0]["kind"], &json["findings"][0]["line"]), (1, &"shift".into(), &7.into()));
    assert_eq!(json["totals"]["written_bytes"], 256);
}

#[test]
fn sanitize_accepts_numbers_for_uniforms_and_immediates() {
    let folder = Folder::new("sanitize-words");
    let text = b"struct Params { n: u32, shift: i32, factor: f32 }
var<immediate> offset: u32;
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(32) fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.n { data[id.x + offset + u32(params.shift + 1)] *= params.factor; }
}";
    let path = folder.file("scale.wgsl", text).display().to_string();
    let given =
        |n: u32, factor: &str| format!("{path} --buffer words:{n},-1,{factor} --buffer zeros:64 --immediates words:6");
    let (code, out, err) = run(&given(10, "0.5"));
    assert!(code == 0 && out.contains("40 bytes read, 40 written"), "{out}{err}");
    let (code, out, _) = run(&given(11, "0.5"));
    assert!(code == 1 && out.contains("scale.wgsl:6: out of bounds: a read of element 16 of `data` of 16"), "{out}");
    let (code, _, err) = run(&given(11, "x.5"));
    assert!(code == 2 && err.contains("x.5"), "{err}");
}

#[test]
fn sanitize_runs_ops_by_the_names_of_the_op_example() {
    let folder = Folder::new("sanitize");
    // A header as NumPy writes it, and 1000 ones.
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }";
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{dict:<117}\n").bytes());
    file.extend([1f32; 1000].iter().flat_map(|x| x.to_le_bytes()));
    let path = folder.file("x.npy", &file);
    for options in ["", "--subgroup 4 --schedule random:7 --profile webgpu", "--variant interleaved --nan --untouched"]
    {
        let (code, out, err) = run(&format!("reduce {} --op max {options}", path.display()));
        assert!(code == 0 && out.contains("nothing found"), "{options}: {out}{err}");
    }
}

#[test]
fn sanitize_rejects_bad_input_in_one_line() {
    let shift = kernel("shift");
    for (line, names) in [
        ("".to_owned(), "--help"),
        ("nosuch".to_owned(), "nosuch"),
        ("reduce /no/such.npy".to_owned(), "/no/such.npy"),
        ("/no/such.wgsl".to_owned(), "/no/such.wgsl"),
        (shift.clone(), "0 buffers"),
        (format!("{shift} --entry no --buffer zeros:256"), "`no`"),
        (format!("{shift} --buffer zeros:x"), "zeros x"),
        (format!("{shift} --buffer zeros:99999999999999"), "99999999999999"),
        (format!("{shift} --buffer words:1,4294967296"), "4294967296"),
        (format!("{shift} --buffer zeros:256 --subgroup 3"), "the subgroup size is 3"),
        (format!("{shift} --buffer zeros:256 --schedule fast"), "fast"),
        (format!("{shift} --buffer zeros:256 --workgroups 1,2,3,4"), "1,2,3,4"),
        (format!("{shift} --buffer zeros:1073741824 --buffer zeros:1"), "1073741824 bytes in all"),
        (format!("{shift} --axis 1"), "--axis"),
        (format!("{shift} --dram 1,1"), "--dram 1,1: must be three numbers"),
        (format!("{shift} --dram 1,1,1,1"), "--dram 1,1,1,1: must be three numbers"),
        (format!("{shift} --buffer zeros:256 --dram 1,0,1"), "over 0 channels"),
        (format!("{shift} --nan --nan"), "--nan is given twice"),
    ] {
        assert_eq!(PROGRAM.rejects(&line.split_whitespace().collect::<Vec<_>>(), names), "");
    }
}
