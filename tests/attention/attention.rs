//! Every variant of `Attention` against the reference.

use crate::support::coverage::{all, sample, turn};
use crate::support::matrices::{with_matrices, without_matrices};
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers, spoil};
use half::f16;
use tilework::attention::Paging;
use tilework::attention::{Attention, CoopTile, FlashTile, KvType, ScoreStage};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Grid, Op};
use tilework::reference::{AttentionInputs, attention, attention_bound, fp8_value};
use tilework::shader::Target;
use tilework::{Element, ErrorKind};

/// An attention op and its operands.
pub(super) struct Case {
    pub(super) op: Attention,
    shape: [usize; 6],
    /// The size of values.
    e: usize,
    lengths: Option<Vec<u32>>,
    mask: Option<Vec<f32>>,
    table: Option<Vec<u32>>,
    /// Rows of k.
    rows: usize,
}

impl Case {
    pub(super) fn new(shape: [usize; 6], with: impl Fn(Attention) -> Attention) -> Self {
        let [b, h, g, t, s, d] = shape;
        let op = with(Attention::new([b, h, t, d], [g, s]));
        Self { op, shape, e: d, lengths: None, mask: None, table: None, rows: b * g * s }
    }

    /// With values of `e` elements.
    pub(super) fn values_of(mut self, e: usize) -> Self {
        self.op = self.op.value_size(e);
        self.e = e;
        self
    }

    pub(super) fn lengths(mut self, lengths: &[u32]) -> Self {
        self.op = self.op.lengths();
        self.lengths = Some(lengths.to_vec());
        self
    }

    pub(super) fn masked(mut self, [batch, heads]: [usize; 2]) -> Self {
        let [.., t, s, _] = self.shape;
        let mut random = Random::new(5);
        // Hides a third of the keys, and all keys of the second row.
        let mask = (0..batch * heads * t * s).map(|i| {
            let hidden = random.next().is_multiple_of(3) || i / s % t == 1;
            if hidden { f32::NEG_INFINITY } else { random.unit() as f32 }
        });
        self.mask = Some(mask.collect());
        self.op = self.op.masked([batch, heads]);
        self
    }

    /// Twice as many pages as needed, in random order. Sequences share their first page; the last entry of the table
    /// is invalid.
    pub(super) fn paged(mut self, tokens: usize) -> Self {
        let [b, _, g, _, s, _] = self.shape;
        let each = s.div_ceil(tokens);
        let pages = 2 * b * each;
        let mut table: Vec<u32> = (0..b * each).map(|i| ((i * 7 + 3) % pages) as u32).collect();
        for sequence in 1..b {
            table[sequence * each] = table[0];
        }
        table[b * each - 1] = u32::MAX;
        self.table = Some(table);
        self.op = self.op.paged(Paging { tokens, pages });
        self.rows = pages * g * tokens;
        self
    }

    fn inputs(&self) -> AttentionInputs<'_> {
        AttentionInputs { table: self.table.as_deref(), lengths: self.lengths.as_deref(), mask: self.mask.as_deref() }
    }

    fn queries<T: Sample>(&self) -> Vec<T> {
        let [b, h, _, t, _, d] = self.shape;
        let mut random = Random::new(1);
        (0..b * h * t * d).map(|_| T::from_f64(3.0 * random.unit())).collect()
    }

    /// Keys, or values of the same size.
    fn rows<K: Sample>(&self, seed: u64) -> Vec<K> {
        Random::new(seed).elements(self.rows * self.shape[5])
    }

    fn values<K: Sample>(&self) -> Vec<K> {
        Random::new(3).elements(self.rows * self.e)
    }

    /// Runs every variant and compares it with the reference.
    pub(super) fn check<T: Sample, K: Sample>(&self, device: &Device)
    where
        Attention: Op<T>,
    {
        let (q, k, v) = (self.queries::<T>(), self.rows::<K>(2), self.values::<K>());
        let op = self.op.clone().kv(if K::DTYPE == f16::DTYPE { KvType::F16 } else { KvType::F32 });
        self.compare(device, &op, &q, (&k, &v), (&k, &v), None);
    }

    /// Compares all variants on stored codes, which decode to `decoded`.
    fn compare<T: Sample, K: Element, N: Sample>(
        &self, device: &Device, op: &Attention, q: &[T], stored: (&[K], &[K]), decoded: (&[N], &[N]),
        scales: Option<&[f32]>,
    ) where
        Attention: Op<T>,
    {
        let want = numbers(&attention(op, q, decoded.0, decoded.1, self.inputs()));
        let bound = attention_bound(op, q, decoded.0, decoded.1, self.inputs());
        let rounded = self.rounded_bound(op, q, decoded, &bound);
        // In the default run a shape meets `auto` and `flash`, or the others.
        let [_, _, _, t, s, d] = self.shape;
        let variants = variants().enumerate().filter(|(v, _)| turn(v + t + s + d, 2));
        for variant in variants.map(|(_, name)| name) {
            let op = op.clone().variant(variant);
            let program = match Op::<T>::lower(&op, device.gpu.profile()) {
                // Only on cooperative matrices of f16.
                Err(e) if variant == "coop" && e.kind() == ErrorKind::Unsupported => continue,
                // Values of at most 256 elements, which `auto` knows.
                Err(e) if e.to_string().contains("of at most 256 elements") && variant != "auto" => continue,
                program => program.unwrap(),
            };
            let what = format!("{}: {variant} {} {op:?}", device.label, T::DTYPE);
            let got = self.run(device, &op, q, stored, scales);
            let bound = if program.variant() == "coop" { &rounded } else { &bound };
            assert_close(&what, &numbers(&got), &want, bound);
        }
    }

    /// `bound` for weights rounded to f16, to either neighbour as WGSL allows, and hardware that truncates sums.
    fn rounded_bound<T: Sample, N: Sample>(
        &self, op: &Attention, q: &[T], (k, v): (&[N], &[N]), bound: &[f64],
    ) -> Vec<f64> {
        let sizes: Vec<N> = numbers(v).iter().map(|x| N::from_f64(x.abs())).collect();
        let sizes = numbers(&attention(op, q, k, &sizes, self.inputs()));
        bound.iter().zip(sizes).map(|(bound, size)| 4.0 * bound + size / 1000.0).collect()
    }

    /// Compares `coop` with emulated matrices with the reference.
    fn check_emulated(&self, gpu: &Gpu, keys: u32) {
        let (q, k, v) = (self.queries::<f16>(), self.rows::<f16>(2), self.rows::<f16>(3));
        self.compare_emulated(gpu, keys, &q, &k, &v);
    }

    fn compare_emulated(&self, gpu: &Gpu, keys: u32, q: &[f16], k: &[f16], v: &[f16]) {
        let op = self.op.clone().variant("coop").coop_tile(CoopTile { teams: 2, rows: 32, keys });
        let program = Op::<f16>::lower(&op, &with_matrices(gpu, 16)).unwrap();
        let text = program.kernels[0].expand(Target::Naga).unwrap().text().to_owned();
        let text = without_matrices(&with_lasting_queries(&looked_at_by_all(&text)), 16);
        let kernel = gpu.kernel("coop", &text, program.kernels[0].entry).unwrap();
        let [q_, k_, v_] = [q, k, v].map(|x| gpu.upload(x).unwrap());
        let lengths = self.lengths.as_ref().map(|x| gpu.upload(x).unwrap());
        let mask = self.mask.as_ref().map(|x| gpu.upload(x).unwrap());
        let output = gpu.alloc::<f16>(q.len()).unwrap();
        let mut rec = gpu.recorder();
        for dispatch in &program.dispatches {
            let mut args = vec![Arg::Uniform(&dispatch.params), Arg::from(&q_), Arg::from(&k_), Arg::from(&v_)];
            args.extend(lengths.as_ref().map(Arg::from));
            args.extend(mask.as_ref().map(Arg::from));
            args.push(Arg::from(&output));
            let Grid::Direct(grid) = dispatch.grid else { panic!("known workgroups") };
            kernel.record(&mut rec, &args, grid).unwrap();
        }
        rec.submit().unwrap();
        let want = numbers(&attention(&self.op, q, k, v, self.inputs()));
        let bound = attention_bound(&self.op, q, k, v, self.inputs());
        let bound = self.rounded_bound(&self.op, q, (k, v), &bound);
        assert_close(&format!("emulated {op:?}"), &numbers(&output.read().unwrap()), &want, &bound);
    }

    fn run<T: Sample, K: Element>(
        &self, device: &Device, op: &Attention, q: &[T], (k, v): (&[K], &[K]), scales: Option<&[f32]>,
    ) -> Vec<T>
    where
        Attention: Op<T>,
    {
        let gpu = &device.gpu;
        let floats = |x: Option<&[f32]>| x.map(|x| gpu.upload(x).unwrap());
        let words = |x: Option<&[u32]>| x.map(|x| gpu.upload(x).unwrap());
        let (scales, mask) = (floats(scales), floats(self.mask.as_deref()));
        let (table, lengths) = (words(self.table.as_deref()), words(self.lengths.as_deref()));
        let plan = op.plan::<T>(gpu).unwrap();
        let mut with = plan.with();
        if let Some(scales) = &scales {
            with = with.with_scales(scales);
        }
        if let Some(table) = &table {
            with = with.with_table(table);
        }
        if let Some(lengths) = &lengths {
            with = with.with_lengths(lengths);
        }
        if let Some(mask) = &mask {
            with = with.with_mask(mask);
        }
        let [b, h, _, t, ..] = self.shape;
        let output = gpu.alloc::<T>(b * h * t * self.e).unwrap();
        let (q, k, v) = (gpu.upload(q).unwrap(), gpu.upload(k).unwrap(), gpu.upload(v).unwrap());
        let mut rec = gpu.recorder();
        with.record(&mut rec, &q, &k, &v, &output).unwrap();
        rec.submit().unwrap();
        output.read().unwrap()
    }
}

fn variants() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Attention::variants().iter().map(|v| v.name))
}

#[test]
fn matches_reference_for_every_kind() {
    for device in devices() {
        Case::new([2, 4, 2, 7, 70, 64], |op| op.causal().window(40))
            .lengths(&[70, 21])
            .paged(16)
            .masked([1, 4])
            .check::<f16, f16>(device);
        if device.main {
            Case::new([1, 2, 1, 37, 37, 40], |op| op.causal()).check::<f32, f16>(device);
            // As in other tests, which compile the same kernels.
            Case::new([2, 4, 2, 1, 70, 32], |op| op.causal())
                .masked([1, 1])
                .lengths(&[0, 69])
                .check::<f32, f32>(device);
            if all() {
                Case::new([2, 4, 2, 5, 37, 32], |op| op).check::<f32, f32>(device);
                Case::new([1, 2, 2, 33, 40, 64], |op| op.window(5)).check::<f16, f32>(device);
                Case::new([2, 2, 1, 9, 40, 32], |op| op.scale(0.5)).masked([2, 1]).check::<f32, f32>(device);
                Case::new([2, 4, 2, 1, 70, 128], |op| op).lengths(&[0, 69]).check::<f32, f32>(device);
            }
        }
    }
}

#[test]
fn a_quantised_cache_matches_its_dequantised_values() {
    for device in devices() {
        for (kv, [t, s]) in [(KvType::Int8, [1, 70]), (KvType::Fp8, [6, 40])] {
            let case = Case::new([2, 2, 1, t, s, 32], |op| op.causal().kv(kv)).paged(16).lengths(&[s as u32, 20]);
            let mut random = Random::new(9);
            let n = case.rows * 32;
            let codes: Vec<u8> = (0..2 * n).map(|_| random.next() as u8).collect();
            // No NaN, which E4M3 has two codes for.
            let codes: Vec<u8> = codes.iter().map(|c| if c & 0x7f == 0x7f { 0 } else { *c }).collect();
            let max_code = if kv == KvType::Int8 { 127.0 } else { 448.0 };
            let scales: Vec<f32> = (0..2 * case.rows).map(|_| (1.5 + random.unit()) as f32 / max_code).collect();
            let decoded: Vec<f32> = (codes.iter().enumerate())
                .map(|(i, &c)| {
                    let x = if kv == KvType::Int8 { f32::from(c as i8) } else { fp8_value(c) };
                    x * scales[i / 32]
                })
                .collect();
            let (q, decoded) = (case.queries::<f32>(), decoded.split_at(n));
            if kv == KvType::Int8 {
                let codes: Vec<i8> = codes.iter().map(|c| *c as i8).collect();
                case.compare(device, &case.op, &q, codes.split_at(n), decoded, Some(&scales));
            } else {
                case.compare(device, &case.op, &q, codes.split_at(n), decoded, Some(&scales));
            }
        }
    }
}

#[test]
fn flash_stores_no_scores() {
    let Some(gpu) = gpu() else { return };
    // 16 TiB of scores in f32.
    let op = Attention::new([1, 1, 1 << 21, 8], [1, 1 << 21]).variant("flash");
    let program = Op::<f32>::lower(&op, &DeviceProfile::h100()).unwrap();
    assert_eq!(program.scratch_bytes(), 0);
    // 256 MiB of scores, more than most devices can bind; each query sees 3 keys, so the test is short.
    let n = 8192;
    let op = Attention::new([1, 1, n, 8], [1, n]).causal().window(3).variant("flash");
    let plan = op.plan::<f32>(gpu).unwrap();
    assert_eq!(plan.report().scratch, 0);
    let mut random = Random::new(4);
    let [q, k, v] = [(); 3].map(|()| random.elements::<f32>(8 * n));
    let output = gpu.alloc::<f32>(8 * n).unwrap();
    let (dq, dk, dv) = (gpu.upload(&q).unwrap(), gpu.upload(&k).unwrap(), gpu.upload(&v).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &dq, &dk, &dv, &output).unwrap();
    rec.submit().unwrap();
    // The last queries, from a reference over the keys that they see.
    let (few, from) = (Attention::new([1, 1, 40, 8], [1, 42]).causal().window(3), 8 * (n - 42));
    let (q, k, v) = (&q[from + 16..], &k[from..], &v[from..]);
    let none = AttentionInputs::default();
    let want = numbers(&attention(&few, q, k, v, none));
    let got = numbers(&output.read().unwrap()[from + 16..]);
    assert_close("long", &got, &want, &attention_bound(&few, q, k, v, none));
}

#[test]
fn further_shapes_match_reference_on_the_first_device() {
    let Some(device) = devices().first() else { return };
    Case::new([1, 1, 1, 1, 1, 8], |op| op).check::<f32, f32>(device);
    if !all() {
        return;
    }
    Case::new([1, 1, 1, 66, 40, 256], |op| op.causal()).check::<f32, f32>(device);
    Case::new([1, 3, 3, 129, 257, 72], |op| op).check::<f32, f32>(device);
    Case::new([1, 2, 1, 65, 64, 96], |op| op.window(1)).check::<f16, f16>(device);
    Case::new([1, 8, 1, 2, 1000, 64], |op| op.causal().window(300)).check::<f32, f16>(device);
    Case::new([3, 8, 2, 1, 300, 80], |op| op).paged(100).check::<f32, f32>(device);
}

/// The tiles for cards, for WebGPU's default limits, and with loads ahead, which the policy never chooses on a CPU.
#[test]
fn every_tile_matches_reference() {
    let Some(device) = devices().first() else { return };
    let tile = |[rows, keys, lanes, thread_rows]: [u32; 4], [dims, weights, values]: [u32; 3], ahead| FlashTile {
        rows,
        keys,
        lanes,
        thread_rows,
        dims,
        weights,
        values,
        ahead,
    };
    let tiles = [
        (64, tile([64, 64, 8, 4], [16, 32, 32], true)),
        (64, tile([128, 64, 8, 8], [32, 32, 32], false)),
        (24, tile([64, 32, 8, 4], [32, 32, 8], false)),
    ];
    for &(d, tile) in sample(&tiles, 1) {
        let case = Case::new([1, 2, 1, 130, 150, d], |op| op.causal().window(100).tile(tile).variant("flash"));
        let (q, k, v) = (case.queries::<f32>(), case.rows::<f32>(2), case.rows::<f32>(3));
        // Some devices have too little workgroup memory.
        if case.op.plan::<f32>(&device.gpu).is_err_and(|e| e.kind() == ErrorKind::TooLarge) {
            continue;
        }
        let got = case.run(device, &case.op, &q, (&k, &v), None);
        let want = attention(&case.op, &q, &k, &v, case.inputs());
        let bound = attention_bound(&case.op, &q, &k, &v, case.inputs());
        assert_close(&format!("{tile:?}"), &numbers(&got), &numbers(&want), &bound);
    }
    let unsound = tile([64, 32, 8, 4], [32, 32, 5], false);
    let e = Attention::new([1, 1, 9, 64], [1, 9]).variant("flash").tile(unsound).plan::<f32>(&device.gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

/// The text of `coop` with separate storage for q: emulated matrices lie in workgroup memory, and weights
/// replace q there.
fn with_lasting_queries(text: &str) -> String {
    let (head, rest) = text.split_once("let line_0 =").unwrap();
    let (mut out, mut barriers) = (String::new(), 0);
    let place = head.lines().find(|line| line.starts_with("var<workgroup> wg_p:")).unwrap();
    for line in head.lines() {
        out += &line.replace("wg_p[", &format!("wg_q{}[", barriers / 2));
        out.push('\n');
        barriers += u32::from(line.contains("workgroupBarrier()"));
    }
    for chunk in 0..barriers / 2 {
        out = place.replace("wg_p", &format!("wg_q{chunk}")) + "\n" + &out;
    }
    // `enable` directives come first.
    let (enabled, rest_of) = out.lines().partition::<Vec<_>, _>(|line| line.starts_with("enable "));
    enabled.join("\n") + "\n" + &rest_of.join("\n") + "let line_0 =" + rest
}

/// The text of `coop` in which every thread checks all values: with subgroups smaller than 32, the first thread of a
/// team does not learn what the others found.
fn looked_at_by_all(text: &str) -> String {
    let all = "for (var i = 0u; i < TILE_KEYS * PIECES; i++) {
            let words = v[row_of(pair, min(key + i / PIECES, last_key)) * PIECES + i % PIECES - params.base_kv / 2u];
            spoiled = spoiled || any(spoils(vec4<f32>(halves(words.xy)))) || any(spoils(vec4<f32>(halves(words.zw))));
        }
        team_spoiled = spoiled;";
    let by_some = "team_spoiled = subgroupAny(spoiled);";
    assert!(text.contains(by_some));
    text.replace(by_some, all)
}

/// The cooperative kernel on emulated matrices: one tile and many, rows that see few keys, and a maximum that grows
/// from tile to tile, so that the output is rescaled.
#[test]
fn emulated_coop_matches_reference() {
    let Some(gpu) = gpu().filter(|gpu| gpu.profile().features.f16) else { return };
    Case::new([1, 2, 1, 5, 30, 32], |op| op).check_emulated(gpu, 32);
    Case::new([2, 2, 2, 70, 75, 32], |op| op.causal()).lengths(&[75, 40]).check_emulated(gpu, 16);
    if all() {
        Case::new([1, 2, 2, 70, 90, 48], |op| op.window(20)).masked([1, 2]).check_emulated(gpu, 16);
    }
    // Scores of many magnitudes.
    Case::new([1, 1, 1, 64, 200, 32], |op| op.scale(5.0)).check_emulated(gpu, 32);
    // Infinite or NaN values, visible to some rows only.
    for &value in sample(&[f64::NAN, f64::NEG_INFINITY], 1) {
        let case = Case::new([1, 2, 2, 70, 90, 48], |op| op.causal().window(40));
        let (q, k, mut v) = (case.queries::<f16>(), case.rows::<f16>(2), case.rows::<f16>(3));
        spoil(&mut v, 48, [50, 89, 90 + 89], value);
        case.compare_emulated(gpu, 16, &q, &k, &v);
        let case = Case::new([1, 1, 1, 40, 45, 32], |op| op).lengths(&[33]);
        let (q, mut k, mut v) = (case.queries::<f16>(), case.rows::<f16>(2), case.rows::<f16>(3));
        spoil(&mut v, 32, [33, 44], value);
        spoil(&mut k, 32, [33, 44], value);
        case.compare_emulated(gpu, 32, &q, &k, &v);
    }
}

/// Every head size in both of its tiles, on devices with cooperative matrices.
#[test]
fn coop_matches_reference_on_cooperative_matrices() {
    for device in devices().iter().filter(|d| d.main && d.gpu.profile().cooperative_side() == Some(16)) {
        for d in [16, 64, 80, 128] {
            Case::new([1, 2, 1, 150, 170, d], |op| op).check::<f16, f16>(device);
            Case::new([2, 2, 2, 129, 140, d], |op| op.causal()).lengths(&[140, 0]).check::<f16, f16>(device);
            Case::new([1, 4, 2, 70, 300, d], |op| op.window(33)).masked([1, 4]).check::<f16, f16>(device);
            // Scores of many magnitudes: the output is rescaled.
            Case::new([1, 1, 1, 64, 500, d], |op| op.scale(4.0)).check::<f16, f16>(device);
        }
    }
}

#[test]
fn a_window_of_all_keys_has_no_effect() {
    let Some(device) = devices().first() else { return };
    let whole = Case::new([1, 2, 2, 20, 30, 32], |op| op);
    let (q, k) = (whole.queries::<f32>(), whole.rows::<f32>(2));
    let want = whole.run(device, &whole.op, &q, (&k, &k), None);
    let window = whole.op.clone().window(1 << 40);
    assert_eq!(whole.run(device, &window, &q, (&k, &k), None), want);
}

#[test]
fn infinite_scores_follow_softmax() {
    for device in devices() {
        let case = Case::new([1, 1, 1, 4, 40, 32], |op| op);
        let (mut q, mut k, v) = (case.queries::<f32>(), case.rows::<f32>(2), case.rows::<f32>(3));
        // +infinity for the first query, -infinity for the second, NaN for the third, numbers for the fourth.
        for (row, sign) in [(0, 1.0), (1, -1.0), (2, f32::NAN), (3, 0.5)] {
            q[row * 32] = sign;
        }
        k[7 * 32] = 3e38;
        q[0] = 3e38;
        q[32] = -3e38;
        case.compare(device, &case.op, &q, (&k, &v), (&k, &v), None);
    }
}

/// Hidden keys and values have no effect, whatever they hold; visible ones do.
#[test]
fn hidden_keys_and_values_have_no_effect() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let cases: [fn() -> Case; 7] = [
        || Case::new([1, 1, 1, 37, 37, 40], |op| op.causal()),
        || Case::new([2, 2, 1, 18, 40, 32], |op| op.causal()).masked([1, 1]).lengths(&[40, 21]),
        || Case::new([1, 1, 1, 40, 70, 64], |op| op.causal().window(9)),
        || Case::new([1, 1, 1, 3, 45, 24], |op| op.causal()),
        || Case::new([2, 2, 1, 20, 45, 32], |op| op.window(7)).lengths(&[45, 30]),
        || Case::new([2, 2, 1, 5, 40, 32], |op| op.causal()).paged(16).lengths(&[40, 21]),
        || Case::new([2, 2, 1, 20, 45, 32], |op| op).lengths(&[45, 30]),
    ];
    for device in devices().iter().filter(|d| d.main || d.label.ends_with("WebGPU defaults)")) {
        for (number, case) in sample(&cases, 2).iter().enumerate() {
            let case = case();
            let (d, s) = (case.shape[5], case.shape[4]);
            // NaN, and in every other case an infinity in keys too.
            for (at, value) in [values[0], values[1 + number % 2]].into_iter().enumerate() {
                let q = case.queries::<f32>();
                let (mut k, mut v) = (case.rows::<f32>(2), case.rows::<f32>(3));
                // The last key, and one that some rows see.
                let last = (s - 1..case.rows).step_by(s);
                spoil(&mut v, d, last.clone(), value);
                spoil(&mut v, d, [s - 3], value);
                if (number + at).is_multiple_of(2) {
                    spoil(&mut k, d, last, value);
                }
                case.compare(device, &case.op, &q, (&k, &v), (&k, &v), None);
                let (q, k, v) = (to_f16(&q), to_f16(&k), to_f16(&v));
                if device.main && number == 0 {
                    case.compare(device, &case.op.clone().kv(KvType::F16), &q, (&k, &v), (&k, &v), None);
                }
            }
        }
    }
}

fn to_f16(x: &[f32]) -> Vec<f16> {
    x.iter().map(|x| f16::from_f32(*x)).collect()
}

/// Lanes of `split-kv` past the end of a vector add nothing, even beside infinite keys.
#[test]
fn infinite_keys_hide_values_of_weight_zero() {
    for device in devices() {
        for &d in sample(&[24, 40, 72], 1) {
            let case = Case::new([1, 1, 1, 1, 40, d], |op| op);
            let (q, mut k, v) = (vec![1.0f32; d], case.rows::<f32>(2), case.rows::<f32>(3));
            // The last element, which lanes past the end read again.
            for row in [0, 7, 39] {
                k[row * d + d - 1] = f32::NEG_INFINITY;
            }
            case.compare(device, &case.op, &q, (&k, &v), (&k, &v), None);
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let refused = |op: &Attention, kind: ErrorKind, words: &str| {
        let e = op.plan::<f32>(gpu).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(words), "{e}");
    };
    let new = Attention::new;
    refused(&new([1, 6, 2, 32], [4, 2]), ErrorKind::Shape, "6 heads are not a multiple of 4");
    refused(&new([1, 4, 2, 0], [4, 2]), ErrorKind::Shape, "heads of 0 elements");
    refused(&new([1, 4, 2, 8], [4, 2]).value_size(0), ErrorKind::Shape, "values of 0");
    refused(&new([1, 4, 2, 8], [0, 2]), ErrorKind::Shape, "4 heads are not a multiple of 0");
    let wide = new([1, 4, 9, 8], [4, 2]).value_size(257);
    refused(&wide.clone().variant("flash"), ErrorKind::Unsupported, "at most 256 elements");
    refused(&wide.variant("split-kv"), ErrorKind::Unsupported, "at most 256 elements");
    let op = new([1, 4, 2, 32], [4, 2]);
    refused(&op.clone().window(0), ErrorKind::InvalidArgument, "window is 0");
    refused(&op.clone().scale(f32::NAN), ErrorKind::InvalidArgument, "scale");
    for cap in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        refused(&op.clone().softcap(cap), ErrorKind::InvalidArgument, "softcap");
    }
    let scores = op.clone().scores(ScoreStage::Weights);
    refused(&scores.variant("flash"), ErrorKind::Unsupported, "only `naive` can return them");
    refused(&op.clone().masked([2, 1]), ErrorKind::Shape, "mask");
    refused(&op.clone().paged(Paging { tokens: 8, pages: 4 }), ErrorKind::InvalidArgument, "pages have 8 tokens");
    refused(&op.clone().paged(Paging { tokens: 16, pages: 0 }), ErrorKind::Shape, "0 pages");
    refused(&op.clone().variant("fastest"), ErrorKind::InvalidArgument, "no variant `fastest`");
    refused(&new([1 << 20, 1 << 20, 1 << 20, 32], [1, 1 << 20]), ErrorKind::TooLarge, "split the work");
    refused(&new([1, 1, 1, 256], [1, 1 << 30]), ErrorKind::TooLarge, "the largest buffer");
    let x = gpu.upload(&vec![0f32; 256]).unwrap();
    let y = gpu.alloc::<f32>(256).unwrap();
    let plan = op.lengths().plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let e = plan.record(&mut rec, &x, &x, &x, &y).unwrap_err();
    assert!(e.to_string().contains("wants the operand lengths"), "{e}");
}

#[test]
fn scale_zero_returns_the_mean() {
    let Some(device) = devices().first() else { return };
    let case = Case::new([1, 1, 1, 2, 50, 32], |op| op.scale(0.0));
    case.check::<f32, f32>(device);
}
