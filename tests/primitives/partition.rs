//! Every variant of `Partition` against the reference.

use crate::support::devices;
use tilework::prelude::*;
use tilework::reference::partition;

#[test]
fn predicates_partition_like_flags() {
    for device in devices() {
        let gpu = &device.gpu;
        let x: Vec<u32> = (0..9_999).map(|i| i * 7 % 100).collect();
        let low = Predicate::custom("fn keep(x: T) -> bool { return x < 50u; }");
        let plan = Partition::by(x.len(), low).plan::<u32>(gpu).unwrap();
        let (input, output) = (gpu.upload(&x).unwrap(), gpu.alloc::<u32>(x.len()).unwrap());
        let count = gpu.alloc::<u32>(1).unwrap();
        let mut rec = gpu.recorder();
        plan.record_by(&mut rec, &input, &output, &count).unwrap();
        rec.submit().unwrap();
        let f: Vec<u32> = x.iter().map(|x| u32::from(*x < 50)).collect();
        assert!(output.read().unwrap() == partition(&x, &f).0, "{}", device.label);
    }
}
