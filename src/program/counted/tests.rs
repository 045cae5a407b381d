use super::*;
use crate::element::Element;
use crate::program::{DeviceProfile, Op};
use crate::{
    Broadcast, DType, Gather, Map, MapFn, RadixSort, Scatter, ScatterOp, SelectColumns, TopKRows, Transform,
    TransformFn,
};

fn lower<T: Element>(op: &impl Op<T>) -> Program {
    op.lower(&DeviceProfile::h100()).unwrap()
}

#[test]
fn large_dispatches_are_launched_for_the_count() {
    let indirect = |program: &Program| {
        let grids = program.dispatches.iter().map(|d| d.grid);
        grids.filter(|grid| matches!(grid, Grid::Indirect { .. })).count()
    };
    let before_launched = |program: &Program| {
        let at = program.dispatches.iter().position(|d| matches!(d.grid, Grid::Indirect { .. })).unwrap();
        program.kernels[program.dispatches[at - 1].kernel].entry
    };
    let n = 1 << 28;
    let cast = |shape| Transform::new(shape, TransformFn::Convert).input(DType::U8, Broadcast::Each);
    let large = [
        (lower::<f32>(&Map::new(MapFn::Abs, n).counted()), 1),
        (lower::<u32>(&Gather::new([9, 1], n).counted()), 1),
        (lower::<u32>(&Scatter::new(ScatterOp::Set, [9, 1], n).counted()), 2),
        (lower::<u32>(&RadixSort::new((1 << 29) - 64).counted()), 4),
        (lower::<u32>(&SelectColumns::new(n).column(DType::F32, 1)), 1),
        (lower::<u32>(&cast([n / 8, 3]).counted()), 1),
        (lower::<f32>(&TopKRows::new([1 << 18, 40], 5).counted()), 1),
    ];
    for (program, wanted) in large {
        assert_eq!((indirect(&program), before_launched(&program)), (wanted, "fold_count"), "{}", program.op);
    }
    let small = [
        lower::<f32>(&Map::new(MapFn::Abs, 1 << 20).counted()),
        lower::<f32>(&Map::new(MapFn::Abs, n)),
        lower::<u32>(&Gather::new([9, 1], 1 << 20).counted()),
        lower::<u32>(&RadixSort::new(1 << 20).counted()),
        lower::<u32>(&cast([1 << 20, 3]).counted()),
    ];
    for program in small {
        assert_eq!(indirect(&program), 0, "{}", program.op);
    }
}
