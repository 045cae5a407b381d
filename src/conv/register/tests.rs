use super::*;
use crate::shader::Target;

#[test]
fn writes_the_longest_kernels_that_can_be_requested() {
    for (filter, rows, planes) in [([255, 1, 1], 16, 1), ([1, 1023, 3], 1, 1), ([3, 5, 1], 16, 16)] {
        let form = Registers { filter, packed: false, vectors: true, rows, planes, lines: None };
        let [z, y, x] = filter.map(|extent| extent as u32);
        let spec =
            Spec::new().flag("VECTORS", true).constant("FILTER_X", x).constant("FILTER_Y", y).constant("FILTER_Z", z);
        let text = form.kernel(spec).expand(Target::Naga).unwrap();
        assert_eq!(text.text().matches(" = fma(").count(), form.terms(), "{form:?}");
    }
}
