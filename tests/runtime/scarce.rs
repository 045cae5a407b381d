//! Running out of host memory is an error, and the process continues. Runs in its own process with limited
//! memory.

use super::refused;
use crate::support::coverage::all;
use crate::support::gpu;
use std::process::Command;
use tilework::ErrorKind::OutOfMemory;
use tilework::io::matrix_market::Triplets;
use tilework::prelude::*;
use tilework::sparse::{Csr, Duplicates, HostMatrix};
use tilework::stream::{Items, Reader};

/// Kilobytes of address space: a software driver starts many threads, each with a stack.
const SPACE: u32 = 12 << 20;
/// Bytes of each allocation of the balloon, and the number of them that are freed again.
const PIECE: usize = 8 << 20;
const FREE: usize = 12;
/// Elements of lists of 256 MiB.
const N: usize = 64 << 20;

#[test]
fn host_out_of_memory_is_an_error() {
    if !all() {
        return;
    }
    let limited = format!(
        "ulimit -v {SPACE}; exec \"$0\" --exact --ignored --nocapture runtime::scarce::host_out_of_memory_under_a_limit"
    );
    let me = std::env::current_exe().unwrap();
    let output = Command::new("sh").args(["-c", &limited]).arg(me).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{}: {out}{err}", output.status);
}

#[test]
#[ignore = "run by the test before it"]
fn host_out_of_memory_under_a_limit() {
    let Some(gpu) = gpu() else { return };
    // Allocates everything needed before memory runs short.
    let x = gpu.alloc_zeroed::<u32>(N).unwrap();
    assert_eq!(x.slice(..4).unwrap().read().unwrap(), [0; 4]);
    let started = x.slice(..).unwrap().start_read().unwrap();
    gpu.wait().unwrap();
    let list = vec![1u32; N];
    let one = |rows, cols| Triplets { rows, cols, row_idxs: vec![1], col_idxs: vec![2], values: vec![5.0] };
    let wide = Csr::from_triplets(&one(4, N), Duplicates::Refuse).unwrap();
    let tall = Csr::from_triplets(&one(N, 4), Duplicates::Refuse).unwrap();
    let of_tall = HostMatrix::Csr(tall.clone());
    let streamed = gpu.streamed().chunk(1 << 12).in_flight(1);
    let same = || MapFn::custom("fn map(x: T) -> T { return x; }");
    streamed.map(&list[..9000], same()).unwrap();
    streamed.sort(&list[..9000]).unwrap();
    streamed.select_by(&list[..9000], &Predicate::NonZero).unwrap();
    streamed.inclusive_scan(&list[..9000], Max).unwrap();

    let mut balloon: Vec<Vec<u8>> = Vec::with_capacity(1 << 16);
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(PIECE).is_err() {
            break;
        }
        balloon.push(piece);
    }
    assert!(balloon.len() > 4 * FREE, "{} pieces", balloon.len());
    balloon.truncate(balloon.len() - FREE);

    let words = ["list of", "bytes of the host's memory"];
    refused(x.read(), OutOfMemory, &words);
    refused(pollster::block_on(x.read_async()), OutOfMemory, &words);
    refused(started.wait(), OutOfMemory, &words);
    refused(wide.transposed(), OutOfMemory, &words);
    refused(wide.to_csc(), OutOfMemory, &words);
    refused(Csr::from_triplets(&one(N, 3), Duplicates::Sum), OutOfMemory, &words);
    refused(Csr::from_coo(&one(N, 3)), OutOfMemory, &words);
    refused(of_tall.to_csr(), OutOfMemory, &words);
    refused(tall.to_jds(), OutOfMemory, &words);
    refused(tall.to_sell(32, 1024), OutOfMemory, &words);
    refused(tall.to_hybrid(3), OutOfMemory, &words);
    // With a known length, and without.
    refused(streamed.map(&list[..], same()), OutOfMemory, &words);
    refused(streamed.sort(&list[..]), OutOfMemory, &words);
    refused(streamed.inclusive_scan(&list[..], Max), OutOfMemory, &words);
    refused(streamed.map(Items(list.iter().copied()), same()), OutOfMemory, &words);
    refused(streamed.sort::<u32>(Reader(bytemuck::cast_slice(&list))), OutOfMemory, &words);
    refused(streamed.select_by(&list[..], &Predicate::NonZero), OutOfMemory, &words);

    drop(balloon);
    assert_eq!(x.read().unwrap().len(), N);
    assert_eq!(wide.transposed().unwrap().entries(), 1);
}
