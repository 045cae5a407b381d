use super::*;
use crate::conv::Layer;
use crate::shader::Target;

#[test]
fn kernels_match_their_rows() {
    let h100 = DeviceProfile::h100();
    let layer = Layer { last: true, ..Layer::new("conv", [32, 256, 28, 28], 256, [3, 3]) };
    let c = layer.forward().unwrap().of(DType::F16, &h100).unwrap();
    for row in ROWS {
        for (gradients, windows_first, side) in [(false, false, 16), (false, true, 8), (true, false, 16)] {
            let of = CoopLayer::windows(&c, 32, None, &h100);
            let product = CoopLayer { tile: row.tile, part: row.thread, gradients, windows_first, side, ..of };
            assert!(product.fits(&h100), "{row:?}");
            let spec = Spec::new().constant("C_BINDING", 3u32);
            let kernel = product.kernel(&c, spec, true);
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface(kernel.entry).unwrap();
            assert_eq!(interface.workgroup_size[0], product.threads(), "{product:?}");
            assert_eq!(interface.workgroup_bytes, product.workgroup_bytes(), "{product:?}");
        }
    }
}
