//! Cooperative matrices for devices that have none: their functions emulated, so that everything in a kernel except the
//! hardware's arithmetic is tested anywhere.

use tilework::program::{CooperativeShape, DeviceProfile, Dispatch, Grid, Program, Resource};
use tilework::shader::Target;
use tilework::{Arg, Buffer, Gpu};

/// A profile like that of `gpu`, with cooperative matrices of this side.
pub(crate) fn with_matrices(gpu: &Gpu, side: u32) -> DeviceProfile {
    let mut profile = gpu.profile().clone();
    profile.backend = "vulkan".into();
    profile.quirks.stores_whole_vectors = false;
    profile.features.cooperative_matrix = true;
    // A thread holds eight elements of a matrix.
    profile.subgroup_sizes = (side * side / 8, side * side / 8);
    let (factors, result) = ("f16".into(), "f32".into());
    profile.cooperative = vec![CooperativeShape { m: side, n: side, k: side, factors, result }];
    profile
}

/// The text of a kernel with the functions of cooperative matrices emulated: an operand is a place in workgroup
/// memory, a sum is eight elements of a thread.
pub(crate) fn without_matrices(text: &str, side: u32) -> String {
    let matrix = |role: &str| format!("coop_mat{side}x{side}<{role}>");
    let unit = if side == 16 { 4 } else { 1 };
    // Names of arrays of such elements in workgroup memory.
    let arrays_of = |element: &str| -> Vec<&str> {
        let of = |line: &'_ str| line.contains(&format!(": array<{element},")) && line.starts_with("var<workgroup>");
        let name = |line: &'_ str| line.len() - line.trim_start_matches("var<workgroup> ").len();
        text.lines().filter(|line| of(line)).map(|line| line[name(line)..].split(':').next().unwrap()).collect()
    };
    let factors = arrays_of(if side == 16 { "vec4<f16>" } else { "f16" });
    let in_fours = arrays_of("vec4<f32>");
    let mut stored: Vec<String> = Vec::new();
    let mut out = String::new();
    // A load may span two lines.
    let joined = text.lines().fold(String::new(), |all, line| match all.ends_with('(') {
        true => all + line.trim_start(),
        false => all + "\n" + line,
    });
    for line in joined.lines() {
        let line = line.replace(&format!("{}()", matrix("f32, C")), "Sums()");
        let line = line.replace("coopMultiplyAdd(", "multiply_add(");
        if line.contains("wgpu_cooperative_matrix") {
            continue;
        } else if let Some((head, store)) = line.split_once("coopStoreT(value, &") {
            let (array, at) = store.split_once('[').unwrap();
            out += &format!("{head}store_{array}(value, {}\n", at.replacen(']', "", 1));
            if !stored.iter().any(|x| x == array) {
                stored.push(array.to_owned());
            }
        } else if let Some((name, load)) = line.split_once(" = coopLoad") {
            let (function, at) = load.split_once("(&").unwrap();
            let (array, at) = at.split_once('[').unwrap();
            let (at, pitch) = at.rsplit_once("], ").unwrap();
            let (rows, pitch) = (function.starts_with('T'), pitch.trim_end_matches(");"));
            if function.contains("f32, C") {
                assert!(rows && in_fours.contains(&array), "{line}");
                out += &format!("{name} = load_{array}({at}, {pitch});\n");
                continue;
            }
            let array = factors.iter().position(|x| *x == array).unwrap();
            out += &format!("{name} = Factor({at}, {pitch}, {rows}, {array}u);\n");
        } else if let Some((sums, more)) = line.split_once(" + p_") {
            let (to, sums) = sums.split_once(" = ").unwrap();
            out += &format!("{to} = plus({sums}, p_{more}\n").replace(';', ");");
        } else {
            out += &line;
            out.push('\n');
            if line.starts_with("fn ") && line.contains("@builtin(local_invocation_index) local: u32) {") {
                let lanes = side * side / 8;
                out += &format!("    lane_id = local % {lanes}u;\n    side = {side}u + local / 65536u;\n");
            }
        }
    }
    assert!(!out.contains("coop_mat") && !out.contains("coopLoad"), "{out}");
    // Mesa compiles in time that grows with the square of the loads and stores in the text, so each function has few of
    // them, in loops whose ends no compiler knows: it would repeat the body.
    out += "
struct Factor { at: u32, pitch: u32, rows: bool, array: u32 }
struct Sums { x: vec4<f32>, y: vec4<f32> }
var<private> lane_id: u32;
var<private> side: u32;
fn plus(x: Sums, y: Sums) -> Sums { return Sums(x.x + y.x, x.y + y.y); }
fn one_of(sums: Sums, i: u32) -> f32 { return select(sums.x, sums.y, i >= 4u)[i % 4u]; }
";
    out += &format!("const MATRIX_SIDE = {side}u;\nconst FACTOR_UNIT = {unit}u;\n");
    out += "fn element(f: Factor, r: u32, q: u32) -> f32 {
    let i = FACTOR_UNIT * (f.at + select(q, r, f.rows) * f.pitch) + select(r, q, f.rows);
    switch f.array {
";
    for (i, array) in factors.iter().enumerate() {
        let read = if side == 16 { format!("{array}[i / 4u][i % 4u]") } else { format!("{array}[i]") };
        out += &format!("        case {i}u: {{ return f32({read}); }}\n");
    }
    out += "        default: { return 0.0; }
    }
}
fn multiply_add(a: Factor, b: Factor, c: Sums) -> Sums {
    let r = lane_id * 8u / MATRIX_SIDE;
    let q = lane_id * 8u % MATRIX_SIDE;
    var sums = c;
    for (var j = 0u; j < side - MATRIX_SIDE + 8u; j++) {
        var sum = one_of(c, j);
        for (var i = 0u; i < side; i++) {
            sum += element(a, r, i) * element(b, i, q + j);
        }
        sums.x = select(sums.x, vec4(sum), vec4(j) == vec4(0u, 1u, 2u, 3u));
        sums.y = select(sums.y, vec4(sum), vec4(j) == vec4(4u, 5u, 6u, 7u));
    }
    return sums;
}
";
    let place = |unit: u32| format!("to + lane_id * 8u / MATRIX_SIDE * stride + lane_id * 8u % MATRIX_SIDE / {unit}u");
    for array in &stored {
        out += &format!("fn store_{array}(sums: Sums, to: u32, stride: u32) {{\n");
        if in_fours.contains(&array.as_str()) {
            out +=
                &format!("    let at = {};\n    {array}[at] = sums.x;\n    {array}[at + 1u] = sums.y;\n}}\n", place(4));
            out += &format!("fn load_{array}(to: u32, stride: u32) -> Sums {{\n");
            out += &format!("    let at = {};\n    return Sums({array}[at], {array}[at + 1u]);\n}}\n", place(4));
            continue;
        }
        // Not in a loop: where the other branch of an `if` stores to the same buffer, in workgroups of 16 threads,
        // NVIDIA's driver 580 lets both branches store.
        out += &format!("    let at = {};\n", place(1));
        for e in 0..8 {
            out += &format!("    {array}[at + {e}u] = sums.{}.{};\n", ["x", "y"][e / 4], ["x", "y", "z", "w"][e % 4]);
        }
        out += "}\n";
    }
    out
}

/// Runs the kernels of a program one by one, as custom kernels, those of `entry` with emulated matrices.
pub(crate) fn run_emulated<'a>(
    gpu: &Gpu, side: u32, program: &Program, entry: &str, operand: impl Fn(usize) -> Arg<'a>,
) {
    // Elements that a pass does not write become visible.
    let scratch: Vec<Buffer<u32>> =
        program.scratch.iter().map(|bytes| gpu.upload(&vec![!0; *bytes as usize / 4]).unwrap()).collect();
    let mut rec = gpu.recorder();
    for Dispatch { kernel, params, bindings, grid, .. } in &program.dispatches {
        let kernel = &program.kernels[*kernel];
        let text = kernel.expand(Target::Naga).unwrap().text().to_owned();
        let text = if kernel.entry == entry { without_matrices(&text, side) } else { text };
        let own = gpu.kernel(&kernel.label(), &text, kernel.entry).unwrap();
        let mut args = vec![Arg::Uniform(params)];
        args.extend(bindings.iter().map(|binding| match binding.resource {
            Resource::Scratch(i) => Arg::from(&scratch[i]),
            Resource::Operand(i) => operand(i),
            Resource::Constant(_) => panic!("no constants"),
        }));
        let Grid::Direct(grid) = *grid else { panic!("known workgroups") };
        own.record(&mut rec, &args, grid).unwrap();
    }
    rec.submit().unwrap();
}
