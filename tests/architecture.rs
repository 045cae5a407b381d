//! The import rule: a module may use only lower layers, and only `gpu` uses wgpu.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../src/architecture.md");

/// The start of the module lines of the diagram.
const WORDS: usize = 46;

/// The layer of a module in the diagram: 0 is the lowest.
fn layer(module: &str) -> Option<usize> {
    let picture = PAGE.split("```text\n").nth(1).unwrap().split("\n```").next().unwrap();
    picture
        .lines()
        .rev()
        .position(|line| line.get(..WORDS).unwrap_or(line).split_whitespace().any(|name| name == module))
}

/// Every step of the call path names a function and its file.
#[test]
fn the_documented_call_path_exists_in_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let steps: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("`src/"))
        .map(|line| line.split('`').collect())
        .collect();
    assert!(steps.len() > 10);
    for step in steps {
        let (function, file) = (step[1], step[3]);
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let names = [format!("fn {function}("), format!("fn {function}<"), format!("macro_rules! {function} ")];
        assert!(names.iter().any(|name| text.contains(name)), "{file} has no `{function}`");
    }
}

/// The page shows every folder and file of `src/`.
#[test]
fn every_module_is_in_the_diagram() {
    for (path, _) in sources() {
        let module = module_of(&path);
        assert!(layer(&module).is_some(), "src/{module} is not in the picture of src/architecture.md");
    }
}

/// Paths and texts of all files below `folder` whose name ends in `ending`.
pub(crate) fn files_below(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, ending: &str, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.extension().is_some_and(|e| e == ending) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), ending, &mut found);
    found
}

/// The sources, but for files and folders of unit tests.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = |path: &Path| {
        let inside = path.strip_prefix(root).unwrap().with_extension("");
        inside.iter().any(|part| part == "tests")
    };
    let mut sources = files_below("src", "rs");
    sources.retain(|(path, _)| !tests(path));
    sources
}

/// Names of all shaders, as in `#import`, and their texts.
fn shaders() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let name = |path: &Path| {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    };
    files_below("shaders", "wgsl").into_iter().map(|(path, text)| (name(&path), text)).collect()
}

fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Code without comments and test modules.
fn code(text: &str) -> String {
    let text = text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let mut parts = text.split("#[cfg(test)]");
    let mut kept = parts.next().unwrap_or("").to_owned();
    for part in parts {
        kept.push_str(behind_item(part));
    }
    kept
}

/// The text after its first item, which ends at a semicolon or closing brace.
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
fn code_after_a_test_module_is_read() {
    let text = "use a;\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests { fn d() {} }\nfn e() {} // f\n";
    let code = code(text);
    for (name, kept) in [("a;", true), ("b;", false), ("c()", true), ("d()", false), ("e()", true), ("f", false)] {
        assert_eq!(code.replace("fn", "").replace("use", "").contains(name), kept, "{name} in {code}");
    }
}

/// Kernels are in shader files.
#[test]
fn rust_files_contain_no_kernels() {
    for (path, text) in sources() {
        // Tests may have braces within strings.
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
fn type_declarations_are_found() {
    let text = "pub struct A<T>;\npub(super) enum B {\nkernel_params! { struct C { n: u32 } }\nkernel_params! {\n    \
                pub(crate) struct DParams {\n    struct E {\n    type F = u32;\ntype G = u32;\nlet struct_h = 0;\n";
    let found = declared_types(text);
    let names: Vec<_> = found.iter().map(|(name, public)| (name.as_str(), *public)).collect();
    assert_eq!(names, [("A", true), ("B", false), ("C", false), ("DParams", false), ("G", false)]);
}

/// Searching for the name of a private type finds one type.
#[test]
fn private_type_names_are_unique() {
    let mut declared = BTreeMap::<String, Vec<(PathBuf, bool)>>::new();
    for (path, text) in sources() {
        for (name, public) in declared_types(&code(text.split("\nmod tests {").next().unwrap_or_default())) {
            declared.entry(name).or_default().push((path.clone(), public));
        }
    }
    for (name, places) in declared {
        let private = places.iter().any(|(_, public)| !public);
        assert!(places.len() == 1 || !private, "{name}: {places:?}");
    }
}

/// Families look at the properties of a device, not at its vendor or driver.
#[test]
fn families_do_not_query_the_driver() {
    let families = ["attention", "conv", "dense", "elementwise", "image", "nn", "primitives", "quantize", "sparse"];
    for (path, text) in sources() {
        if families.contains(&module_of(&path).as_str()) {
            let code = code(text.split("\nmod tests {").next().unwrap_or_default());
            for word in [".is_cpu()", ".backend", ".driver"] {
                assert!(!code.contains(word), "{} has `{word}`; take or add a quirk", path.display());
            }
        }
    }
}

/// An op's name stands in its own files and in their folder; all other code loops over the catalogue. Code common to
/// all ops compares no names of ops and variants either.
#[test]
fn ops_are_named_only_in_their_own_files() {
    // Products share a folder, a solver has a shorter file name, WGSL has a function `select`, scans an option
    // `reverse`, and judges are a list.
    let shared = [
        ("gemm", "product"),
        ("gemm-batched", "product"),
        ("power-iteration", "power"),
        ("select", "formula"),
        ("reverse", "scan"),
    ];
    let common = ["gpu", "operations", "plan", "program", "sim", "tune"];
    let comparisons =
        [".op == \"", ".op != \"", "variant() == \"", "variant() != \"", ".why.contains(", ".why.starts_with("];
    for (path, text) in sources().iter().filter(|(path, _)| !path.ends_with("reference/mod.rs")) {
        let code = code(text).replace("feature = \"", "feature = "); // features are named after families
        let inside = path.with_extension("");
        let is_in = |place: &str| inside.iter().any(|part| *part == *place.replace('-', "_"));
        let own = |name: &str| is_in(name) || shared.iter().any(|(op, place)| *op == name && is_in(place));
        let named = |name: &str| code.contains(&format!("\"{name}\""));
        for op in tilework::operations().filter(|op| named(op.name) && !own(op.name)) {
            // A variant of another op may have the name.
            let variant = |other: &tilework::program::Operation| {
                is_in(other.name) && (other.variants)().iter().any(|variant| variant.name == op.name)
            };
            let excused = tilework::operations().any(variant);
            assert!(excused, "{} names the op {}", path.display(), op.name);
        }
        for comparison in comparisons.iter().filter(|_| common.contains(&module_of(path).as_str())) {
            assert!(!code.contains(comparison), "{} has `{comparison}`", path.display());
        }
    }
}

/// Code that requests or draws ops by name loops over the catalogue too.
#[test]
fn loops_over_the_catalogue_name_no_op() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names: Vec<_> = tilework::operations().map(|operation| format!("\"{}\"", operation.name)).collect();
    let folders = ["examples/op", "examples/explain", "examples/sanitize", "examples/tour", "tests/fuzz/fuzz_targets"];
    let files =
        ["examples/common/asked.rs", "examples/common/npy.rs", "tests/catalogue.rs", "tests/support/by_name.rs"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).chain(files.map(|file| root.join(file)));
    for path in paths.filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let code = code(&fs::read_to_string(&path).unwrap());
        // Schedules of the simulator have names of their own.
        let schedules = ["\"random\"", "\"reverse\""];
        for name in names.iter().filter(|name| !schedules.contains(&name.as_str())) {
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
fn modules_import_only_from_lower_layers() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let module = module_of(&path);
        let own = layer(&module).unwrap();
        for target in used(&code(&text)).into_iter().filter(|_| module != "lib") {
            // A name that is not a module is an item of the facade, which only the facade's layer may use.
            let other = layer(&target).unwrap_or(11);
            let facade_type = ["Error", "ErrorKind", "Result", "DType", "Element"].contains(&target.as_str());
            // CUDA opens memory of wgpu.
            let shares = ["src/cuda/interop.rs", "src/cuda/peers.rs"].iter().any(|file| path.ends_with(file));
            if shares && target == "gpu" {
                continue;
            }
            let executors = own == 7 && other == 7 && target != module;
            if !facade_type && target != module && (other >= own && !(other == own && own == 0) || executors) {
                wrong.push(format!("{} uses crate::{target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "against the import rule:\n{}", wrong.join("\n"));
}

/// Layers of the shader folders: shared by all families, then the families, as in `layer`.
fn shader_layer(folder: &str) -> Option<usize> {
    Some(match folder {
        "element" => 0,
        "op" | "activation" => 1,
        "subgroup" => 2,
        "workgroup" => 3,
        "rows" | "dispatch" | "probe" => 4,
        family => 2 + layer(family).filter(|l| (3..=7).contains(l))?,
    })
}

#[test]
fn shaders_import_only_from_lower_layers() {
    let shaders = shaders();
    let folder = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let known = |name: &str| shader_layer(&folder(name)).unwrap_or_else(|| panic!("shaders/{name}: no layer"));
    let mut uses = Vec::new();
    for (name, text) in &shaders {
        for import in text.lines().filter_map(|line| line.trim().strip_prefix("#import ")) {
            let other = import.split_whitespace().next().unwrap_or_default();
            assert!(shaders.contains_key(other), "shaders/{name}.wgsl imports {other}");
            uses.push((format!("shaders/{name}.wgsl"), folder(name), known(name), other.to_owned()));
        }
    }
    // Kernels and slot contents that the families and their shared code name.
    for (path, text) in sources() {
        let module = module_of(&path);
        let Some(own) = layer(&module).filter(|l| (2..=6).contains(l)).map(|l| l + 2) else { continue };
        let code = code(&text);
        for other in code.split('"').filter(|word| shaders.contains_key(*word)) {
            uses.push((path.display().to_string(), module.clone(), own, other.to_owned()));
        }
    }
    let goes_up = |(_, module, own, other): &&(String, String, usize, String)| {
        folder(other) != *module && known(other) >= *own + usize::from(module == "program")
    };
    let wrong: Vec<_> = uses.iter().filter(goes_up).map(|(user, _, _, other)| format!("{user}: {other}")).collect();
    assert!(wrong.is_empty(), "against the import rule:\n{}", wrong.join("\n"));
}

/// Names of the entry points of a shader: the functions that follow `@compute`, one for each branch of an `#if`.
fn entries(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("@compute") {
            let heads = lines.by_ref().take_while(|line| line.starts_with("fn ") || line.starts_with('#'));
            found.extend(heads.filter_map(|line| line.strip_prefix("fn ")?.split('(').next()));
        }
    }
    found
}

/// A profiler shows only the entry point: it names the op and the phase.
#[test]
fn entry_points_are_named_after_their_files() {
    let mut all = BTreeMap::new();
    for (name, text) in &shaders() {
        let stem = name.rsplit('/').next().unwrap_or_default();
        let entries = entries(text);
        assert_eq!(entries.is_empty(), !text.contains("@compute"), "{name}: its entry points are not found");
        for entry in &entries {
            let rest = entry.strip_prefix(stem).unwrap_or("no");
            let fits = rest.is_empty() || rest.starts_with('_') && entries.len() > 1;
            assert!(fits, "shaders/{name}.wgsl has the entry point `{entry}`");
            let other = all.insert((*entry).to_owned(), name.clone());
            assert!(other.is_none(), "`{entry}` is an entry point of {name} and of {other:?}");
        }
    }
}

/// A fragment with one importer states what it needs from that importer.
#[test]
fn fragments_with_one_importer_state_their_contract() {
    let shaders = shaders();
    let rust: String = sources().iter().map(|(_, text)| code(text)).collect();
    let quoted: BTreeSet<_> = rust.split('"').collect();
    for (name, text) in
        shaders.iter().filter(|(name, text)| !text.contains("@compute") && !quoted.contains(name.as_str()))
    {
        let imports = |text: &&String| {
            let mut names = text.lines().filter_map(|line| line.strip_prefix("#import ")?.split(' ').next());
            names.any(|import| import == name)
        };
        let head: String = text.lines().take_while(|line| line.starts_with("//")).collect();
        let stated = head.contains("The importer declares")
            || head.contains("The importer imports")
            || head.contains("You declare");
        assert!(
            stated || shaders.values().filter(imports).count() > 1,
            "shaders/{name}.wgsl has one importer; merge them"
        );
    }
}

#[test]
fn executors_do_not_import_families() {
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
fn only_the_gpu_module_names_wgpu() {
    for (path, text) in sources() {
        if module_of(&path) != "gpu" {
            assert!(!code(&text).contains("wgpu::"), "{} names wgpu", path.display());
        }
    }
}

#[test]
fn only_the_cuda_module_names_cuda() {
    for (path, text) in sources() {
        let (module, code) = (module_of(&path), code(&text));
        if module != "cuda" {
            assert!(!code.contains("cudarc::"), "{} names cudarc", path.display());
        }
        // NVRTC and NCCL are found when the program runs.
        if !["cuda", "shard"].contains(&module.as_str()) {
            assert!(!code.contains("libloading::"), "{} names libloading", path.display());
        }
    }
}

#[test]
fn only_the_shard_module_names_nccl() {
    for (path, text) in sources() {
        if module_of(&path) != "shard" {
            let code = code(&text).replace("feature = \"nccl\"", "").to_lowercase();
            assert!(!code.contains("nccl") || path.ends_with("src/lib.rs"), "{} names NCCL", path.display());
        }
    }
}

#[test]
fn only_two_files_name_vulkan() {
    let those = ["src/gpu/shared.rs", "src/gpu/vulkan.rs"];
    for (path, text) in sources() {
        if !those.iter().any(|file| path.ends_with(file)) {
            let code = code(&text);
            assert!(!code.contains("use ash::") && !code.contains("wgpu::hal"), "{}", path.display());
        }
    }
}

/// The macros panic on a closed pipe or a full disk.
#[test]
fn examples_print_without_macros() {
    fn check(dir: &Path) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let code = code(&fs::read_to_string(&path).unwrap());
                assert!(!code.contains("print!(") && !code.contains("println!("), "{} prints", path.display());
            }
        }
    }
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
}

#[test]
fn the_top_level_holds_only_the_listed_entries() {
    let allowed = [
        "shaders",
        "src",
        "benches",
        "tests",
        "examples",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CITATION.cff",
        "deny.toml",
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
fn every_op_has_its_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let references: String =
        sources().into_iter().filter(|(path, _)| module_of(path) == "reference").map(|(_, text)| text).collect();
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
        let has_shader = shaders.map(|e| e.unwrap().file_name()).any(|f| f.to_string_lossy().starts_with(&name));
        assert!(has_shader, "no shaders/{family}/{name}*.wgsl");
        for place in [format!("tests/{family}/{name}.rs"), format!("benches/{family}.rs")] {
            assert!(root.join(&place).exists(), "{name}: no {place}");
        }
        assert!(references.contains(&format!("fn judge_{name}(")), "src/reference has no judge_{name}");
    }
}
