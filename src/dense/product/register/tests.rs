use super::*;
use crate::shader::Target;

#[test]
fn kernels_match_the_checks() {
    for ([m, n, k], thread) in [([128, 128, 8], [8, 8]), ([12, 20, 12], [4, 4]), ([24, 40, 4], [4, 8])] {
        for bits in 0..32 {
            let on = |bit: u32| bits >> bit & 1 == 1;
            let small = on(4) && m < 128;
            let form = RegisterForm {
                tile: ProductTile { m, n, k },
                thread,
                double: on(0) && !small,
                unrolled: !on(1),
                vectors: on(1),
                trans_a: on(2),
                trans_b: on(3),
                vec_a: on(0),
                vec_b: on(1),
                steps: StepCount::Odd,
                products: small.then_some(3),
                bytes: false,
                walked: None,
            };
            let kernel = form.kernel(Spec::new().flag("BATCHED", small));
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface(kernel.entry).unwrap();
            assert_eq!(u64::from(interface.workgroup_bytes), form.workgroup_bytes(), "{form:?}");
            assert_eq!(interface.workgroup_size, [form.threads(), 1, 1], "{form:?}");
        }
    }
}
