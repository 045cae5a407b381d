//! Counts of small kernels beside the formulas of the analysis module, and their known answers.

use tilework::analysis::{
    Axis, Matmul, brent_kung_operations, divergence, kogge_stone_operations, reads_from_shared,
    reduction_operations, segments,
};
use tilework::sim::{self, Counts, Options, Report};

fn run(text: &str, entry: &str, grid: [u32; 3], sizes: &[u32], options: &Options) -> Report {
    let mut buffers: Vec<_> = sizes.iter().map(|n| vec![0; 4 * *n as usize]).collect();
    let report = sim::run_wgsl("k.wgsl", text, entry, grid, &mut buffers, options).unwrap();
    assert!(report.is_clean(), "{report}");
    report
}

/// Counts of the line that holds `what`.
fn at(report: &Report, text: &str, what: &str) -> Counts {
    let line = text.lines().position(|l| l.contains(what)).unwrap() as u32 + 1;
    report.line("k.wgsl", line)
}

#[test]
fn divergence_of_boundary_checks_is_that_of_the_analysis() {
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
fn divergence_of_reductions_is_that_of_the_analysis() {
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
fn idle_lanes_are_those_of_the_analysis() {
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
    // With a tile of 1 the kernel that has none.
    let (entry, side) = if tile == 1 { ("naive", 16) } else { ("tiled", tile) };
    let grid = [n.div_ceil(side), m.div_ceil(side), 1];
    run(&(sizes + rest), entry, grid, &[m * k, k * n, m * n], &Options::default()).totals
}

#[test]
fn bytes_and_operations_of_products_are_those_of_the_analysis() {
    assert_eq!(matmul(40, 31, 33, 1).read_bytes, 327_360);
    assert_eq!(matmul(80, 41, 69, 16).read_bytes, 122_180);
    assert_eq!(matmul(100, 141, 92, 32).flop(), 3_932_160);
    assert_eq!(matmul(100, 141, 92, 1).flop(), 2_594_400);
    for (m, k, n, tile) in [(40, 31, 33, 1), (80, 41, 69, 16), (33, 17, 70, 8)] {
        let model = Matmul { m: m.into(), k: k.into(), n: n.into() };
        let counts = matmul(m, k, n, tile);
        assert_eq!(counts.read_bytes, 4 * model.elements_read(tile.into(), tile.into()));
        if tile > 1 {
            assert_eq!(counts.flop(), model.flop_executed(tile.into()));
        }
        assert_eq!(counts.written_bytes, u64::from(4 * m * n));
    }
}

#[test]
fn shared_reads_of_a_convolution_are_those_of_the_analysis() {
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
    // Two tiles inside and two at the ends.
    let (used, loaded) =
        (at(&report, text, "// use").shared_reads, at(&report, text, "// load").read_bytes / 4);
    assert_eq!((used, loaded), (2 * 40 + 2 * 37, 2 * 12 + 2 * 10));
    let (inside, end) = (Axis::inside(8, 5), Axis::at_boundary(8, 5));
    assert_eq!((inside.reads(), inside.loads(), end.reads(), end.loads()), (40, 12, 37, 10));
    let report = run(text, "cached", [4, 1, 1], &[32, 32], &Options::default());
    assert_eq!(at(&report, text, "// shared").shared_reads, 4 * reads_from_shared(&[inside]));
}

#[test]
fn sectors_are_the_segments_of_the_analysis() {
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
        assert_eq!(side.transactions, segments(lanes(), 4, sector.into()));
        assert_eq!((side.coalescing(), side.transactions), (1.0, u64::from(128 / sector)));
        let own = at(&report, &text, "// its own row");
        assert_eq!((own.transactions, own.coalescing()), (32, 4.0 / f64::from(sector)));
        assert_eq!(at(&report, &text, "// one place").transactions, 2);
    }
}

#[test]
fn operations_of_scans_are_those_of_the_analysis() {
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
fn banks_conflict_and_atomics_wait_where_they_should() {
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
    assert_eq!(
        (passes("// a row"), passes("// a column"), passes("// a padded")),
        ((1, 0), (32, 31), (1, 0))
    );
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
