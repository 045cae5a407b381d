use super::*;
use crate::program::{DeviceProfile, Op};
use crate::{RadixSort, Reduce, Sum};

#[test]
fn emits_operands_bindings_and_grids() {
    let reduce = Reduce::new(Sum, 5).variant("coarsened");
    let program = Op::<u32>::lower(&reduce, &DeviceProfile::webgpu_defaults()).unwrap();
    let Emitted { json, shaders } = program.emit().unwrap();
    let entry = program.kernels[0].entry;
    let kernel = format!(r#"{{"file":"0_{entry}.wgsl","entry":"{entry}","bindings":[{{"binding":0,"type":"uniform","#);
    for text in [
        r#""format":1,"op":"reduce","variant":"coarsened","#,
        r#""features":[],"#,
        r#"{"name":"input","type":"u32","length":5,"access":"read"}"#,
        &kernel,
        r#""bindings":[{"operand":0,"offset":0,"size":20},"#,
        r#""workgroups":[1,1,1]}"#,
    ] {
        assert!(json.contains(text), "{text} is not in {json}");
    }
    assert!(shaders.iter().all(|(_, text)| text.contains("@compute")));
}

#[test]
fn names_the_features_that_kernels_need() {
    let sort = Op::<u32>::lower(&RadixSort::new(5000).variant("onesweep"), &DeviceProfile::h100()).unwrap();
    let json = sort.emit().unwrap().json;
    assert!(json.contains(r#""features":["subgroups"]"#), "{json}");
}

#[test]
fn strings_are_escaped() {
    assert_eq!(quoted("a\"\\\n"), r#""a\"\\\u000a""#);
    assert_eq!(hex(&[0, 255, 16]), r#""00ff10""#);
}
