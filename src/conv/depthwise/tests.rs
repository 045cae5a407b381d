use super::*;
use crate::shader::Target;
use std::collections::BTreeSet;

#[test]
fn only_cells_that_windows_read_are_loaded() {
    for (kernel, stride, dilation, pad) in [
        ([3, 3], [1, 1], [1, 1], 1),
        ([1, 1], [2, 2], [1, 1], 0),
        ([3, 2], [2, 4], [5, 1], -3),
        ([2, 3], [3, 1], [2, 9], 6),
        ([7, 7], [1, 3], [1, 1], 3),
    ] {
        let c = Correlation {
            op: "conv",
            images: 1,
            groups: 8,
            from: 1,
            to: 1,
            size: [64; 2],
            out: [64; 2],
            kernel,
            stride,
            up: [1; 2],
            pad: [0, pad],
            dilation,
            turned: false,
            last: false,
            precision: crate::dense::Precision::Strict,
            dtype: crate::element::DType::F32,
        };
        let reached = |axis: usize, outputs: usize| -> BTreeSet<isize> {
            let of = |output: usize, tap: usize| (output * c.stride[axis] + tap * c.dilation[axis]) as isize;
            (0..outputs).flat_map(|o| (0..c.kernel[axis]).map(move |tap| of(o, tap))).collect()
        };
        for loads in [false, true] {
            let form = Depthwise { c, rows: 2, loads, stores: false };
            let text = form.kernel(Spec::new()).expand(Target::Naga).unwrap();
            let place = |cell: isize| if loads { (cell - pad).div_euclid(4) } else { cell - pad };
            let columns: BTreeSet<_> = reached(1, WIDE).into_iter().map(place).collect();
            let wanted = reached(0, form.rows).len() * columns.len();
            assert_eq!(text.text().matches("(x[begin").count(), wanted, "{form:?}");
            let first = format!("column{} + {}u;", if loads { " / 4u" } else { "" }, place(0) as u32);
            assert!(text.text().contains(&first), "{form:?}: {first}");
        }
    }
}
