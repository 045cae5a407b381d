//! The programs of conjugate gradients on shards: what one rank does between messages.

use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Binding, Cost, Decision, DeviceProfile, Grid, Kernel, KernelParams, Operand, Program,
    kernel_params,
};
use crate::shader::Spec;
use crate::shape::index_u32;

const WORKGROUP_SIZE: u32 = 256;
/// The maximum number of partial sums, which one workgroup adds up.
const MAX_PARTS: u64 = 1024;

/// Words of the state on the device: see `shaders/sparse/cg_shard_state.wgsl`.
pub(crate) mod state {
    pub(crate) const WORDS: usize = 64;
    pub(crate) const STATUS: usize = 0;
    pub(crate) const COUNT: usize = 4;
    pub(crate) const CURVATURE: usize = 7;
    pub(crate) const HISTORY: usize = 16;
    pub(crate) const HISTORY_LEN: usize = 48;

    pub(crate) const GOING: u32 = 0;
    pub(crate) const CONVERGED: u32 = 1;
    pub(crate) const LIMIT: u32 = 2;
    pub(crate) const NOT_FINITE: u32 = 3;
    pub(crate) const NOT_POSITIVE: u32 = 4;

    /// The state before the first step: the sum `r r` at which to stop, and the steps that may follow.
    pub(crate) fn first(threshold: f32, left: u32) -> [u32; 8] {
        [GOING, 0, 0, 0, 0, threshold.to_bits(), left, 0]
    }

    /// The state of a step whose lengths the host found.
    pub(crate) fn with_lengths(alpha: f32, beta: f32) -> [u32; 3] {
        [GOING, alpha.to_bits(), beta.to_bits()]
    }
}

/// Words that a rank's sums take in the memory of all ranks.
pub(crate) const SLOT: usize = 16;
/// The maximum number of ranks that share memory.
pub(crate) const MAX_RANKS: usize = 64;
/// Reads of a message after which a device gives up: about two seconds on a card.
const PATIENCE: u32 = 1 << 20;
/// The same on software drivers, which end longer loops.
const SOFTWARE_PATIENCE: u32 = 60_000;

/// The memory of all ranks, as one of them sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    /// Words.
    pub(crate) words: usize,
    /// Ranks, and which of them this is.
    pub(crate) ranks: usize,
    pub(crate) rank: usize,
}

impl Shared {
    fn half(&self) -> u32 {
        (self.words / 2) as u32
    }
}

kernel_params! { struct ShardDotsParams { n: u32, parts: u32 } }
kernel_params! { struct ShardTotalParams { parts: u32 } }
kernel_params! { struct ShardStepParams { parts: u32, ranks: u32, rank: u32, half: u32, patience: u32 } }
kernel_params! { struct ShardUpdateParams { n: u32, stride: u32 } }
kernel_params! { struct ShardSendParams { n: u32, messages: u32, begin: u32, half: u32 } }
kernel_params! { struct ShardReceiveParams { n: u32, messages: u32, half: u32, patience: u32 } }

fn operand(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::F32, len, access }
}

fn words(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::U32, len, access }
}

fn spec() -> Spec {
    Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
}

fn program(op: &'static str, operands: Vec<Operand>, profile: &DeviceProfile) -> Result<Program> {
    let mut program = Program::new(op, Decision::policy("fused", ""));
    program.operands = operands;
    profile.check_bindings(op, &program.operands, "use more ranks")?;
    Ok(program)
}

/// Adds a dispatch that binds all operands in order.
fn dispatch<P: KernelParams>(program: &mut Program, kernel: Kernel, params: &P, groups: u64) {
    let kernel = program.kernel(kernel);
    let all = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, params, all, Grid::fold(groups));
}

fn patience(profile: &DeviceProfile) -> u32 {
    if profile.quirks.max_loop_rounds.is_some() { SOFTWARE_PATIENCE } else { PATIENCE }
}

/// The number of partial sums of `n` elements.
fn parts_of(n: usize) -> u64 {
    (n as u64).div_ceil(4 * u64::from(WORKGROUP_SIZE)).clamp(1, MAX_PARTS)
}

/// Elements of the partial sums of `n` rows: pairs.
pub(crate) fn partials_len(n: usize) -> usize {
    2 * parts_of(n) as usize
}

/// Partial sums of `r r` and `w r` over `n` elements: operands `r`, `w`, `partials`.
pub(crate) fn dots(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-dots";
    let count = index_u32(OP, "rows", n)?;
    let operands = vec![
        operand("r", n, Access::Read),
        operand("w", n, Access::Read),
        operand("partials", partials_len(n), Access::Write),
    ];
    let mut program = program(OP, operands, profile)?;
    program.cost = Cost::of(4.0 * n as f64, &program.operands);
    let parts = parts_of(n);
    let params = ShardDotsParams { n: count, parts: parts as u32 };
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_dots", spec()), &params, parts);
    Ok(program)
}

/// Adds up partial sums of `n` rows: operands `partials`, and `sums` of two elements.
pub(crate) fn total(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-total";
    let operands =
        vec![operand("partials", partials_len(n), Access::Read), operand("sums", 2, Access::Write)];
    let mut program = program(OP, operands, profile)?;
    let params = ShardTotalParams { parts: parts_of(n) as u32 };
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_total", spec()), &params, 1);
    Ok(program)
}

/// Adds up partial sums of `n` rows, with `shared` memory those of all ranks, and finds the lengths of the next step:
/// operands `partials`, `state`, and with shared memory `turn` of one word and `mail`.
pub(crate) fn step(n: usize, shared: Option<Shared>, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-step";
    let mut operands = vec![
        operand("partials", partials_len(n), Access::Read),
        words("state", state::WORDS, Access::ReadWrite),
    ];
    if let Some(shared) = shared {
        operands
            .extend([words("turn", 1, Access::ReadWrite), words("mail", shared.words, Access::ReadWrite)]);
    }
    let mut program = program(OP, operands, profile)?;
    let (ranks, rank, half) = shared.map_or((1, 0, 0), |s| (s.ranks as u32, s.rank as u32, s.half()));
    let params =
        ShardStepParams { parts: parts_of(n) as u32, ranks, rank, half, patience: patience(profile) };
    let spec = spec().flag("MAIL", shared.is_some());
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_step", spec), &params, 1);
    Ok(program)
}

/// A step along the next direction: operands `state`, `w`, `p`, `s`, `x`, `r`.
pub(crate) fn update(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-update";
    let count = index_u32(OP, "rows", n)?;
    let operands = vec![
        words("state", state::WORDS, Access::Read),
        operand("w", n, Access::Read),
        operand("p", n, Access::ReadWrite),
        operand("s", n, Access::ReadWrite),
        operand("x", n, Access::ReadWrite),
        operand("r", n, Access::ReadWrite),
    ];
    let mut program = program(OP, operands, profile)?;
    program.cost = Cost::of(8.0 * n as f64, &program.operands);
    if n > 0 {
        // A processor walks; a card has a thread for every four elements.
        let items = if profile.quirks.serial_workgroups { 256 } else { 4 };
        let groups = (n as u64).div_ceil(u64::from(WORKGROUP_SIZE) * items);
        let params = ShardUpdateParams { n: count, stride: (groups * u64::from(WORKGROUP_SIZE)) as u32 };
        dispatch(&mut program, Kernel::of_file("sparse/cg_shard_update", spec()), &params, groups);
    }
    Ok(program)
}

/// Writes `messages` messages of three of the `n` elements of `r` each to shared memory, from word `begin` on: operands
/// `state`, `turn`, `places` (three planes; a place from `n` on is padding), `r`, `mail`.
pub(crate) fn send(
    n: usize,
    messages: usize,
    begin: usize,
    shared: Shared,
    profile: &DeviceProfile,
) -> Result<Program> {
    const OP: &str = "sharded-cg-send";
    let operands = vec![
        words("state", state::WORDS, Access::Read),
        words("turn", 1, Access::Read),
        words("places", 3 * messages, Access::Read),
        operand("r", n, Access::Read),
        words("mail", shared.words, Access::ReadWrite),
    ];
    let mut program = program(OP, operands, profile)?;
    let params = ShardSendParams {
        n: index_u32(OP, "rows", n)?,
        messages: index_u32(OP, "messages", messages)?,
        begin: index_u32(OP, "words", begin)?,
        half: shared.half(),
    };
    let groups = (messages as u64).div_ceil(u64::from(WORKGROUP_SIZE));
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_send", spec()), &params, groups);
    Ok(program)
}

/// Waits for `messages` messages, and copies their elements to `r`, which has `n` elements with those of other ranks:
/// operands `state`, `turn`, `sources` (first words, then strides), `places` as those of [`send`], `mail`, `r`.
pub(crate) fn receive(n: usize, messages: usize, shared: Shared, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-receive";
    let operands = vec![
        words("state", state::WORDS, Access::ReadWrite),
        words("turn", 1, Access::Read),
        words("sources", 2 * messages, Access::Read),
        words("places", 3 * messages, Access::Read),
        words("mail", shared.words, Access::ReadWrite),
        operand("r", n, Access::ReadWrite),
    ];
    let mut program = program(OP, operands, profile)?;
    let params = ShardReceiveParams {
        n: index_u32(OP, "elements", n)?,
        messages: index_u32(OP, "messages", messages)?,
        half: shared.half(),
        patience: patience(profile),
    };
    let groups = (messages as u64).div_ceil(u64::from(WORKGROUP_SIZE));
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_receive", spec()), &params, groups);
    Ok(program)
}

/// Programs that reach every kernel, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    let shared = Shared { words: 2048, ranks: 2, rank: 1 };
    Ok(vec![
        dots(5000, profile)?,
        total(5000, profile)?,
        step(5000, None, profile)?,
        step(5000, Some(shared), profile)?,
        update(5000, profile)?,
        send(5000, 96, 64, shared, profile)?,
        receive(5600, 96, shared, profile)?,
    ])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use crate::{Gpu, Slice};

    /// A dispatch that is folded has more workgroups than it needs: they must change nothing.
    #[test]
    fn surplus_workgroups_change_nothing() {
        let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
        let n = 70_000;
        let vector = |k: usize| -> Vec<f32> { (0..n).map(|i| ((i * k) % 17) as f32).collect() };
        let run = |surplus: u32| {
            let mut program = update(n, gpu.profile()).unwrap();
            for dispatch in &mut program.dispatches {
                let Grid::Direct(grid) = &mut dispatch.grid else { panic!("a direct dispatch") };
                grid[0] += surplus;
            }
            let ready = gpu.prepare_lowered(program).unwrap();
            let mut words = vec![0; state::WORDS];
            words[..3].copy_from_slice(&state::with_lengths(0.5, 2.0));
            let state = gpu.upload(&words).unwrap();
            let vectors = [3, 5, 7, 11, 13].map(|k| gpu.upload(&vector(k)).unwrap());
            let operands: Vec<_> = std::iter::once(Slice::from(&state).untyped())
                .chain(vectors.iter().map(|v| Slice::from(v).untyped()))
                .collect();
            let mut rec = gpu.recorder();
            ready.record(&mut rec, &operands).unwrap();
            rec.submit().unwrap();
            vectors.map(|v| v.read().unwrap())
        };
        assert_eq!(run(0), run(300));
    }

    /// The memory of two ranks, both on one device, one after the other.
    struct TwoRanks {
        gpu: Gpu,
        mail: crate::Buffer<u32>,
        shared: [Shared; 2],
    }

    impl TwoRanks {
        fn new(gpu: &Gpu, words: usize) -> Self {
            let shared = [0, 1].map(|rank| Shared { words, ranks: 2, rank });
            Self { gpu: gpu.clone(), mail: gpu.alloc_zeroed(words).unwrap(), shared }
        }

        fn run(&self, program: Program, operands: &[crate::gpu::RawSlice<'_>]) {
            let ready = self.gpu.prepare_lowered(program).unwrap();
            let mut rec = self.gpu.recorder();
            ready.record(&mut rec, operands).unwrap();
            rec.submit().unwrap();
        }

        /// A step of a rank with these sums; returns the state after it, and the turn.
        fn step(&self, rank: usize, sums: [f32; 2], turn: u32) -> (Vec<u32>, u32) {
            let partials = self.gpu.upload(&sums).unwrap();
            let mut words = vec![0; state::WORDS];
            words[..8].copy_from_slice(&state::first(0.5, 3));
            let (after, turn) = (self.gpu.upload(&words).unwrap(), self.gpu.upload(&[turn]).unwrap());
            let program = step(1, Some(self.shared[rank]), self.gpu.profile()).unwrap();
            let operands = [Slice::from(&partials).untyped(), Slice::from(&after).untyped()];
            let shared = [&turn, &self.mail].map(|x| Slice::from(x).untyped());
            self.run(program, &[operands, shared].concat());
            (after.read().unwrap(), turn.read().unwrap()[0])
        }
    }

    /// The second rank comes first and waits in vain; the first then finds its sums. A message of another turn is none.
    #[test]
    fn ranks_add_up_the_sums_of_a_turn() {
        let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
        let late = 5;
        let ranks = TwoRanks::new(&gpu, 128);
        for turn in [0, 1, 6, u32::MAX - 1] {
            let (alone, after) = ranks.step(1, [3.0, 5.0], turn);
            assert_eq!((alone[state::STATUS], alone[state::COUNT], after), (late, 0, turn.wrapping_add(1)));
            let (both, after) = ranks.step(0, [1.0, 3.0], turn);
            assert_eq!((both[state::STATUS], both[state::COUNT], after), (0, 1, turn.wrapping_add(1)));
            assert_eq!(f32::from_bits(both[state::HISTORY]), 4.0);
            // Alpha of the first step is r r / w r.
            assert!((f32::from_bits(both[1]) - 0.5).abs() < 1e-6, "turn {turn}");
            let (other, _) = ranks.step(0, [1.0, 3.0], turn.wrapping_add(2));
            assert_eq!(other[state::STATUS], late);
        }
        // An end, and values that are no numbers.
        for (sums, end) in [
            ([0.25, 1.0], state::CONVERGED),
            ([1.0, -1.0], state::NOT_POSITIVE),
            ([f32::NAN, 1.0], state::NOT_FINITE),
            ([1.0, f32::INFINITY], state::NOT_FINITE),
        ] {
            ranks.step(1, [0.0; 2], 9);
            assert_eq!(ranks.step(0, sums, 9).0[state::STATUS], end, "{sums:?}");
        }
    }

    /// 100 of 200 elements of one rank travel to the other, which waits in vain for those of another turn.
    #[test]
    fn elements_travel_through_shared_memory() {
        let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
        let ranks = TwoRanks::new(&gpu, 2 * (32 + 4 * 64));
        let (messages, n, begin) = (64, 200, 32);
        let r: Vec<f32> = (0..n).map(|i| i as f32 + 0.5).collect();
        let mut places = vec![u32::MAX; 3 * messages];
        let mut targets = places.clone();
        for i in 0..100 {
            // Two messages of padding lie between planes.
            let at = i / 40 * messages + i % 40;
            places[at] = 2 * i as u32;
            targets[at] = (10 + i) as u32;
        }
        let sources: Vec<u32> =
            (0..messages).map(|i| (begin + i) as u32).chain((0..messages).map(|_| messages as u32)).collect();
        let upload = |words: &[u32]| gpu.upload(words).unwrap();
        let (going, places, targets, sources) =
            (upload(&[0; state::WORDS]), upload(&places), upload(&targets), upload(&sources));
        let r = gpu.upload(&r).unwrap();
        for turn in [4, 5] {
            let turn_there = upload(&[turn]);
            let program = send(n, messages, begin, ranks.shared[1], gpu.profile()).unwrap();
            let [state_there, turn_of, from, mail] =
                [&going, &turn_there, &places, &ranks.mail].map(|x| Slice::from(x).untyped());
            ranks.run(program, &[state_there, turn_of, from, Slice::from(&r).untyped(), mail]);
            let into = gpu.alloc_zeroed::<f32>(120).unwrap();
            let receive_at = |turn: &crate::Buffer<u32>| {
                let after = upload(&[0; state::WORDS]);
                let program = receive(120, messages, ranks.shared[0], gpu.profile()).unwrap();
                let words = [&after, turn, &sources, &targets, &ranks.mail].map(|x| Slice::from(x).untyped());
                ranks.run(program, &[words.as_slice(), &[Slice::from(&into).untyped()]].concat());
                after.read().unwrap()[state::STATUS]
            };
            assert_eq!(receive_at(&turn_there), state::GOING);
            let want: Vec<f32> = (0..120)
                .map(|i| if (10..110).contains(&i) { 2.0 * (i - 10) as f32 + 0.5 } else { 0.0 })
                .collect();
            assert_eq!(into.read().unwrap(), want);
            assert_eq!(receive_at(&upload(&[turn + 2])), 5);
        }
    }
}
