//! Text as a user's WGSL: rejected, or run by the simulator and prepared for a device. The last four bytes select how.

#![no_main]

mod compilers;
mod noop;

use libfuzzer_sys::fuzz_target;
use tilework::shader::{Spec, Target, expand_text};
use tilework::sim::{Options, Schedule, run_wgsl};

/// Maximum bytes of a binding, and of all bindings: tilework does not bound a caller's data.
const MOST: u64 = 1 << 16;

fuzz_target!(init: compilers::leave_panics_to_the_library(), |data: &[u8]| {
    let Some((text, how)) = data.split_last_chunk::<4>() else { return };
    let text = String::from_utf8_lossy(text);
    let module = expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).and_then(|x| x.validate());
    let module = match module {
        Ok(module) => module,
        Err(e) => return compilers::show_if_panicked(&e, &text),
    };
    let schedules =
        [Schedule::InOrder, Schedule::LastFirst, Schedule::Stalled, Schedule::Adversarial, Schedule::Random(how[0].into())];
    let options = Options {
        subgroup_size: [4, 8, 32, 64][usize::from(how[1] % 4)],
        schedule: schedules[usize::from(how[1] >> 2) % schedules.len()],
        step_limit: 1 << 10,
        max_workgroups: 8,
        check_nan: how[2] & 1 != 0,
        check_untouched: how[2] & 2 != 0,
        zero_initialized: how[2] & 4 != 0,
        check_locals: how[2] & 8 != 0,
        immediates: vec![how[3]; usize::from(how[2] >> 4) * 4],
        ..Options::default()
    };
    let entries: Vec<String> = module.entries().into_iter().map(str::to_owned).take(2).collect();
    for entry in entries.iter().map(String::as_str).chain(["none"]) {
        let sizes = match module.interface(entry) {
            Ok(interface) => interface.bindings.iter().map(|b| b.min_size + u64::from(how[3])).collect(),
            Err(_) => vec![64; usize::from(how[3] % 4)],
        };
        if sizes.iter().sum::<u64>() > MOST {
            continue;
        }
        let mut buffers: Vec<Vec<u8>> = sizes.iter().map(|n| vec![how[0]; *n as usize]).collect();
        let grid = if how[0] == 255 { [u32::MAX; 3] } else { [u32::from(how[0] % 3), 1, u32::from(how[0] % 2) + 1] };
        let given: Vec<usize> = buffers.iter().map(Vec::len).collect();
        match run_wgsl("k.wgsl", &text, entry, grid, &mut buffers, &options) {
            Ok(report) => drop(report.to_string()),
            Err(e) => compilers::show_if_panicked(&e, &text),
        }
        assert_eq!(given, buffers.iter().map(Vec::len).collect::<Vec<_>>());
        match noop::GPU.kernel("k.wgsl", &text, entry) {
            Ok(kernel) => drop(kernel.interface().clone()),
            Err(e) => compilers::show_if_panicked(&e, &text),
        }
    }
});
