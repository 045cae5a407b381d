//! probe
use cudarc::driver::sys;
use std::time::Instant;
use tilework::cuda::interop::{Bridge, Imported};
use tilework::prelude::*;

const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry slow(.param .u64 px, .param .u64 py, .param .u32 n, .param .u32 spin)
{
 .reg .pred %p;
 .reg .b32 %r<8>;
 .reg .f32 %f<4>;
 .reg .b64 %d<6>;
 ld.param.u64 %d0, [px]; ld.param.u64 %d1, [py]; ld.param.u32 %r0, [n]; ld.param.u32 %r5, [spin];
 mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
 mad.lo.u32 %r4, %r1, %r2, %r3;
 setp.ge.u32 %p, %r4, %r0;
 @%p bra end;
loop:
 setp.eq.u32 %p, %r5, 0;
 @%p bra go;
 sub.u32 %r5, %r5, 1;
 nanosleep.u32 100;
 bra loop;
go:
 mul.wide.u32 %d2, %r4, 4;
 add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
 ld.global.f32 %f0, [%d0];
 fma.rn.f32 %f0, %f0, 0f40000000, 0f3f800000;
 st.global.f32 [%d1], %f0;
end:
 ret;
}
\0";

fn ok(r: sys::CUresult) {
    assert_eq!(r, sys::CUresult::CUDA_SUCCESS);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Gpu::new()?;
    println!("wgpu: {} {} {}", gpu.profile().name, gpu.profile().backend, gpu.profile().driver);
    println!("identity: {}", gpu.identity()?);
    let n = 1 << 24;
    let (x, y) = (gpu.alloc_shared::<f32>(n)?, gpu.alloc_shared::<f32>(n)?);
    let e = x.export()?;
    println!("exported: {e:?}");
    if !unsafe { sys::is_culib_present() } {
        println!("no CUDA");
        return Ok(());
    }
    unsafe {
        ok(sys::cuInit(0));
        let mut dev = 0;
        ok(sys::cuDeviceGet(&mut dev, 0));
        let mut ctx = std::ptr::null_mut();
        ok(sys::cuDevicePrimaryCtxRetain(&mut ctx, dev));
        ok(sys::cuCtxSetCurrent(ctx));
        let mut uuid: sys::CUuuid = std::mem::zeroed();
        ok(sys::cuDeviceGetUuid_v2(&mut uuid, dev));
        let mut bus = [0 as std::ffi::c_char; 32];
        ok(sys::cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, dev));
        println!("cuda uuid {:02x?} bus {:?}", uuid.bytes, std::ffi::CStr::from_ptr(bus.as_ptr()));
        let mut module = std::ptr::null_mut();
        ok(sys::cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
        let mut f = std::ptr::null_mut();
        ok(sys::cuModuleGetFunction(&mut f, module, c"slow".as_ptr()));
        let mut stream = std::ptr::null_mut();
        ok(sys::cuStreamCreate(&mut stream, 1));
        let (cx, cy) = (Imported::new(e)?, Imported::new(y.export()?)?);
        println!("addresses {:x} {:x}", cx.address, cy.address);
        let launch = |from: u64, to: u64, spin: u32| {
            let (mut a, mut b, mut count, mut spin) = (from, to, n as u32, spin);
            let mut args: [*mut std::ffi::c_void; 4] = [
                (&raw mut a).cast(), (&raw mut b).cast(), (&raw mut count).cast(), (&raw mut spin).cast()];
            ok(sys::cuLaunchKernel(f, n as u32 / 256, 1, 1, 256, 1, 1, 0, stream, args.as_mut_ptr(), std::ptr::null_mut()));
        };
        let twice = Axpy::new(n, 1.0).plan::<f32>(&gpu)?;
        let data: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
        let expected: Vec<f32> = data.iter().map(|v| 2.0 * v + 1.0).collect();
        for order in ["semaphores", "waits"] {
            x.write(&data)?;
            y.write(&vec![0.0; n])?;
            let bridge = if order == "semaphores" {
                match Bridge::new(&gpu, stream) {
                    Ok(b) => Some(b),
                    Err(e) => { println!("no semaphores: {e}"); continue; }
                }
            } else { None };
            let to_cuda = || match &bridge { Some(b) => b.to_cuda().map_err(|e| e.to_string()), None => gpu.wait().map_err(|e| e.to_string()) };
            let to_wgpu = || match &bridge { Some(b) => b.to_wgpu().map_err(|e| e.to_string()), None => { ok(sys::cuStreamSynchronize(stream)); Ok(()) } };
            to_cuda()?;
            launch(cx.address, cy.address, 20);
            to_wgpu()?;
            // y += x on wgpu : 3x+1
            let begin = Instant::now();
            let mut rec = gpu.recorder();
            twice.record(&mut rec, &x, &y)?;
            rec.submit()?;
            println!("{order}: recording took {:?}", begin.elapsed());
            // and back: x = 2 y + 1
            to_cuda()?;
            launch(cy.address, cx.address, 20);
            to_wgpu()?;
            println!("{order}: queued after {:?}", begin.elapsed());
            let (gx, gy) = (x.read()?, y.read()?);
            println!("{order}: read after {:?}", begin.elapsed());
            let wrong = (0..n).filter(|&i| gy[i] != expected[i] + data[i] || gx[i] != 2.0 * gy[i] + 1.0).count();
            println!("{order}: {wrong} of {n} wrong; {:?} {:?}", &gy[..4], &gx[..4]);
            // rounds
            for rounds in [1, 100] {
                let begin = Instant::now();
                for _ in 0..rounds {
                    to_cuda()?;
                    launch(cx.address, cy.address, 0);
                    to_wgpu()?;
                    let mut rec = gpu.recorder();
                    twice.record(&mut rec, &x, &y)?;
                    rec.submit()?;
                }
                gpu.wait()?;
                println!("{order}: {rounds} rounds {:?} each", begin.elapsed() / rounds);
            }
            if bridge.is_none() {
                // without order: how often does it go wrong?
                x.write(&data)?; y.write(&vec![0.0; n])?; gpu.wait()?;
                launch(cx.address, cy.address, 20);
                let mut rec = gpu.recorder();
                twice.record(&mut rec, &x, &y)?;
                rec.submit()?;
                gpu.wait()?;
                ok(sys::cuStreamSynchronize(stream));
                let gy = y.read()?;
                println!("no order at all: {} wrong", (0..n).filter(|&i| gy[i] != expected[i] + data[i]).count());
            }
        }
        // dropped in the other order
        drop((x, y));
        gpu.trim();
        launch(cx.address, cy.address, 0);
        println!("after wgpu dropped it: {:?}", sys::cuStreamSynchronize(stream));
        let mut value = 0f32;
        println!("{:?} {value}", sys::cuMemcpyDtoH_v2((&raw mut value).cast(), cy.address, 4));
        drop((cx, cy));
        println!("freed: {:?}", sys::cuCtxSynchronize());
        let many: Vec<_> = (0..2000).map(|i| gpu.alloc_shared::<f32>(1000).map_err(|e| format!("{i}: {e}"))).collect();
        println!("2000 buffers: first failure {:?}", many.iter().find_map(|r| r.as_ref().err()));
        println!("too large: {:?}", (0..40).map(|_| gpu.alloc_shared::<f32>(1 << 30).map_err(|e| e.to_string())).find_map(|r| r.err()));
        println!("done");
    }
    Ok(())
}
