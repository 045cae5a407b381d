//! Memory shared with other APIs, on Vulkan drivers that support it.

use crate::support::devices;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tilework::gpu::{Backend, DeviceIdentity};
use tilework::prelude::*;
use tilework::{ErrorKind, Gpu, GpuOptions};

/// The descriptor of a software driver is a file in memory, whose bytes this process can look at.
fn in_file(file: &File, at: &[u8]) -> bool {
    let mut bytes = vec![0; file.metadata().map_or(0, |m| m.len() as usize)];
    file.read_at(&mut bytes, 0).is_ok() && bytes.windows(at.len()).any(|w| w == at)
}

#[test]
fn ops_see_shared_memory() {
    for device in devices() {
        let gpu = &device.gpu;
        let n = 5000;
        let x = match gpu.alloc_shared::<f32>(n) {
            Ok(x) => x,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Unsupported, "{}: {e}", device.label);
                eprintln!("skipped: {e}");
                continue;
            }
        };
        assert_eq!(x.read().unwrap(), vec![0.0; n], "{}", device.label);
        let data: Vec<f32> = (0..n).map(|i| i as f32 + 0.5).collect();
        x.write(&data).unwrap();
        let total = gpu.reduce(&x, Sum).unwrap();
        assert_eq!(total.read().unwrap(), [(n * n) as f32 / 2.0]);
        let doubled = gpu.alloc_shared::<f32>(n).unwrap();
        let mut rec = gpu.recorder();
        rec.copy(&x, &doubled).unwrap();
        Axpy::new(n, 1.0).plan::<f32>(gpu).unwrap().record(&mut rec, &x, &doubled).unwrap();
        rec.submit().unwrap();
        let expected: Vec<f32> = data.iter().map(|v| 2.0 * v).collect();
        assert_eq!(doubled.read().unwrap(), expected);

        let exported = doubled.export().unwrap();
        assert_eq!(exported.buffer_bytes, 4 * n as u64);
        assert!(exported.allocation_bytes >= exported.buffer_bytes);
        assert!(exported.device.is_same(&gpu.identity().unwrap()));
        let again = doubled.export().unwrap();
        if gpu.profile().class == tilework::program::DeviceClass::Cpu {
            // The memory outlives the buffer, whichever is dropped first.
            let file = File::from(exported.fd);
            drop((x, total, doubled));
            gpu.trim();
            assert!(in_file(&file, bytemuck::cast_slice(&expected)), "{}: {file:?}", device.label);
        }
        drop(again);
    }
}

#[test]
fn sharing_rejects_invalid_arguments() {
    for device in devices() {
        let gpu = &device.gpu;
        let plain = gpu.upload(&[1.0f32]).unwrap();
        let e = plain.export().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Buffer);
        assert!(e.to_string().contains("alloc_shared"), "{e}");
        assert_eq!(gpu.alloc_shared::<f32>(usize::MAX).unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(gpu.alloc_shared::<f32>(0).unwrap_err().kind(), ErrorKind::Shape);
        if gpu.alloc_shared::<f32>(1).is_ok() {
            let limit = gpu.profile().limits.max_buffer_size as usize;
            let e = gpu.alloc_shared::<f32>(limit / 4 + 1).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::TooLarge, "{e}");
            // After a failure everything else stays usable.
            let held: Vec<_> = (0..3).map(|_| gpu.alloc_shared::<u8>(3).unwrap()).collect();
            held[1].write(&[1, 2, 3]).unwrap();
            assert_eq!(held[1].read().unwrap(), [1, 2, 3]);
        }
    }
    let options = GpuOptions { backend: Some(Backend::Gl), ..Default::default() };
    let Ok(gl) = pollster::block_on(Gpu::request(options)) else {
        eprintln!("skipped: no OpenGL adapter that could refuse");
        return;
    };
    for e in [gl.alloc_shared::<f32>(4).unwrap_err(), gl.identity().unwrap_err()] {
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains("Vulkan") && e.to_string().contains("gl"), "{e}");
    }
}

#[test]
fn identities_match_by_uuid_or_bus_address() {
    let id = |bus: &str, uuid: u8| DeviceIdentity { name: "card".into(), pci_bus_id: bus.into(), uuid: [uuid; 16] };
    let card = id("0000:3b:00.0", 7);
    assert!(card.is_same(&id("0000:3B:00.0", 0)) && card.is_same(&id("", 7)));
    assert!(!card.is_same(&id("0000:af:00.0", 8)) && !card.is_same(&id("", 0)));
    assert!(!id("", 0).is_same(&id("", 0)), "two unknown identities are not the same");
    assert!(card.to_string().contains("0000:3b:00.0") && card.to_string().contains("0707"), "{card}");
}
