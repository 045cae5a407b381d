use super::*;
use crate::dense::ProductTile;
use crate::dense::ThreadTile;
use crate::element::Element;
use crate::program::{DeviceProfile, Op};
use crate::shader::Target;
use crate::{
    Attention, Conv2d, Filter2d, Gemm, Histogram, Map, MapFn, Pool2d, PoolKind, Quadtree, Reduce, Scan, Sum, Transpose,
};

/// Names and values of an op's facts, without the bytes requested.
fn of<T: Element>(op: &impl Op<T>) -> Vec<(&'static str, f64)> {
    let program = op.lower(&DeviceProfile::h100()).unwrap();
    let modules = program.kernels.iter().map(|k| k.expand(Target::Naga).unwrap().validate().unwrap());
    let modules: Vec<_> = modules.collect();
    let interfaces: Vec<_> = program.kernels.iter().zip(&modules).map(|(k, m)| m.interface(k.entry).unwrap()).collect();
    let facts = facts(&program, &interfaces.iter().collect::<Vec<_>>(), 32);
    facts.into_iter().map(|f| (f.name, f.value)).filter(|(name, _)| *name != "asked").collect()
}

#[test]
fn tiles_reuse_factors() {
    let gemm = |variant| Gemm::new(256, 256, 256).variant(variant);
    let reuse = |op: &Gemm| of::<f32>(op).into_iter().find(|(name, _)| *name == "reuse").unwrap().1;
    assert_eq!(reuse(&gemm("naive")), 1.0);
    assert_eq!(reuse(&gemm("tiled").tile(ProductTile { m: 16, n: 16, k: 16 })), 16.0);
    assert_eq!(
        reuse(
            &gemm("coarsened")
                .tile(ProductTile { m: 16, n: 32, k: 16 })
                .thread_tile(ThreadTile { rows: 1, columns: 2 })
        ),
        2.0 * 256.0 / 24.0
    );
    let loads = |op: &Gemm| of::<f32>(op).into_iter().filter(|(name, _)| name.starts_with("loads")).collect::<Vec<_>>();
    // 16 x 16 threads: a subgroup loads two rows of A, and the same 16 columns of B twice.
    let tile = gemm("naive").tile(ProductTile { m: 16, n: 16, k: 1 });
    assert_eq!(loads(&tile), [("loads of A", 2.0), ("loads of B", 1.0)]);
    assert_eq!(loads(&tile.trans_a().trans_b()), [("loads of A", 1.0), ("loads of B", 16.0)]);
    // Tiles of 4 x 16 of B; A by rows, or rows of 4 of the staged tile.
    assert_eq!(loads(&gemm("register-direct")), [("loads of A", 32.0), ("loads of B", 2.0)]);
    assert_eq!(loads(&gemm("register-staged")), [("loads of A", 8.0), ("loads of B", 2.0)]);
    assert_eq!(loads(&gemm("tiled")), []);
}

#[test]
fn divergence_follows_the_tree_strides() {
    let divergent = |variant: &str| {
        let known = of::<f32>(&Reduce::new(Sum, 1 << 20).variant(variant));
        assert_eq!(known[0], ("joins", ((1 << 20) - 1) as f64), "{variant}");
        known.get(1).copied()
    };
    // 256 threads are 8 subgroups of 32.
    assert_eq!(divergent("interleaved"), Some(("divergent", f64::from(8 * 5 + 4 + 2 + 1))));
    assert_eq!(divergent("sequential"), Some(("divergent", 5.0)));
    assert_eq!(divergent("coarsened"), None);
}

#[test]
fn scans_count_the_joins_of_their_trees() {
    let joins = |variant: &str| of::<u32>(&Scan::new(Sum, 10_000).variant(variant)).first().copied();
    assert_eq!(joins("kogge-stone"), Some(("joins", f64::from(256 * 8 - 255))));
    assert_eq!(joins("brent-kung"), Some(("joins", f64::from(2 * 255 - 8))));
    assert_eq!(joins("lookback"), None);
}

#[test]
fn stencils_report_reuse_and_idle_threads() {
    let known = |variant: &str| of::<f32>(&Filter2d::new([256, 256], [9, 9], &[1.0; 81]).variant(variant));
    let reuse = |variant| known(variant)[0];
    assert_eq!(reuse("naive"), ("reuse", 1.0));
    assert_eq!(reuse("strategy1"), ("reuse", 36.0));
    // 1024 threads for the tile with its halo.
    let second = known("strategy2");
    assert_eq!((second[0], second[2]), (("reuse", 81.0 * 576.0 / 1024.0), ("computing", 56.25)));
    assert_eq!(second[1], ("divergent", 24.0));
}

#[test]
fn transactions_depend_on_the_layout_of_loads() {
    let histogram = |variant| of::<u32>(&Histogram::new(1 << 24, 64).variant(variant));
    assert_eq!(histogram("global-contiguous"), [("loads", 32.0)]);
    assert_eq!(histogram("global"), [("loads", 1.0)]);
    let transpose = |variant| of::<f32>(&Transpose::new(1000, 1000).variant(variant));
    assert_eq!(transpose("naive"), [("loads", 32.0), ("stores", 1.0)]);
    assert_eq!(transpose("tiled"), []);
}

#[test]
fn variants_request_different_bytes() {
    let profile = DeviceProfile::h100();
    let of = |program: Program| program.requested().unwrap() / program.cost.bytes;
    let conv = |variant| {
        let op = Conv2d::new([1, 16, 32, 32], 16, [3, 3]).variant(variant);
        of(Op::<f32>::lower(&op, &profile).unwrap())
    };
    assert!(conv("direct") > conv("im2col") && conv("im2col") > conv("implicit"));
    let attention = |variant| {
        let op = Attention::new([1, 2, 256, 64], [2, 256]).variant(variant);
        of(Op::<f32>::lower(&op, &profile).unwrap())
    };
    assert!(attention("naive") > attention("flash") && attention("flash") > 1.0);
    // 4 windows of 3 x 3 share a cell, less at the edges.
    let pool = Pool2d::new(PoolKind::Max, [1, 1, 64, 64], [3, 3]).stride([1, 1]);
    let times = of(Op::<f32>::lower(&pool.variant("direct"), &profile).unwrap());
    assert!((times - (62.0 * 62.0 * 10.0) / (64.0 * 64.0 + 62.0 * 62.0)).abs() < 1e-9, "{times}");
    let scan = |variant| of(Op::<u32>::lower(&Scan::new(Sum, 1 << 20).variant(variant), &profile).unwrap());
    assert!(scan("hierarchical") > scan("lookback") && scan("lookback") < 1.1);
    assert_eq!(Op::<f32>::lower(&Quadtree::new(1000), &profile).unwrap().requested(), None);
}

#[test]
fn other_ops_and_empty_input_have_no_facts() {
    assert_eq!(of::<f32>(&Map::new(MapFn::Neg, 100)), []);
    assert_eq!(of::<f32>(&Gemm::new(0, 5, 5)), []);
    assert_eq!(of::<f32>(&Gemm::new(5, 5, 0)), []);
    assert_eq!(of::<f32>(&Transpose::new(0, 7)), []);
    assert_eq!(of::<f32>(&Reduce::rows(Sum, 0, 7)), []);
    assert_eq!(of::<u32>(&Histogram::new(0, 7)).len(), 0);
}
