use crate::shader::{Spec, Target, expand_text};

#[test]
fn counts_barriers_of_called_functions() {
    let text = "
            var<workgroup> wg_x: array<u32, 64>;
            var<workgroup> wg_y: u32;
            fn twice() { workgroupBarrier(); storageBarrier(); }
            fn calls() { twice(); twice(); }
            @compute @workgroup_size(64)
            fn all(@builtin(local_invocation_index) lane: u32) {
                wg_x[lane] = lane;
                calls();
                for (var i = 0u; i < 4u; i++) { workgroupBarrier(); twice(); }
                wg_y = workgroupUniformLoad(&wg_x[0]);
            }
            @compute @workgroup_size(64)
            fn none(@builtin(local_invocation_index) lane: u32) { wg_x[lane] = lane; }";
    let module = expand_text("barriers.wgsl", text, &Spec::new(), Target::Naga).unwrap().validate().unwrap();
    let of = |entry| {
        let interface = module.interface(entry).unwrap();
        (interface.barriers, interface.barriers_in_loops)
    };
    assert_eq!((of("all"), of("none")), ((4 + 3 + 2, 3), (0, 0)));
}

#[test]
fn a_threads_memory_is_bounded() {
    let main = |head: &str, body: &str| {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<f32>;
                {head}
                @compute @workgroup_size(1) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).unwrap().validate()
    };
    let write = "list[i] = 1.0; out[i] = list[i + 1];";
    let private = |n: usize| main(&format!("var<private> list: array<f32, {n}>;"), write);
    let local = |n: usize| main("", &format!("var list: array<f32, {n}>; {write}"));
    let value = |n: usize| main("", &format!("let list = array<f32, {n}>(); out[i] = list[i];"));
    let constant = |n: usize| main(&format!("const list = array<f32, {n}>();"), "out[i] = list[i];");
    let nested = |n: usize| main("", &format!("var list: array<array<mat4x4<f32>, 10>, {}>;", n / 160 + 1));
    let shared = |n: usize| {
        main(&format!("fn f() {{ var a: array<f32, {n}>; }} fn g() {{ var b: array<f32, {n}>; }}"), "f(); g();")
    };
    let of: [&dyn Fn(usize) -> crate::Result<super::Module>; 6] =
        [&private, &local, &value, &constant, &nested, &shared];
    for (i, kernel) in of.into_iter().enumerate() {
        assert!(kernel(10_000).is_ok(), "{i}");
        for n in [1 << 20, 100_000_000] {
            let error = kernel(n + 1).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::TooLarge, "{i}");
            let text = error.to_string();
            assert!(text.starts_with("k.wgsl:") && text.contains("the limit is 1048576"), "{i}: {text}");
        }
    }
    assert!(private(1 << 20).is_ok() && local(1 << 20).is_ok());
    // Workgroup memory and bindings have other limits.
    assert!(main("var<workgroup> list: array<f32, 10000000>;", write).is_ok());
}
