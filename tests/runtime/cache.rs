//! The disk cache of compiled pipelines: reuse, and failures that do no harm.

use crate::support::gpu;
use std::fs;
use std::path::{Path, PathBuf};
use tilework::gpu::{AdapterFilter, CacheDir};
use tilework::prelude::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tilework-cache-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// A new device with its cache in this folder; `None` without an adapter.
fn open(cache: CacheDir) -> Option<Gpu> {
    let adapter = AdapterFilter::Name(gpu()?.profile().name.clone());
    let options = GpuOptions { adapter, cache, ..Default::default() };
    Some(pollster::block_on(Gpu::request(options)).unwrap())
}

/// Runs a few ops and checks their results.
fn work(gpu: &Gpu) {
    let x = gpu.upload(&[1u32, 2, 3, 4, 5]).unwrap();
    assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [15]);
    assert_eq!(gpu.inclusive_scan(&x, Sum).unwrap().read().unwrap(), [1, 3, 6, 10, 15]);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    entries(folder).flat_map(|home| entries(&home).collect::<Vec<_>>()).collect()
}

#[test]
fn a_second_device_compiles_nothing_found_on_disk() {
    let folder = folder("second");
    let Some(first) = open(CacheDir::At(folder.clone())) else { return };
    work(&first);
    let cold = first.cache();
    assert!(cold.found == 0 && cold.compiled > 0 && cold.trouble.is_none(), "{cold:?}");
    let kept = files(&folder).len() as u64;
    assert_eq!(kept, cold.written);
    let warm = || {
        let gpu = open(CacheDir::At(folder.clone())).unwrap();
        work(&gpu);
        gpu.cache()
    };
    let second = warm();
    assert_eq!((second.found, second.compiled), (kept, cold.compiled - kept), "{second:?}");

    // Whatever happens to the files, results are correct and the files are valid again.
    for damage in [&b""[..], b"tilework", &[0; 1000]] {
        for file in files(&folder) {
            fs::write(file, damage).unwrap();
        }
        let after = warm();
        assert_eq!((after.found, after.damaged, after.written), (0, kept, kept), "{after:?}");
    }
    for file in files(&folder) {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(warm().damaged, kept);
    assert_eq!(warm().found, kept);

    let last = open(CacheDir::At(folder.clone())).unwrap();
    last.clear_cache();
    assert!(files(&folder).is_empty());
    work(&last);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn an_unusable_cache_directory_does_not_fail() {
    let folder = folder("none");
    fs::write(&folder, b"a file").unwrap();
    // A file in place of the directory, a directory below a file, and a read-only one.
    for place in [folder.clone(), folder.join("below"), "/proc/tilework".into()] {
        let Some(gpu) = open(CacheDir::At(place)) else { return };
        work(&gpu);
        gpu.clear_cache();
        let cache = gpu.cache();
        assert_eq!((cache.found, cache.written), (0, 0), "{cache:?}");
        // If the driver gives cache data, the report says that it was not saved.
        let gives = gpu.profile().features.pipeline_cache && !gpu.profile().is_cpu();
        assert!(cache.trouble.is_some() || !gives, "{cache:?}");
        assert!(cache.compiled > 0, "{cache:?}");
    }
    fs::remove_file(folder).unwrap();
    let gpu = open(CacheDir::Off).unwrap();
    work(&gpu);
    assert_eq!(gpu.cache().directory, None);
}

#[test]
fn devices_write_one_cache_at_once() {
    let folder = folder("threads");
    if open(CacheDir::Off).is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| work(&open(CacheDir::At(folder.clone())).unwrap()));
        }
    });
    let gpu = open(CacheDir::At(folder.clone())).unwrap();
    work(&gpu);
    assert_eq!((gpu.cache().damaged, gpu.cache().found), (0, files(&folder).len() as u64));
    let _ = fs::remove_dir_all(folder);
}
