use super::*;
use crate::cuda::{CudaOp, CudaProfile};
use crate::primitives::{Scan, Sum};
use crate::store::CacheDir;

#[test]
fn a_missing_library_is_named_with_the_remedy() {
    for path in ["/nowhere/libnvrtc.so", "/"] {
        let message = Nvrtc::find(Some(Path::new(path))).unwrap_err().to_string();
        assert!(message.contains("pip install nvidia-cuda-nvrtc"), "{message}");
        assert!(message.contains("TILEWORK_NVRTC"), "{message}");
    }
}

#[test]
fn compiled_kernels_are_cached_by_text_and_target() {
    let Ok(nvrtc) = Nvrtc::find(None) else {
        eprintln!("skipped: no NVRTC on this machine");
        return;
    };
    let folder = env::temp_dir().join(format!("tilework-cubins-{}", std::process::id()));
    let store = || Store::new(&CacheDir::At(folder.clone()), "cuda", &[]);
    let scan = Scan::new(Sum, 9);
    let kernel = CudaOp::<f32>::lower(&scan, &CudaProfile::sm(80)).unwrap().kernels.remove(0);
    let other = nvrtc.key(&kernel.clone().define("X", 1), "sm_80").unwrap();
    assert_ne!(nvrtc.key(&kernel, "sm_80").unwrap(), other);
    assert_ne!(nvrtc.key(&kernel, "sm_80").unwrap(), nvrtc.key(&kernel, "sm_75").unwrap());
    let (first, second) = (store(), store());
    let get = |store: &Store| nvrtc.load_or_compile(&kernel, "sm_80", store).unwrap();
    assert_eq!(get(&first), get(&second));
    let counts = [&first, &second].map(|s| (s.report().found, s.report().compiled));
    assert_eq!(counts, [(0, 1), (1, 0)]);
    std::fs::remove_dir_all(&folder).unwrap();
}
