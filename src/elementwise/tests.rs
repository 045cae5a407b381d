use super::*;
use crate::ErrorKind;
use crate::element::Element;
use crate::program::Op;
use crate::shader::{BindingKind, Target, expand_text};
use half::f16;
use std::collections::HashSet;

fn profiles() -> [DeviceProfile; 4] {
    [DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader(), DeviceProfile::mesa(), DeviceProfile::h100()]
}

fn lower<T: Element>(op: &impl Op<T>, profile: &DeviceProfile) -> Program {
    op.lower(profile).unwrap()
}

fn kind<T: Element>(op: &impl Op<T>) -> ErrorKind {
    op.lower(&DeviceProfile::webgpu_defaults()).unwrap_err().kind()
}

/// Checks that dispatches follow each other without gap or overlap, within the limits, and have enough workgroups
/// for their elements.
fn check_coverage(program: &Program, profile: &DeviceProfile) {
    let operand = &program.operands[0];
    let mut next = 0;
    for d in &program.dispatches {
        let kernel = &program.kernels[d.kernel];
        let [binding, ..] = d.bindings[..] else { panic!("nothing bound") };
        let Binding { offset, size, .. } = binding;
        assert_eq!(d.bindings.len(), program.operands.len());
        let of_elements = |i: &usize| program.operands[*i].len == operand.len;
        for (i, b) in d.bindings.iter().enumerate().filter(|(i, _)| of_elements(i)) {
            assert_eq!(*b, Binding { resource: Resource::Operand(i), offset, size });
        }
        assert_eq!(offset, next);
        assert_eq!(offset % 256, 0);
        assert!(size > 0 && size.next_multiple_of(4) <= profile.limits.max_storage_binding);
        let n = u32::from_ne_bytes(d.params[..4].try_into().unwrap());
        assert_eq!(u64::from(n) * operand.dtype.size() as u64, size);
        let Grid::Direct([x, y, z]) = d.grid else { panic!("indirect") };
        assert!([x, y, z].iter().all(|&d| d > 0 && d <= profile.limits.max_workgroups_per_dimension));
        let words = u64::from(x) * u64::from(y) * u64::from(z) * u64::from(WORKGROUP_SIZE);
        match kernel.entry {
            "elementwise_plain" => assert!(words >= size.div_ceil(4)),
            "elementwise_vec4" => assert!(size % 16 == 0 && words >= size / 16),
            _ => assert!(words >= size.div_ceil(4) || x == grid_stride_workgroups(profile)),
        }
        next += size;
    }
    assert_eq!(next, operand.bytes());
}

#[test]
fn dispatches_cover_every_element_once_at_any_size() {
    for profile in profiles() {
        let chunk = (profile.limits.max_storage_binding / 256 * 256) as usize;
        for variant in Map::variants() {
            let map = |n| Map::new(MapFn::Neg, n).variant(variant.name);
            let fits = |n: &usize| 4 * *n as u64 <= profile.limits.max_buffer_size;
            let sizes = [1, 3, 4, 63, 64, 65, 255, 256, 257, 1001, 33_000_000, chunk / 4, chunk / 4 + 1];
            for n in sizes.into_iter().filter(fits) {
                check_coverage(&lower::<f32>(&map(n), &profile), &profile);
                check_coverage(&lower::<f32>(&map(n).in_place(), &profile), &profile);
                check_coverage(&lower::<f16>(&map(n), &profile), &profile);
                let zip = Zip::new(ZipFn::Add, n).variant(variant.name);
                check_coverage(&lower::<u32>(&zip, &profile), &profile);
                let axpy = Axpy::new(n, 2.0).variant(variant.name);
                check_coverage(&lower::<i32>(&axpy, &profile), &profile);
            }
        }
    }
}

#[test]
fn vec4_leaves_the_rest_of_256_bytes_to_one_workgroup_of_plain() {
    let profile = DeviceProfile::h100();
    let entries = |n| -> Vec<_> {
        let program = lower::<f32>(&Zip::new(ZipFn::Add, n).variant("vec4"), &profile);
        let of = |d: &crate::program::Dispatch| (program.kernels[d.kernel].entry, d.grid);
        program.dispatches.iter().map(of).collect()
    };
    let one = Grid::Direct([1, 1, 1]);
    assert_eq!(entries(63), [("elementwise_plain", one)]);
    assert_eq!(entries(64), [("elementwise_vec4", one)]);
    assert_eq!(entries(65), [("elementwise_vec4", one), ("elementwise_plain", one)]);
    assert_eq!(entries(1 << 20), [("elementwise_vec4", Grid::Direct([1024, 1, 1]))]);
    assert_eq!(entries(0), []);
    let auto = |n| lower::<f32>(&Zip::new(ZipFn::Add, n), &profile).variant();
    assert_eq!([64, 65, (1 << 24) + 1].map(auto), ["vec4", "grid-stride", "vec4"]);
}

#[test]
fn splits_an_operand_above_the_largest_binding() {
    let profile = DeviceProfile::webgpu_defaults();
    let n = 50 << 20; // 200 MiB
    let program = lower::<f32>(&Axpy::new(n, 1.0), &profile);
    let ranges: Vec<_> = program.dispatches.iter().map(|d| (d.bindings[1].offset, d.bindings[1].size)).collect();
    assert_eq!(ranges, [(0, 128 << 20), (128 << 20, 72 << 20)]);
    assert_eq!(program.cost, Cost { flop: 2.0 * n as f64, bytes: 12.0 * n as f64 });

    // A limit that is not a multiple of 256, and a rest.
    let n = (3 << 30) / 4 + 1;
    let program = lower::<f32>(&Axpy::new(n, 1.0), &DeviceProfile::h100());
    assert_eq!(program.dispatches.len(), 3);
    check_coverage(&program, &DeviceProfile::h100());
}

#[test]
fn rejects_requests_without_a_kernel() {
    let map = |f| Map::new(f, 8);
    assert_eq!(kind::<u8>(&map(MapFn::Neg)), ErrorKind::Unsupported);
    assert_eq!(kind::<i32>(&map(MapFn::Exp)), ErrorKind::Unsupported);
    assert_eq!(kind::<u32>(&map(MapFn::Relu).in_place()), ErrorKind::Unsupported);
    assert_eq!(kind::<u64>(&Zip::new(ZipFn::Add, 8)), ErrorKind::Unsupported);
    assert_eq!(kind::<i8>(&Axpy::new(8, 1.0)), ErrorKind::Unsupported);
    assert_eq!(kind::<f32>(&map(MapFn::Neg).variant("vec8")), ErrorKind::InvalidArgument);
    assert_eq!(kind::<f32>(&map(MapFn::Neg).variant("")), ErrorKind::InvalidArgument);
    for alpha in [0.5, -2_147_483_649.0, 2_147_483_648.0, f64::NAN, f64::INFINITY] {
        assert_eq!(kind::<i32>(&Axpy::new(8, alpha)), ErrorKind::InvalidArgument, "{alpha}");
    }
    assert_eq!(kind::<u32>(&Axpy::new(8, -1.0)), ErrorKind::InvalidArgument);
    for n in [(64 << 20) + 1, usize::MAX] {
        assert_eq!(kind::<f32>(&Zip::new(ZipFn::Add, n)), ErrorKind::TooLarge);
    }
    assert_eq!(kind::<u8>(&Zip::new(ZipFn::Add, usize::MAX)), ErrorKind::Unsupported);
    let error = Op::<f32>::lower(&Zip::new(ZipFn::Add, 1 << 30), &DeviceProfile::webgpu_defaults());
    assert_eq!(
        error.unwrap_err().to_string(),
        "zip: x of 1073741824 f32 has 4294967296 bytes; the largest buffer of WebGPU defaults has 268435456; split \
             the work into smaller calls"
    );
}

#[test]
fn alpha_reaches_the_kernel_as_the_bits_of_its_type() {
    fn bits<T: Element>(alpha: f64) -> [u8; 4] {
        let program = lower::<T>(&Axpy::new(1, alpha), &DeviceProfile::mesa());
        program.dispatches[0].params[8..].try_into().unwrap()
    }
    assert_eq!(bits::<f32>(0.1), 0.1f32.to_ne_bytes());
    assert_eq!(bits::<f16>(-1.5), (-1.5f32).to_ne_bytes());
    assert_eq!(bits::<i32>(-7.0), (-7i32).to_ne_bytes());
    assert_eq!(bits::<u32>(4_294_967_295.0), u32::MAX.to_ne_bytes());
}

#[test]
fn every_sample_validates_and_agrees_with_its_shader() {
    let mut seen = HashSet::new();
    for profile in profiles() {
        for op in OPS {
            for variant in (op.variants)() {
                for program in (op.samples)(&profile, variant.name).unwrap() {
                    assert_eq!((program.op, program.variant()), (op.name, variant.name));
                    // Other kernels have operands of other types and lengths, or move them.
                    if program.kernels.iter().all(|kernel| kernel.entry.starts_with("elementwise_")) {
                        check_coverage(&program, &profile);
                    }
                    for d in &program.dispatches {
                        let kernel = &program.kernels[d.kernel];
                        if seen.insert((kernel.clone(), d.fields)) {
                            check_interface(&program, d, &profile);
                        }
                    }
                }
            }
        }
    }
}

fn check_interface(program: &Program, d: &crate::program::Dispatch, profile: &DeviceProfile) {
    let kernel = &program.kernels[d.kernel];
    let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
    let interface = module.interface(kernel.entry).unwrap();
    assert!(interface.workgroup_size.iter().product::<u32>() <= profile.limits.max_invocations);
    assert_eq!(interface.bindings.len(), 1 + d.bindings.len(), "{}", kernel.label());
    let members = &interface.bindings[0].members;
    let fields: Vec<_> = members.iter().map(|m| (&*m.name, m.offset as usize, m.size as usize)).collect();
    assert_eq!(fields, d.fields, "{}", kernel.label());
    for (info, operand) in interface.bindings[1..].iter().zip(&program.operands) {
        let read_only = operand.access == Access::Read;
        let expected = if read_only { BindingKind::Read } else { BindingKind::ReadWrite };
        assert_eq!(info.kind, expected, "{}: {}", kernel.label(), info.name);
    }
}

#[test]
fn element_fragments_for_inputs_only_validate() {
    for (file, ty) in [("element/u8", "u32"), ("element/i8", "i32")] {
        let text = "#import element/f32 as element\n\
                        fn first(word: u32) -> T { return select(decode(word, 0u), T(0), is_nan(T(0))); }\n\
                        const LANES: u32 = PACK;\n";
        let spec = Spec::new().slot("element", Fragment::Library(file));
        let expanded = expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
        assert!(expanded.text().contains(&format!("alias T = {ty};")));
        expanded.validate().unwrap();
    }
}

#[test]
fn custom_functions_are_checked_and_errors_name_their_line() {
    let profile = DeviceProfile::mesa();
    let kernel = |text: &str| lower::<f32>(&Map::new(MapFn::custom(text), 1), &profile).kernels.remove(0);
    let good = kernel("fn map(x: T) -> T { return twice(x); }\nfn twice(x: T) -> T { return x + x; }");
    assert!(!good.expand(Target::Naga).unwrap().validate().unwrap().users_are_contained());
    let plain = kernel("fn map(x: T) -> T { return x + x; }");
    assert!(plain.expand(Target::Naga).unwrap().validate().unwrap().users_are_contained());
    let bad = kernel("fn map(x: T) -> T {\n    return y;\n}");
    let error = bad.expand(Target::Naga).unwrap().validate().unwrap_err();
    assert!(error.to_string().starts_with("<user function>:2:"), "{error}");
    assert!(lower::<f32>(&Map::new(MapFn::Exp, 1), &profile).kernels[0].trusted);
}

#[test]
fn function_names_round_trip() {
    for f in MapFn::BUILT_IN {
        assert_eq!(f.to_string().parse::<MapFn>().unwrap(), f);
    }
    for f in ZipFn::BUILT_IN {
        assert_eq!(f.to_string().parse::<ZipFn>().unwrap(), f);
    }
    assert_eq!("cosh".parse::<MapFn>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!("custom".parse::<ZipFn>().unwrap_err().kind(), ErrorKind::InvalidArgument);
}
