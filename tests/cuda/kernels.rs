//! Every CUDA kernel through NVRTC, for every architecture, without a device.

use crate::support::coverage::in_turn;
use crate::support::cuda::nvrtc;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use tilework::ErrorKind;
use tilework::cuda::{Arch, CudaKernel, CudaProfile, Nvrtc};

/// A kernel, the target to compile it for, and its entry points.
type Compiled = (CudaKernel, String, Vec<&'static str>);

/// One kernel for each source of the samples, for each architecture that runs it, with all its entry points.
fn kernels() -> Vec<Compiled> {
    let mut all = HashMap::new();
    for profile in [CudaProfile::sm(75), CudaProfile::sm(80), CudaProfile::h100()] {
        for program in tilework::cuda::samples(&profile).unwrap() {
            program.check(&profile).unwrap();
            for kernel in program.kernels {
                let text = (kernel.source, kernel.defines.clone(), profile.target());
                let (_, _, entries) = all.entry(text).or_insert((kernel.clone(), profile.target(), Vec::new()));
                entries.push(kernel.entry);
            }
        }
    }
    all.into_values().collect()
}

#[test]
fn variants_reach_every_cuda_source() {
    let mut reached = HashSet::new();
    for (kernel, ..) in kernels() {
        let (_, headers) = kernel.texts().unwrap();
        reached.extend(headers.iter().map(|(name, _)| (*name).to_owned()));
        reached.insert(format!("{}.cu", kernel.source));
    }
    let left: Vec<_> = tilework::cuda::sources().filter(|name| !reached.contains(*name)).collect();
    assert!(left.is_empty(), "no sample reaches {left:?}");
}

#[test]
fn every_kernel_compiles() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut kernels = kernels();
    kernels.sort_by_cached_key(|(kernel, target, _)| (kernel.source, kernel.defines.clone(), target.clone()));
    let one = |(a, ..): &Compiled, (b, ..): &Compiled| (a.source, &a.defines) == (b.source, &b.defines);
    // In turn, each kernel for one of the architectures that run it.
    let kernels: Vec<_> = (kernels.chunk_by(one).enumerate())
        .flat_map(|(at, group)| {
            group.iter().enumerate().filter(move |(i, _)| in_turn(at + i, group.len())).map(|(_, k)| k)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let compile = || {
        let mut wrong = Vec::new();
        while let Some(&(kernel, target, entries)) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
            match nvrtc.compile(kernel, target) {
                Ok(code) => {
                    let has = |name: &str| code.windows(name.len()).any(|w| w == name.as_bytes());
                    let all = entries.iter().all(|entry| has(&format!(".text.{entry}\0")));
                    assert!(code.starts_with(b"\x7fELF") && all, "{}: {entries:?}", kernel.source);
                }
                Err(e) => wrong.push(format!("{:?} for {target}: {e}", kernel.defines)),
            }
        }
        wrong
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(compile)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    eprintln!("{} kernels by NVRTC {:?}", kernels.len(), nvrtc.version());
    assert!(wrong.is_empty(), "{} do not:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}

#[test]
fn compile_errors_name_file_and_line() {
    let Some(nvrtc) = nvrtc() else { return };
    let refused = |kernel: &CudaKernel, target: &str| {
        let e = Nvrtc::compile(nvrtc, kernel, target).unwrap_err();
        (e.kind(), e.to_string())
    };
    let kernel = CudaKernel::new("primitives/scan_grid", "scan_grid", Arch::Sm75).define("ELEMENT", "nonsense");
    let (kind, text) = refused(&kernel, "sm_80");
    assert_eq!(kind, ErrorKind::Shader);
    assert!(text.contains("shaders/primitives/scan_grid.cu(") && text.contains("nonsense"), "{text}");
    let (kind, text) = refused(&kernel, "sm_10");
    assert!(kind == ErrorKind::Unsupported && text.contains("not for sm_10"), "{text}");
}
