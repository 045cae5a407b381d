//! The import rule of the house: a module may use what stands left of it, and wgpu has one home.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Layers from left to right. A module may use modules of lower layers, and of its own where allowed.
fn layer(module: &str) -> Option<u32> {
    Some(match module {
        "error" | "element" | "shape" | "array" => 0,
        "io" | "analysis" | "shader" => 1,
        "program" | "store" => 2,
        "elementwise" | "primitives" => 3,
        "dense" | "sparse" => 4,
        "conv" | "quantize" => 5,
        "image" | "nn" | "attention" => 6,
        "reference" | "gpu" | "sim" | "cuda" | "operations" => 7,
        "plan" | "tune" => 8,
        "api" | "stream" => 9,
        "lib" => 10,
        _ => return None,
    })
}

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found
}

fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Code without comments and without what is compiled for tests only.
fn code(text: &str) -> String {
    let text = text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let mut parts = text.split("#[cfg(test)]");
    let mut kept = parts.next().unwrap_or("").to_owned();
    for part in parts {
        kept.push_str(behind_item(part));
    }
    kept
}

/// What follows the item that a text begins with: up to its semicolon or its closing brace.
fn behind_item(text: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == '}' || c == ';') {
            return &text[at + 1..];
        }
    }
    ""
}

#[test]
fn code_is_read_behind_tests() {
    let text =
        "use a;\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests { fn d() {} }\nfn e() {} // f\n";
    let code = code(text);
    for (name, kept) in
        [("a;", true), ("b;", false), ("c()", true), ("d()", false), ("e()", true), ("f", false)]
    {
        assert_eq!(code.replace("fn", "").replace("use", "").contains(name), kept, "{name} in {code}");
    }
}

/// Kernels stand in shader files.
#[test]
fn no_kernel_stands_in_rust() {
    for (path, text) in sources() {
        // Texts of tests have braces within strings.
        let code = code(text.split("\nmod tests {").next().unwrap_or_default());
        for word in ["@compute @", "@workgroup_size", "var<", "workgroupBarrier"] {
            assert!(!code.contains(word), "{} has WGSL: `{word}`", path.display());
        }
    }
}

/// Types that the code declares at its top level or as parameters of a kernel, and whether they are public.
fn declared_types(code: &str) -> Vec<(String, bool)> {
    let declared = |line: &str| {
        let macro_line = line.strip_prefix("kernel_params! { ");
        let own_params = |l: &str| l.contains("struct ") && l.ends_with("Params {");
        let indented = line.strip_prefix("    ").filter(|l| own_params(l));
        let line = macro_line.or(indented).unwrap_or(line);
        let restricted = line.strip_prefix("pub(").and_then(|l| l.split_once(") "));
        let (public, line) = match restricted {
            Some((_, line)) => (false, line),
            None => (line.starts_with("pub "), line.strip_prefix("pub ").unwrap_or(line)),
        };
        let kinds = ["struct ", "enum ", "type ", "trait ", "union "];
        let name = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some((name[..end].to_owned(), public))
    };
    code.lines().filter_map(declared).collect()
}

#[test]
fn declared_types_are_found() {
    let text = "pub struct A<T>;\npub(super) enum B {\nkernel_params! { struct C { n: u32 } }\nkernel_params! {\n    \
                pub(crate) struct DParams {\n    struct E {\n    type F = u32;\ntype G = u32;\nlet struct_h = 0;\n";
    let found = declared_types(text);
    let names: Vec<_> = found.iter().map(|(name, public)| (name.as_str(), *public)).collect();
    assert_eq!(names, [("A", true), ("B", false), ("C", false), ("DParams", false), ("G", false)]);
}

/// A search for the name of a private type finds one type.
#[test]
fn names_of_private_types_are_unique() {
    // Of matrix products, and the blocks of the expander.
    let known = ["Block", "Division", "End", "Factor", "Form", "Layout", "PackParams", "Params", "Place"];
    let mut declared = BTreeMap::<String, Vec<(PathBuf, bool)>>::new();
    for (path, text) in sources() {
        for (name, public) in declared_types(&code(text.split("\nmod tests {").next().unwrap_or_default())) {
            declared.entry(name).or_default().push((path.clone(), public));
        }
    }
    for (name, places) in declared {
        let private = places.iter().any(|(_, public)| !public);
        assert!(places.len() == 1 || !private || known.contains(&name.as_str()), "{name}: {places:?}");
    }
}

/// Families look at what a device is and does, not at who made it.
#[test]
fn families_do_not_ask_for_the_driver() {
    let families =
        ["attention", "conv", "dense", "elementwise", "image", "nn", "primitives", "quantize", "sparse"];
    for (path, text) in sources() {
        if families.contains(&module_of(&path).as_str()) {
            let code = code(text.split("\nmod tests {").next().unwrap_or_default());
            for word in [".is_cpu()", ".backend", ".driver"] {
                assert!(!code.contains(word), "{} has `{word}`; take or add a quirk", path.display());
            }
        }
    }
}

/// What is common to all ops is a loop over the catalogue: no op and no variant is named there.
#[test]
fn ops_are_named_in_their_own_rooms() {
    let names: Vec<_> = tilework::operations().map(|operation| format!("\"{}\"", operation.name)).collect();
    for (path, text) in sources() {
        if ["gpu", "operations", "plan", "program", "sim", "tune"].contains(&module_of(&path).as_str()) {
            let code = code(&text);
            for name in &names {
                assert!(!code.contains(name), "{} names the op {name}", path.display());
            }
            for comparison in [
                ".op == \"",
                ".op != \"",
                "variant() == \"",
                "variant() != \"",
                ".why.contains(",
                ".why.starts_with(",
            ] {
                assert!(!code.contains(comparison), "{} has `{comparison}`", path.display());
            }
        }
    }
}

/// What asks for ops by names, or draws them, is a loop over the catalogue too.
#[test]
fn loops_over_the_catalogue_name_no_op() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names: Vec<_> = tilework::operations().map(|operation| format!("\"{}\"", operation.name)).collect();
    let folders =
        ["examples/op", "examples/explain", "examples/sanitize", "examples/tour", "tests/fuzz/fuzz_targets"];
    let files = ["examples/common/asked.rs", "examples/common/npy.rs", "tests/catalogue.rs"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).chain(files.map(|file| root.join(file)));
    for path in paths.filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let code = code(&fs::read_to_string(&path).unwrap());
        for name in &names {
            assert!(!code.contains(name), "{} names the op {name}", path.display());
        }
    }
}

/// Modules named right after `crate::`, also inside `use crate::{..}`.
fn used(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let name = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => found.push(name(rest)),
            Some(list) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && !c.is_whitespace() => {
                            found.push(name(&list[i..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

#[test]
fn modules_import_only_from_their_left() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let module = module_of(&path);
        let own =
            layer(&module).unwrap_or_else(|| panic!("src/{module} is not in the house; see the design"));
        for target in used(&code(&text)).into_iter().filter(|_| module != "lib") {
            // A name that is no module is an item of the facade: only the facade's own layer may use it.
            let other = layer(&target).unwrap_or(10);
            let facade_type = ["Error", "ErrorKind", "Result", "DType", "Element"].contains(&target.as_str());
            // CUDA opens memory of wgpu.
            if path.ends_with("src/cuda/interop.rs") && target == "gpu" {
                continue;
            }
            let executors = own == 7 && other == 7 && target != module;
            if !facade_type && target != module && (other >= own && !(other == own && own == 0) || executors)
            {
                wrong.push(format!("{} uses crate::{target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "against the import rule:\n{}", wrong.join("\n"));
}

#[test]
fn executors_do_not_know_the_families() {
    for (path, text) in sources() {
        if ["gpu", "sim"].contains(&module_of(&path).as_str()) {
            for target in used(&code(&text)) {
                assert!(
                    !layer(&target).is_some_and(|l| (3..=6).contains(&l)),
                    "{} uses crate::{target}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn wgpu_is_named_in_gpu_only() {
    for (path, text) in sources() {
        if module_of(&path) != "gpu" {
            assert!(!code(&text).contains("wgpu::"), "{} names wgpu", path.display());
        }
    }
}

#[test]
fn cuda_is_named_in_cuda_only() {
    for (path, text) in sources() {
        if module_of(&path) != "cuda" {
            for name in ["cudarc::", "libloading::"] {
                assert!(!code(&text).contains(name), "{} names {name}", path.display());
            }
        }
    }
}

#[test]
fn what_lies_under_wgpu_is_named_in_one_file_only() {
    for (path, text) in sources() {
        if !path.ends_with("src/gpu/shared.rs") {
            let code = code(&text);
            assert!(!code.contains("use ash::") && !code.contains("wgpu::hal"), "{}", path.display());
        }
    }
}

/// The macros panic where nobody reads, or the disk is full.
#[test]
fn examples_print_without_macros() {
    fn check(dir: &Path) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let code = code(&fs::read_to_string(&path).unwrap());
                assert!(
                    !code.contains("print!(") && !code.contains("println!("),
                    "{} prints",
                    path.display()
                );
            }
        }
    }
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
}

#[test]
fn the_top_level_is_the_one_agreed_on() {
    let allowed = [
        "shaders",
        "src",
        "benches",
        "tests",
        "examples",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        "clippy.toml",
        "rustfmt.toml",
        "target",
    ];
    for entry in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || allowed.contains(&name.as_str()), "{name} stands at the top level");
    }
}

#[test]
fn every_op_is_one_name_in_five_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut families = BTreeMap::new();
    for (path, _) in sources() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        families.insert(stem, module_of(&path));
    }
    for op in tilework::operations().filter(|op| !op.solver) {
        let name = op.name.replace('-', "_");
        let family = root.join("src");
        let home = fs::read_dir(family)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|dir| dir.join(format!("{name}.rs")).exists() && !dir.ends_with("reference"))
            .unwrap_or_else(|| panic!("no src/<family>/{name}.rs"));
        let family = home.file_name().unwrap().to_string_lossy().into_owned();
        let shaders = fs::read_dir(root.join("shaders").join(&family)).unwrap();
        let has_shader =
            shaders.map(|e| e.unwrap().file_name()).any(|f| f.to_string_lossy().starts_with(&name));
        assert!(has_shader, "no shaders/{family}/{name}*.wgsl");
        for place in [
            format!("src/reference/{name}.rs"),
            format!("tests/{family}/{name}.rs"),
            format!("benches/{family}.rs"),
        ] {
            assert!(root.join(&place).exists(), "{name}: no {place}");
        }
    }
}
