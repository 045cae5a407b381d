//! Files that ranks stream from disk, against one device that holds them.

use super::{LIMIT, group};
use crate::support::{Random, gpu};
use std::io::Write;
use tilework::prelude::*;
use tilework::{ErrorKind, shard};

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn files_are_reduced_and_counted() {
    let Some(gpu) = gpu() else { return };
    for n in [1, 2, 300_001] {
        let all: Vec<u32> = Random::new(n as u64).elements(n);
        let there = gpu.upload(&all).unwrap();
        let sum = gpu.reduce(&there, Sum).unwrap().read().unwrap()[0];
        let least = gpu.reduce(&there, Min).unwrap().read().unwrap()[0];
        let counts = gpu.histogram(&there, 7, 0.0, 4e9).unwrap().read().unwrap();
        let file = file(bytemuck::cast_slice(&all));
        for p in 1..=3 {
            let results = shard::run(&group(p).unwrap(), LIMIT, |rank| {
                let found = [
                    rank.reduce_file::<u32, _, _>(file.path(), Sum)?,
                    rank.reduce_file::<u32, _, _>(file.path(), Min)?,
                ];
                Ok((found, rank.histogram_file::<u32>(file.path(), 7, 0.0, 4e9)?))
            });
            for (found, counted) in results.unwrap() {
                assert_eq!(found, [sum, least], "{n} on {p}");
                assert!(counted.iter().zip(&counts).all(|(a, b)| *a == u64::from(*b)), "{n} on {p}");
            }
        }
    }
}

#[test]
fn files_that_are_not_there_or_not_whole_are_errors_on_every_rank() {
    let Some(gpus) = group(2) else { return };
    let (odd, good) = (file(&[1, 2, 3, 4, 5]), file(&[0; 8]));
    let kinds = |paths: [&std::path::Path; 2]| {
        let results =
            shard::run_each(&gpus, LIMIT, |rank| rank.reduce_file::<u32, _, _>(paths[rank.index()], Sum).map(|_| ()));
        results.unwrap().into_iter().map(|r| r.unwrap_err().kind()).collect::<Vec<_>>()
    };
    assert_eq!(kinds([odd.path(); 2]), [ErrorKind::Malformed; 2]);
    // One rank has the file, the other has not.
    assert_eq!(kinds([good.path(), "no such file".as_ref()]), [ErrorKind::Io; 2]);
    assert_eq!(kinds([good.path(), odd.path()]), [ErrorKind::InvalidArgument; 2]);
}
