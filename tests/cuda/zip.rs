//! Functions of pairs on CUDA against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, Sample, assert_close, numbers};
use tilework::prelude::*;
use tilework::reference::{zip, zip_bound};

fn check<T: Sample>(function: &ZipFn, x: &[T], y: &[T]) {
    let Some(cuda) = cuda() else { return };
    let n = x.len();
    let plan = Zip::new(function.clone(), n).plan::<T>(cuda).unwrap();
    let (a, b, c) = (cuda.upload(x).unwrap(), cuda.upload(y).unwrap(), cuda.alloc::<T>(n).unwrap());
    plan.run(&cuda.stream().unwrap(), &a, &b, &c).unwrap();
    let (want, bound) = (zip(function, x, y).unwrap(), zip_bound(function, x, y).unwrap());
    let what = format!("{function} of {n} {}", T::DTYPE);
    assert_close(&what, &numbers(&c.read().unwrap()), &numbers(&want), &bound);
}

fn all<T: Sample>() {
    let mut random = Random::new(8);
    for function in ZipFn::BUILT_IN {
        for n in [0, 1, 3, 4, 1023, 1024, 1029, 300_001] {
            let (x, y) = (random.any::<T>(n), random.any::<T>(n));
            check(&function, &x, &y);
        }
        let ends = T::extremes();
        let x: Vec<T> = ends.iter().flat_map(|x| vec![*x; ends.len()]).collect();
        let y: Vec<T> = ends.iter().cycle().take(x.len()).copied().collect();
        check(&function, &x, &y);
    }
}

#[test]
fn pairs_match_reference() {
    all::<f32>();
    all::<i32>();
    all::<u32>();
}
