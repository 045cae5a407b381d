use super::*;
use crate::conv::Layer;

/// The products of a correlation along an axis: output, cell of a window, and place in x.
fn products(c: &Correlation, axis: usize) -> Vec<[usize; 3]> {
    let of = |output: usize, cell: usize| {
        let place = (output * c.stride[axis] + cell * c.dilation[axis]) as isize - c.pad[axis];
        let up = c.up[axis] as isize;
        let inside = place >= 0 && place % up == 0 && place / up < c.size[axis] as isize;
        inside.then_some([output, cell, (place / up) as usize])
    };
    (0..c.out[axis]).flat_map(|output| (0..c.kernel[axis]).filter_map(move |cell| of(output, cell))).collect()
}

#[test]
fn phases_have_every_product_once() {
    for (kernel, stride, pad, dilation) in
        [(3, 2, 1, 1), (1, 2, 0, 1), (7, 2, 3, 1), (3, 3, 0, 2), (5, 2, 2, 2), (2, 4, 1, 3), (4, 3, 2, 6)]
    {
        let layer = Layer {
            stride: [stride; 2],
            pads: [pad; 4],
            dilation: [dilation; 2],
            ..Layer::new("conv", [1, 1, 23, 23], 1, [kernel; 2])
        };
        let c = layer.backward().unwrap();
        let mut got = Vec::new();
        for phase in Phase::all(&c).iter().filter(|phase| phase.first[1] == 0) {
            got.extend(products(&phase.c, 0).into_iter().map(|[output, cell, at]| {
                [phase.first[0] + stride * output, phase.cell[0] + phase.cell_step[0] * cell, at]
            }));
        }
        got.sort_unstable();
        let any_column = Phase::all(&c).iter().any(|phase| phase.first[1] == 0 && phase.c.kernel[1] > 0);
        assert!(!any_column || got == products(&c, 0), "{kernel} {stride} {pad} {dilation}");
    }
}
