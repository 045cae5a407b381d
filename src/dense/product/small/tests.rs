use super::*;
use crate::dense::GemmBatched;
use crate::dense::product::trial::lower;
use crate::dense::product::{Product, ProductTypes};
use crate::element::DType;
use crate::program::{DeviceProfile, Grid};

#[test]
fn small_matrices_share_a_workgroup() {
    let h100 = DeviceProfile::h100();
    for (side, batch, workgroups) in [(32, 10_000, 5000), (16, 10_000, 5000), (4, 1000, 32), (8, 3, 1)] {
        let program = lower(&GemmBatched::new(batch, side, side, side).variant("small"), &h100).unwrap();
        assert_eq!(program.dispatches[0].grid, Grid::fold(workgroups), "{batch} x {side}");
    }
}

#[test]
fn every_small_shape_fits_every_device() {
    for profile in [DeviceProfile::webgpu_defaults(), DeviceProfile::mesa(), DeviceProfile::h100()] {
        for m in 1..=SMALL_SIDE {
            for n in 1..=SMALL_SIDE {
                for k in [1, 31, 33, 64, 1000] {
                    let product = Product::of_batch(100, m, n, k);
                    let layouts = product.layouts("small").unwrap();
                    let types = ProductTypes::all(DType::F32);
                    let job = ProductJob { product: &product, name: "small", layouts, types, profile: &profile };
                    let form = small_form(&job).unwrap();
                    let loads = form.tile.k * form.tile.m.max(form.tile.n) / form.lanes();
                    assert!(form.threads() <= 256 && form.workgroup_bytes() <= SMALL_BYTES && loads <= 64, "{form:?}");
                }
            }
        }
    }
}
