//! Counts of small kernels against the formulas of the analysis module, with known answers.

use std::collections::{BTreeMap, BTreeSet};
use tilework::analysis::{
    Axis, Dram, Interleaving, Matmul, brent_kung_operations, coarsened_steps, divergence, kogge_stone_operations,
    lane_position, reads_from_shared, reduction_operations, segments, uncoarsened_steps,
};
use tilework::sim::{self, Counts, Options, Report};

fn run(text: &str, entry: &str, grid: [u32; 3], sizes: &[u32], options: &Options) -> Report {
    let mut buffers: Vec<_> = sizes.iter().map(|n| vec![0; 4 * *n as usize]).collect();
    let report = sim::run_wgsl("k.wgsl", text, entry, grid, &mut buffers, options).unwrap();
    assert!(report.is_clean(), "{report}");
    report
}

/// Counts of the line that contains `what`.
fn at(report: &Report, text: &str, what: &str) -> Counts {
    let line = text.lines().position(|l| l.contains(what)).unwrap() as u32 + 1;
    report.line("k.wgsl", line)
}

#[test]
fn divergence_of_boundary_checks_matches_the_analysis() {
    for (width, height, warps, divergent) in [(76, 62, 160, 31), (76, 61, 160, 35), (200, 150, 1040, 75)] {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> image: array<u32>;
            @compute @workgroup_size(16, 16)
            fn mark(@builtin(global_invocation_id) id: vec3<u32>) {{
                if id.x < {width}u && id.y < {height}u {{ // bounds
                    image[id.y * {width}u + id.x] = 1u;
                }}
            }}"
        );
        let grid = [u32::div_ceil(width, 16), u32::div_ceil(height, 16), 1];
        let report = run(&text, "mark", grid, &[width * height], &Options::default());
        let model = divergence(grid, [16, 16, 1], 32, |[x, y, _]| u32::from(x < width && y < height));
        assert_eq!((model.warps, model.divergent), (warps, divergent));
        // `&&` is a branch too, on x alone.
        let on_x = divergence(grid, [16, 16, 1], 32, |[x, ..]| u32::from(x < width));
        let counts = at(&report, &text, "// bounds");
        assert_eq!((counts.branches, counts.divergent), (2 * warps, divergent + on_x.divergent));
    }
}

#[test]
fn divergence_of_other_bounds_matches_the_analysis() {
    for (n, divergent, warps) in [(100u32, 1, 4), (1000, 1, 32), (1003, 1, 32), (10_000, 1, 314)] {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(64)
            fn mark(@builtin(global_invocation_id) id: vec3<u32>) {{
                if id.x < {n}u {{ // bounds
                    data[id.x] = 1u;
                }}
            }}"
        );
        let counts = at(&run(&text, "mark", [n.div_ceil(64), 1, 1], &[n], &Options::default()), &text, "// bounds");
        assert_eq!((counts.divergent, counts.branches), (divergent, warps));
        let model = divergence([n.div_ceil(64), 1, 1], [64, 1, 1], 32, |[x, ..]| u32::from(x < n));
        assert_eq!((model.divergent, model.warps), (divergent, warps));
    }
    // A branch with three ways: a subgroup whose lanes differ counts itself.
    let text = "@group(0) @binding(0) var<storage, read_write> divergent: atomic<u32>;
        @compute @workgroup_size(16, 16)
        fn mark(@builtin(global_invocation_id) id: vec3<u32>) {
            var way = 0u;
            if id.x < 174u && id.y < 176u { way = 1u + u32(id.y > id.x); }
            let differs = subgroupAny(way != subgroupBroadcastFirst(way));
            if differs && subgroupExclusiveAdd(1u) == 0u { atomicAdd(&divergent, 1u); }
        }";
    let mut buffers = vec![vec![0; 4]];
    sim::run_wgsl("k.wgsl", text, "mark", [11, 11, 1], &mut buffers, &Options::default()).unwrap();
    assert_eq!(buffers[0], 168u32.to_le_bytes());
    // A block as large as its input tile: it loads all of it and computes the inner part.
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(32, 32)
        fn convolve(@builtin(local_invocation_id) t: vec3<u32>) {
            let x = data[t.y * 32u + t.x]; // load
            if all(t.xy - vec2(1u) < vec2(30u)) { // compute
                data[t.y * 32u + t.x] = x + 1u;
            }
        }";
    let report = run(text, "convolve", [1, 1, 1], &[1024], &Options::default());
    let compute = at(&report, text, "// compute");
    assert_eq!((compute.divergent, compute.branches), (30, 32));
    assert_eq!(at(&report, text, "// load").divergent, 0);
}

#[test]
fn lane_layout_matches_the_analysis() {
    let text = "@group(0) @binding(0) var<storage, read_write> places: array<vec3<u32>>;
        @compute @workgroup_size(4, 8, 2)
        fn place(@builtin(local_invocation_id) t: vec3<u32>) {
            // The subgroup of the first thread is the first of two.
            let first = u32(!subgroupAny(all(t == vec3(0u))));
            places[first * 32u + subgroupExclusiveAdd(1u)] = t;
        }";
    let mut buffers = vec![vec![0; 64 * 16]];
    sim::run_wgsl("k.wgsl", text, "place", [1, 1, 1], &mut buffers, &Options::default()).unwrap();
    for (index, place) in (0..).zip(buffers[0].chunks(16)) {
        assert_eq!(&place[..12], lane_position([4, 8, 2], index).map(u32::to_le_bytes).as_flattened());
    }
}

#[test]
fn a_loop_runs_as_many_rounds_as_its_longest_lane() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(32)
        fn walk(@builtin(local_invocation_index) t: u32) {
            var sum = 0u;
            for (var i = 0u; i < 6u + t % 3u; i++) {
                sum += data[t]; // round
            }
            data[t] = sum;
        }";
    let report = run(text, "walk", [1, 1, 1], &[32], &Options::default());
    let rounds = at(&report, text, "// round");
    // 32 lanes in six rounds each, 21 in the seventh, 10 in the eighth.
    assert_eq!(rounds.read_bytes, 4 * (6 * 32 + 21 + 10));
    assert_eq!((rounds.lanes % (8 * 32), rounds.active * 8 * 32), (0, rounds.lanes * (6 * 32 + 21 + 10)));
}

#[test]
fn divergence_of_reductions_matches_the_analysis() {
    let text = |condition: &str, from: &str, next: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            var<workgroup> wg_sums: array<u32, 512>;
            @compute @workgroup_size(512)
            fn reduce(@builtin(local_invocation_index) t: u32) {{
                wg_sums[t] = data[t];
                for (var stride = {from}; stride > 0u && stride < 512u; stride {next}) {{
                    workgroupBarrier();
                    if {condition} {{ // step
                        wg_sums[t] += wg_sums[t + stride];
                    }}
                }}
                if t == 0u {{
                    data[0] = wg_sums[0];
                }}
            }}"
        )
    };
    let interleaved = text("t % (2u * stride) == 0u", "1u", "*= 2u");
    let sequential = text("t < stride", "256u", "/= 2u");
    for (text, divergent) in [(interleaved, 16 * 5 + 8 + 4 + 2 + 1), (sequential, 5)] {
        let report = run(&text, "reduce", [1, 1, 1], &[512], &Options::default());
        let counts = at(&report, &text, "// step");
        assert_eq!((counts.branches, counts.divergent), (9 * 16, divergent));
        assert_eq!(at(&report, &text, "+= wg_sums").shared_writes, reduction_operations(512));
        assert_eq!(report.totals.barriers, 9);
    }
}

#[test]
fn steps_of_coarsened_reductions_match_the_analysis() {
    // 64 threads on 128 elements per block, with a block for each part or one for all.
    let text = |factor: u32| {
        format!(
            "const FACTOR = {factor}u;
            @group(0) @binding(0) var<storage, read_write> data: array<f32>;
            var<workgroup> wg_sums: array<f32, 64>;
            @compute @workgroup_size(64)
            fn reduce(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {{
                var sum = data[group.x * 128u * FACTOR + t];
                for (var i = 1u; i < 2u * FACTOR; i++) {{
                    sum += data[group.x * 128u * FACTOR + t + i * 64u]; // own
                }}
                wg_sums[t] = sum;
                for (var stride = 32u; stride > 0u; stride /= 2u) {{
                    workgroupBarrier();
                    if t < stride {{ wg_sums[t] += wg_sums[t + stride]; }}
                }}
                if t == 0u {{ data[group.x * 128u * FACTOR] = wg_sums[0]; }}
            }}"
        )
    };
    for (factor, groups, model) in [(4, 1, coarsened_steps(128, 4)), (1, 4, uncoarsened_steps(128, 4))] {
        let text = text(factor);
        let report = run(&text, "reduce", [groups, 1, 1], &[512], &Options::default());
        // Each thread's own sums, and one sum per step of the tree by the first thread.
        let own = u64::from((2 * factor - 1) * groups);
        assert_eq!(at(&report, &text, "// own").add / (64 * u64::from(groups)) * u64::from(groups), own);
        assert_eq!(own + report.totals.barriers, model.0);
        // The tree's first barrier precedes its steps; the formula does not count it.
        assert_eq!(report.totals.barriers + u64::from(groups), model.1);
    }
}

#[test]
fn idle_lanes_match_the_analysis() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(48)
        fn fill(@builtin(local_invocation_index) t: u32) { data[t] = t; }";
    let report = run(text, "fill", [1, 1, 1], &[48], &Options::default());
    let model = divergence([1, 1, 1], [48, 1, 1], 32, |_| 0);
    assert_eq!((report.totals.occupancy_of_lanes(), model.efficiency(32)), (0.75, 0.75));
}

fn matmul(m: u32, k: u32, n: u32, tile: u32) -> Counts {
    let sizes = format!("const M = {m}u; const K = {k}u; const N = {n}u; const TILE = {tile}u;");
    let rest = "
        @group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read> b: array<f32>;
        @group(0) @binding(2) var<storage, read_write> c: array<f32>;
        var<workgroup> wg_a: array<array<f32, TILE>, TILE>;
        var<workgroup> wg_b: array<array<f32, TILE>, TILE>;
        @compute @workgroup_size(16, 16)
        fn naive(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < N && id.y < M {
                var sum = 0.0;
                for (var k = 0u; k < K; k++) { sum += a[id.y * K + k] * b[k * N + id.x]; }
                c[id.y * N + id.x] = sum;
            }
        }
        @compute @workgroup_size(TILE, TILE)
        fn tiled(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {
            var sum = 0.0;
            for (var first = 0u; first < K; first += TILE) {
                wg_a[t.y][t.x] = 0.0;
                wg_b[t.y][t.x] = 0.0;
                if id.y < M && first + t.x < K { wg_a[t.y][t.x] = a[id.y * K + first + t.x]; }
                if id.x < N && first + t.y < K { wg_b[t.y][t.x] = b[(first + t.y) * N + id.x]; }
                workgroupBarrier();
                for (var k = 0u; k < TILE; k++) { sum += wg_a[t.y][k] * wg_b[k][t.x]; }
                workgroupBarrier();
            }
            if id.x < N && id.y < M { c[id.y * N + id.x] = sum; }
        }";
    // A tile of 1 is the untiled kernel.
    let (entry, side) = if tile == 1 { ("naive", 16) } else { ("tiled", tile) };
    let grid = [n.div_ceil(side), m.div_ceil(side), 1];
    run(&(sizes + rest), entry, grid, &[m * k, k * n, m * n], &Options::default()).totals
}

#[test]
fn bytes_and_operations_of_gemm_match_the_analysis() {
    assert_eq!(matmul(40, 31, 33, 1).read_bytes, 327_360);
    assert_eq!(matmul(80, 41, 69, 16).read_bytes, 122_180);
    assert_eq!(matmul(100, 141, 92, 32).flop(), 3_932_160);
    assert_eq!(matmul(100, 141, 92, 1).flop(), 2_594_400);
    for (m, k, n, tile) in [(40, 31, 33, 1), (80, 41, 69, 16), (33, 17, 70, 8)] {
        let model = Matmul { m: m.into(), k: k.into(), n: n.into() };
        let counts = matmul(m, k, n, tile);
        assert_eq!(counts.read_bytes, 4 * model.elements_read(tile.into(), tile.into()));
        if tile > 1 {
            assert_eq!(counts.flop(), model.flop_executed(tile.into()).unwrap());
        }
        assert_eq!(counts.written_bytes, u64::from(4 * m * n));
    }
}

#[test]
fn shared_reads_of_a_convolution_match_the_analysis() {
    let text = "const TILE = 8u; const RADIUS = 2u; const LENGTH = 32u;
        @group(0) @binding(0) var<storage, read> input: array<f32>;
        @group(0) @binding(1) var<storage, read_write> output: array<f32>;
        var<workgroup> wg_tile: array<f32, TILE + 2u * RADIUS>;
        @compute @workgroup_size(TILE)
        fn tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
            let first = group.x * TILE;
            for (var i = t; i < TILE + 2u * RADIUS; i += TILE) {
                if first + i >= RADIUS && first + i < LENGTH + RADIUS {
                    wg_tile[i] = input[first + i - RADIUS]; // load
                }
            }
            workgroupBarrier();
            var sum = 0.0;
            for (var i = 0u; i <= 2u * RADIUS; i++) {
                let at = first + t + i;
                if at >= RADIUS && at < LENGTH + RADIUS {
                    sum += wg_tile[t + i]; // use
                }
            }
            output[first + t] = sum;
        }
        @compute @workgroup_size(TILE)
        fn cached(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
            let first = group.x * TILE;
            wg_tile[t] = input[first + t];
            workgroupBarrier();
            var sum = 0.0;
            for (var i = 0u; i <= 2u * RADIUS; i++) {
                let at = t + i;
                if at >= RADIUS && at < TILE + RADIUS {
                    sum += wg_tile[at - RADIUS]; // shared
                } else if first + at >= RADIUS && first + at < LENGTH + RADIUS {
                    sum += input[first + at - RADIUS];
                }
            }
            output[first + t] = sum;
        }";
    let report = run(text, "tiled", [4, 1, 1], &[32, 32], &Options::default());
    // Two inner tiles and two at the ends.
    let (used, loaded) = (at(&report, text, "// use").shared_reads, at(&report, text, "// load").read_bytes / 4);
    assert_eq!((used, loaded), (2 * 40 + 2 * 37, 2 * 12 + 2 * 10));
    let (inside, end) = (Axis::inside(8, 5), Axis::at_boundary(8, 5));
    assert_eq!((inside.reads(), inside.loads(), end.reads(), end.loads()), (40, 12, 37, 10));
    let report = run(text, "cached", [4, 1, 1], &[32, 32], &Options::default());
    assert_eq!(at(&report, text, "// shared").shared_reads, 4 * reads_from_shared(&[inside]));
}

#[test]
fn reads_of_2d_convolutions_match_the_analysis() {
    // Nine blocks: one inner, four at edges, four at corners.
    let text = |tile: u32, rx: u32, ry: u32| {
        format!(
            "const TILE = {tile}u; const RX = {rx}u; const RY = {ry}u; const SIDE = 3u * TILE;
            @group(0) @binding(0) var<storage, read> input: array<f32>;
            @group(0) @binding(1) var<storage, read_write> output: array<f32>;
            const W = TILE + 2u * RX; const H = TILE + 2u * RY;
            var<workgroup> wg_tile: array<array<f32, W>, H>;
            var<workgroup> wg_inside: array<array<f32, TILE>, TILE>;
            @compute @workgroup_size(TILE, TILE)
            fn tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>,
                     @builtin(local_invocation_index) index: u32) {{
                let first = group.xy * TILE;
                for (var i = index; i < W * H; i += TILE * TILE) {{
                    let at = first + vec2(i % W, i / W) - vec2(RX, RY);
                    if all(at < vec2(SIDE)) {{
                        wg_tile[i / W][i % W] = input[at.y * SIDE + at.x]; // load
                    }}
                }}
                workgroupBarrier();
                var sum = 0.0;
                for (var j = 0u; j <= 2u * RY; j++) {{
                    for (var i = 0u; i <= 2u * RX; i++) {{
                        if all(first + t.xy + vec2(i, j) - vec2(RX, RY) < vec2(SIDE)) {{
                            sum += wg_tile[t.y + j][t.x + i]; // use
                        }}
                    }}
                }}
                output[(first.y + t.y) * SIDE + first.x + t.x] = sum;
            }}
            @compute @workgroup_size(TILE, TILE)
            fn cached(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {{
                let first = group.xy * TILE;
                wg_inside[t.y][t.x] = input[(first.y + t.y) * SIDE + first.x + t.x]; // own
                workgroupBarrier();
                var sum = 0.0;
                for (var j = 0u; j <= 2u * RY; j++) {{
                    for (var i = 0u; i <= 2u * RX; i++) {{
                        let inside = t.xy + vec2(i, j) - vec2(RX, RY);
                        let at = first + inside;
                        if all(inside < vec2(TILE)) {{
                            sum += wg_inside[inside.y][inside.x]; // shared
                        }} else if all(at < vec2(SIDE)) {{
                            sum += input[at.y * SIDE + at.x]; // halo
                        }}
                    }}
                }}
                output[(first.y + t.y) * SIDE + first.x + t.x] = sum;
            }}"
        )
    };
    let run = |text: &str, entry: &str, tile: u32| {
        run(text, entry, [3, 3, 1], &[9 * tile * tile, 9 * tile * tile], &Options::default())
    };
    let small = text(8, 2, 2);
    let report = run(&small, "tiled", 8);
    let counts = (at(&report, &small, "// use").shared_reads, at(&report, &small, "// load").read_bytes / 4);
    assert_eq!(counts, (1600 + 4 * 1480 + 4 * 1369, 144 + 4 * 120 + 4 * 100));
    let (inside, end) = (Axis::inside(8, 5), Axis::at_boundary(8, 5));
    let all = |of: fn(&Axis) -> u64| of(&inside).pow(2) + 4 * of(&inside) * of(&end) + 4 * of(&end).pow(2);
    assert_eq!(counts, (all(Axis::reads), all(Axis::loads)));
    let wide = text(16, 4, 2);
    let shared = at(&run(&wide, "cached", 16), &wide, "// shared").shared_reads;
    assert_eq!(shared, 9 * 9176);
    assert_eq!(shared, 9 * reads_from_shared(&[Axis::inside(16, 9), Axis::inside(16, 5)]));
    let three = text(16, 1, 1);
    let report = run(&three, "cached", 16);
    let halo = at(&report, &three, "// halo").read_bytes / 4;
    let own = at(&report, &three, "// own").read_bytes / 4;
    let (inside, end) = (Axis::inside(16, 3), Axis::at_boundary(16, 3));
    let shared = reads_from_shared(&[inside; 2]);
    let (inside, end) = (inside.reads(), end.reads());
    // A block with neighbours on all sides reads 444.
    assert_eq!((own, 256 + inside * inside - shared), (9 * 256, 444));
    assert_eq!(halo, inside * inside + 4 * inside * end + 4 * end * end - 9 * shared);
}

#[test]
fn sectors_match_the_segments_of_the_analysis() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(32)
        fn walk(@builtin(local_invocation_index) t: u32) {
            data[t] = 1.0; // side by side
            data[1000u * t + 500u] = 1.0; // its own row
            data[0] = data[40]; // one place
        }";
    let text = text.replace("data[0] = data[40]", "if t == 0u { data[0] = data[40]; }");
    for sector in [32, 64, 128] {
        let options = Options { sector_bytes: sector, ..Options::default() };
        let report = run(&text, "walk", [1, 1, 1], &[32_000], &options);
        let side = at(&report, &text, "// side by side");
        let lanes = || (0..32u64).map(|t| 4 * t);
        assert_eq!(side.transactions, segments(lanes(), 4, sector.into()).unwrap());
        assert_eq!((side.coalescing(), side.transactions), (1.0, u64::from(128 / sector)));
        let own = at(&report, &text, "// its own row");
        assert_eq!((own.transactions, own.coalescing()), (32, 4.0 / f64::from(sector)));
        assert_eq!(at(&report, &text, "// one place").transactions, 2);
    }
}

#[test]
fn strided_pairs_match_the_analysis() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<vec2<f32>>;
        @compute @workgroup_size(32)
        fn walk(@builtin(local_invocation_index) t: u32) { data[2u * t] = vec2(1.0); }";
    for sector in [32, 64, 128] {
        let options = Options { sector_bytes: sector, ..Options::default() };
        let counts = run(text, "walk", [1, 1, 1], &[128], &options).totals;
        assert_eq!(counts.coalescing(), Dram::burst_efficiency(8, 16, sector.into()));
        assert_eq!(counts.transactions, 512 / u64::from(sector));
    }
}

#[test]
fn operations_of_scans_match_the_analysis() {
    for n in [16u32, 64, 256] {
        let text = format!(
            "const N = {n}u;
            @group(0) @binding(0) var<storage, read_write> data: array<f32>;
            var<workgroup> wg_x: array<f32, N>;
            @compute @workgroup_size(N)
            fn kogge_stone(@builtin(local_invocation_index) t: u32) {{
                wg_x[t] = data[t];
                for (var stride = 1u; stride < N; stride *= 2u) {{
                    workgroupBarrier();
                    var x = wg_x[t];
                    if t >= stride {{ x += wg_x[t - stride]; }}
                    workgroupBarrier();
                    wg_x[t] = x;
                }}
                data[t] = wg_x[t];
            }}
            @compute @workgroup_size(N)
            fn brent_kung(@builtin(local_invocation_index) t: u32) {{
                wg_x[t] = data[t];
                for (var stride = 1u; stride < N; stride *= 2u) {{
                    workgroupBarrier();
                    let i = (t + 1u) * 2u * stride - 1u;
                    if i < N {{ wg_x[i] += wg_x[i - stride]; }}
                }}
                for (var stride = N / 4u; stride > 0u; stride /= 2u) {{
                    workgroupBarrier();
                    let i = (t + 1u) * 2u * stride - 1u;
                    if i + stride < N {{ wg_x[i + stride] += wg_x[i]; }}
                }}
                workgroupBarrier();
                data[t] = wg_x[t];
            }}"
        );
        let adds = |entry| run(&text, entry, [1, 1, 1], &[n], &Options::default()).totals.add;
        assert_eq!(adds("kogge_stone"), kogge_stone_operations(n.into()));
        assert_eq!(adds("brent_kung"), brent_kung_operations(n.into()));
    }
}

#[test]
fn bursts_of_a_tiled_gemm_match_the_channels_of_the_analysis() {
    let memory = Interleaving { burst: 8, channels: 4, banks: 2 };
    for phase in [0u64, 1] {
        let text = format!(
            "const PHASE = {phase}u;
            @group(0) @binding(0) var<storage, read> m: array<f32, 16>;
            @group(0) @binding(1) var<storage, read_write> kept: array<f32, 16>;
            var<workgroup> wg_tile: array<f32, 4>;
            @compute @workgroup_size(2, 2)
            fn load(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {{
                wg_tile[2u * t.y + t.x] = m[(2u * group.y + t.y) * 4u + 2u * PHASE + t.x];
                if group.x == 9u {{ kept[0] = wg_tile[2u * t.y + t.x]; }}
            }}"
        );
        let options = Options { interleaving: Some(memory), ..Options::default() };
        let report = run(&text, "load", [2, 2, 1], &[16, 16], &options);
        // Each of two rows of tiles is loaded by two workgroups, one burst per line.
        let mut model = BTreeMap::new();
        for row in 0..4 {
            *model.entry(memory.place(16 * row + 8 * phase).unwrap()).or_insert(0) += 2;
        }
        assert_eq!(report.bursts, model);
        let channels: BTreeSet<u64> = report.bursts.keys().map(|(channel, _)| *channel).collect();
        assert_eq!(channels, BTreeSet::from([phase, phase + 2]));
        let told = report.to_string();
        assert!(told.contains(&format!("by channel and bank: {phase}.0: 2 {phase}.1: 2")), "{told}");
    }
    // Without the option nothing is counted.
    let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(4) fn f(@builtin(local_invocation_index) i: u32) { x[i] = i; }";
    assert!(run(text, "f", [1, 1, 1], &[4], &Options::default()).bursts.is_empty());
}

#[test]
fn bank_conflicts_and_atomic_waits_are_counted() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>, 8>;
        var<workgroup> wg_tile: array<f32, 1056>;
        @compute @workgroup_size(32)
        fn walk(@builtin(local_invocation_index) t: u32) {
            wg_tile[t] = 0.0; // a row
            wg_tile[32u * t] = 0.0; // a column
            wg_tile[33u * t] = 0.0; // a padded column
            atomicAdd(&data[t % 8u], 1u); // eight cells
        }";
    let mut buffers = vec![vec![0; 32]];
    let report = sim::run_wgsl("k.wgsl", text, "walk", [1, 1, 1], &mut buffers, &Options::default()).unwrap();
    let passes = |what| {
        let counts = at(&report, text, what);
        (counts.shared_passes, counts.bank_conflicts)
    };
    assert_eq!((passes("// a row"), passes("// a column"), passes("// a padded")), ((1, 0), (32, 31), (1, 0)));
    let cells = at(&report, text, "// eight cells");
    assert_eq!((cells.atomics, cells.contended, cells.transactions), (32, 24, 1));
    assert_eq!(buffers[0], [4u32; 8].map(u32::to_le_bytes).concat());
}

#[test]
fn the_report_shows_the_source_with_counts_and_the_worst_line_first() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(32)
        fn walk(@builtin(local_invocation_index) t: u32) {
            data[t] = 1.0;
            data[1000u * t + 500u] = 2.0;
        }";
    let report = run(text, "walk", [1, 1, 1], &[32_000], &Options::default());
    let shown = report.annotated(2);
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[2].contains("k.wgsl:5: data[1000u"), "{shown}");
    assert!(shown.contains("   4             data[t] = 1.0;"), "{shown}");
}
