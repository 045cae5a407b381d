//! Errors in WGSL that a user wrote: they show the user's own line, or say what is missing.

use super::refused;
use crate::support::gpu;
use tilework::ErrorKind::Shader;
use tilework::prelude::*;

/// The error of a function for `map`.
fn of_map(text: &str) -> tilework::Result<()> {
    let Some(gpu) = gpu() else { return Err(no_gpu()) };
    Map::new(MapFn::custom(text), 100).plan::<f32>(gpu).map(drop)
}

fn of_reduce(text: &str) -> tilework::Result<()> {
    let Some(gpu) = gpu() else { return Err(no_gpu()) };
    Reduce::new(CustomOp::new(text), 100).plan::<u32>(gpu).map(drop)
}

fn no_gpu() -> tilework::Error {
    let none = GpuOptions { adapter: tilework::gpu::AdapterFilter::Index(usize::MAX), ..GpuOptions::default() };
    pollster::block_on(Gpu::request(none)).unwrap_err()
}

#[test]
fn a_mistake_is_shown_with_a_mark() {
    if gpu().is_none() {
        return;
    }
    refused(
        of_map("fn map(x: T) -> T {\n    return unknown(x); // why\n}"),
        Shader,
        &["<user function>:2: ", "`unknown`", "  |     return unknown(x);\n  |            ^^^^^^^"],
    );
    let result = of_map("fn map(x: T) -> T {\n\treturn x +;\n}");
    refused(result, Shader, &["<user function>:2:", "return x +;\n  | \t", "^"]);
    // Found only when the types are checked.
    let result = of_map("\nfn map(x: T) -> T { return vec2(x, x); }");
    refused(result, Shader, &["<user function>:2:", "vec2(x, x)", "^"]);
    let long = format!("fn map(x: T) -> T {{ return {}unknown(x); }}", "x + ".repeat(200));
    let error = of_map(&long).unwrap_err().to_string();
    assert!(error.lines().all(|line| line.chars().count() < 200) && error.contains("^^^^^^^"), "{error}");
    let keep = Predicate::custom("fn keep(x: T) -> bool { return x > limit; }");
    let select = Select::by(10, keep).plan::<f32>(gpu().unwrap());
    refused(select, Shader, &["<user predicate>:1:", "`limit`", "^^^^^"]);
}

#[test]
fn a_missing_function_is_named_with_its_types() {
    if gpu().is_none() {
        return;
    }
    let must = "it must define `fn map(x: f32) -> f32` (`T` is f32 here)";
    let result = of_map("fn mapp(x: T) -> T { return x; }");
    refused(result, Shader, &["<user function>: ", must, "it defines `mapp`"]);
    refused(of_map("// nothing"), Shader, &[must, "it defines no function"]);
    refused(
        of_reduce("fn op_combine(a: T, b: T) -> T { return a + b; }"),
        Shader,
        &["<user op>: ", "must define `fn op_identity() -> u32`", "it defines `op_combine`"],
    );
    let result = of_reduce("fn op_identity() -> T { return T(0); }");
    refused(result, Shader, &["must define `fn op_combine(a: u32, b: u32) -> u32`"]);
}

#[test]
fn a_function_of_wrong_types_is_shown() {
    if gpu().is_none() {
        return;
    }
    for (text, mark) in [
        ("\nfn map(x: u32) -> u32 { return x; }", "fn map(x: u32) -> u32 {"),
        ("\nfn map(x: T, y: T) -> T { return x; }", "fn map(x: T, y: T) -> T {"),
        ("\nfn map(x: T) -> vec2<T> { return vec2(x, x); }", "fn map(x: T) -> vec2<T> {"),
        ("\nfn map(x: T) { }", "fn map(x: T) {"),
    ] {
        let wanted = "the function must be `fn map(x: f32) -> f32`";
        refused(of_map(text), Shader, &["<user function>:2: ", wanted, mark, "^^^^^"]);
    }
    refused(
        of_reduce("fn op_identity() -> T { return T(0); }\nfn op_combine(a: f32, b: f32) -> f32 { return a + b; }"),
        Shader,
        &["<user op>:2: ", "must be `fn op_combine(a: u32, b: u32) -> u32`", "^^^"],
    );
    // The same types by other names are fine.
    of_map("fn map( value : f32 )->f32 { return value; }").unwrap();
}

#[test]
fn a_kernel_of_a_user_is_shown_and_so_are_its_imports() {
    let Some(gpu) = gpu() else { return };
    let kernel = |text: &str| gpu.kernel("mine.wgsl", text, "k").map(drop);
    let result = kernel("@compute @workgroup_size(1) fn k() {\n    let x = y;\n}");
    refused(result, Shader, &["mine.wgsl:2: ", "`y`", "  |     let x = y;\n  |             ^"]);
    // A fragment whose importer lacks a declaration.
    let text = "// one\n#import op/add\n@compute @workgroup_size(1) fn k() { }";
    refused(kernel(text), Shader, &["mine.wgsl:2: ", "imports", "`Acc`", "shaders/op/add.wgsl:", "header"]);
    let result = kernel("@compute @workgroup_size(1) fn other() { }");
    refused(result, Shader, &["mine.wgsl", "no entry point `k`", "other"]);
}
