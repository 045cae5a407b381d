//! Conversions from every format to every format against the reference, element for element.

use super::spmv::{
    any_columns, arrow, banded, lower_triangle, matrix, ragged, refused, run_on_wild_lists, shuffled, small_layouts,
    uniform,
};
use crate::support::coverage::{all, sample};
use crate::support::{Device, devices, gpu};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::spconvert;
use tilework::sparse::{Csr, Format, HostMatrix, List, MatrixLayout, SparseMatrix, Target};
use tilework::{DType, DeviceList, ErrorKind};

/// Every format, some with several parameters.
const TARGETS: [Target; 9] = [
    Target::Coo,
    Target::Csr,
    Target::Csc,
    Target::Ell,
    Target::Hybrid { width: None },
    Target::Hybrid { width: Some(2) },
    Target::Jds,
    Target::Sell { slice: 4, window: 16 },
    Target::Sell { slice: 32, window: 1 },
];

/// All lists, values as bits.
fn bits(matrix: &HostMatrix) -> Vec<Vec<u32>> {
    let list = |list: List<'_>| match list {
        List::Indices(list) => list.to_vec(),
        List::Values(list) => list.iter().map(|x| x.to_bits()).collect(),
    };
    matrix.lists().into_iter().map(list).collect()
}

/// Asserts that a matrix on a device equals the reference's conversion.
#[track_caller]
pub(super) fn assert_same(what: &str, got: &DeviceMatrix, want: &HostMatrix) {
    let read = got.read().unwrap_or_else(|e| panic!("{what}: {e}"));
    let (layout, wanted) = (got.layout(), want.layout().unwrap());
    assert_eq!(layout.format, wanted.format, "{what}");
    assert_eq!((layout.rows, layout.cols, layout.entries), (wanted.rows, wanted.cols, wanted.entries), "{what}");
    let longest = if layout.format == Format::Csc { wanted.longest } else { want.to_csr().unwrap().analyse().longest };
    assert!(layout.longest >= longest, "{what}: {layout:?}, and the longest has {longest}");
    assert!(bits(&read) == bits(want), "{what}: {read:?} against {want:?}");
}

/// The matrix in every format.
fn sources(csr: &Csr) -> Vec<HostMatrix> {
    let of = HostMatrix::Csr(csr.clone());
    let mut all: Vec<_> = TARGETS.iter().map(|&to| spconvert(&of, to).unwrap()).collect();
    all.push(HostMatrix::Coo(shuffled(&csr.to_coo().unwrap())));
    let mut hybrid = csr.to_hybrid(1).unwrap();
    hybrid.coo = shuffled(&hybrid.coo);
    all.push(HostMatrix::Hybrid(hybrid));
    all
}

/// From every format to every other.
fn check(device: &Device, csr: &Csr) {
    for host in sources(csr) {
        let a = device.gpu.upload_matrix(&host).unwrap();
        for to in TARGETS {
            let what = format!("{}: {:?} to {to:?}", device.label, a.layout());
            let b = device.gpu.convert_matrix(&a, to).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_same(&what, &b, &spconvert(&host, to).unwrap());
        }
    }
}

#[test]
fn every_format_converts_to_every_other() {
    for device in devices() {
        check(device, &ragged(300, 170, 150));
        if device.main && all() {
            check(device, &arrow(150));
            check(device, &banded(400, 3));
            check(device, &uniform(200, 1000, 8));
            check(device, &lower_triangle(70));
        }
    }
}

#[test]
fn small_and_empty_matrices_convert_to_every_format() {
    for device in devices().iter().filter(|device| device.main) {
        let sizes = [(0, 0), (3, 40), (0, 5), (5, 0), (1, 1), (1, 70), (70, 1)];
        for &(rows, cols) in sample(&sizes, 2) {
            check(device, &uniform(rows, cols, 0));
            if rows.min(cols) > 0 {
                check(device, &uniform(rows, cols, 3));
            }
        }
        // One dense row among empty ones.
        check(device, &matrix(50, 90, |row, _| if row == 30 { (0..90).collect() } else { vec![] }));
    }
}

#[test]
fn many_tiles_and_wide_keys_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        // 17 bits of rows and 20 of columns.
        let csr = matrix(100_000, 1_000_000, |_, random| {
            let len = random.next() as usize % 4;
            any_columns(random, len, 1_000_000)
        });
        let coo = HostMatrix::Coo(shuffled(&csr.to_coo().unwrap()));
        let a = device.gpu.upload_matrix(&coo).unwrap();
        for to in [Target::Coo, Target::Csr, Target::Csc, Target::Sell { slice: 32, window: 1 << 20 }] {
            let b = device.gpu.convert_matrix(&a, to).unwrap();
            assert_same(&format!("{}: to {to:?}", device.label), &b, &spconvert(&coo, to).unwrap());
        }
        let csc = device.gpu.upload_matrix(&csr.to_csc().unwrap()).unwrap();
        let back = device.gpu.convert_matrix(&csc, Target::Csr).unwrap();
        assert_same(&device.label, &back, &HostMatrix::Csr(csr.to_csc().unwrap().to_csr().unwrap()));
    }
}

#[test]
fn values_keep_every_bit() {
    let Some(gpu) = gpu() else { return };
    let mut csr = uniform(40, 30, 5);
    let odd = [0x8000_0000, 1, 0x7f80_0001, 0xffc1_2345, 0x7f80_0000];
    for (value, bits) in csr.values.iter_mut().zip(odd.into_iter().cycle()) {
        *value = f32::from_bits(bits);
    }
    let host = HostMatrix::Csr(csr);
    let a = gpu.upload_matrix(&host).unwrap();
    for to in TARGETS {
        let want = spconvert(&host, to).unwrap();
        let b = gpu.convert_matrix(&a, to).unwrap();
        assert_same(&format!("{to:?}"), &b, &want);
        let back = gpu.convert_matrix(&b, Target::Csr).unwrap();
        assert_same(&format!("back from {to:?}"), &back, &HostMatrix::Csr(want.to_csr().unwrap()));
    }
}

#[test]
fn f16_values_convert_to_every_format() {
    for device in devices() {
        let csr = ragged(131, 60, 40);
        let round = |x: &f32| half::f16::from_f32(*x).to_f32();
        for host in sources(&csr) {
            let a = device.gpu.upload_matrix_f16(&host).unwrap();
            let rounded = a.read().unwrap();
            let values = host.to_csr().unwrap().values;
            assert_eq!(rounded.to_csr().unwrap().values, values.iter().map(round).collect::<Vec<_>>());
            assert_eq!(device.gpu.analyse_matrix(&a).unwrap(), host.to_csr().unwrap().analyse());
            for to in TARGETS {
                let what = format!("{}: {:?} to {to:?}", device.label, a.layout());
                let b = device.gpu.convert_matrix(&a, to).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(b.layout().values, DType::F16);
                assert_same(&what, &b, &spconvert(&rounded, to).unwrap());
            }
        }
    }
}

#[test]
fn a_plan_can_be_reused() {
    for device in devices() {
        let gpu = &device.gpu;
        let first = ragged(200, 300, 60);
        let mut second = first.clone();
        second.values.iter_mut().for_each(|value| *value += 1.0);
        for from in TARGETS {
            let host = |csr: &Csr| spconvert(&HostMatrix::Csr(csr.clone()), from).unwrap();
            let [a, other] = [&first, &second].map(|csr| gpu.upload_matrix(&host(csr)).unwrap());
            for to in [Target::Coo, Target::Csc, Target::Jds, Target::Sell { slice: 8, window: 64 }] {
                let what = format!("{}: {from:?} to {to:?}", device.label);
                let b = gpu.convert_matrix(&a, to).unwrap();
                let op = Spconvert::new(a.layout(), MatrixLayout { longest: b.layout().longest, ..b.layout() });
                let plan = op.window(64).plan::<f32>(gpu).unwrap();
                let mut rec = gpu.recorder();
                plan.record(&mut rec, &other, &b).unwrap();
                rec.submit().unwrap();
                assert_same(&what, &b, &spconvert(&host(&second), to).unwrap());
            }
        }
    }
}

#[test]
fn transposing_twice_is_the_identity() {
    let Some(gpu) = gpu() else { return };
    let csr = ragged(120, 90, 50);
    for host in sources(&csr) {
        let a = gpu.upload_matrix(&host).unwrap();
        let once = gpu.transpose_matrix(a).unwrap();
        let (layout, read) = (once.layout(), once.read().unwrap());
        assert_eq!((layout.rows, layout.cols), (90, 120));
        assert_eq!(layout.longest, read.layout().unwrap().longest, "{layout:?}");
        let csc = HostMatrix::Csc(host.to_csr().unwrap().to_csc().unwrap());
        let HostMatrix::Csr(want) = spconvert(&csc, Target::Csr).unwrap() else { panic!("no csr") };
        let sorted = |csr: Csr| csr.transposed().unwrap().transposed().unwrap();
        assert_eq!(sorted(read.to_csr().unwrap()), sorted(want.transposed().unwrap()), "{layout:?}");
        let twice = gpu.transpose_matrix(once).unwrap();
        assert_eq!(sorted(twice.read().unwrap().to_csr().unwrap()), sorted(host.to_csr().unwrap()), "{layout:?}");
    }
}

#[test]
fn duplicate_entries_are_summed_in_order() {
    for device in devices() {
        // 12 entries in 3 columns, so most positions repeat.
        for csr in [uniform(50, 3, 12), uniform(1, 1, 300), uniform(30, 50, 2), uniform(4, 4, 0)] {
            for host in sources(&csr) {
                let coo = host.to_csr().unwrap().to_coo().unwrap();
                let want = Csr::from_triplets(&coo, tilework::sparse::Duplicates::Sum).unwrap();
                let a = device.gpu.upload_matrix(&host).unwrap();
                let got = device.gpu.sum_duplicates(&a).unwrap();
                assert_same(&format!("{}: {:?}", device.label, a.layout()), &got, &HostMatrix::Csr(want));
            }
        }
    }
}

#[test]
fn runs_longer_than_one_dispatch_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        let csr = uniform(1, 1, 150_000);
        let want = Csr::from_triplets(&csr.to_coo().unwrap(), tilework::sparse::Duplicates::Sum).unwrap();
        let got = device.gpu.sum_duplicates(&device.gpu.upload_matrix(&csr).unwrap()).unwrap();
        assert_same(&device.label, &got, &HostMatrix::Csr(want));
    }
}

#[test]
fn statistics_match_the_host() {
    for device in devices() {
        let matrices = [
            ragged(500, 300, 200),
            arrow(150),
            banded(400, 3),
            lower_triangle(70),
            lower_triangle(60).transposed().unwrap(),
            uniform(0, 4, 0),
            uniform(4, 0, 0),
            uniform(1, 90, 9),
            // Squares above 32 bits, and squares whose sum exceeds 32 bits.
            matrix(3, 70_000, |row, _| if row == 1 { (0..70_000).collect() } else { vec![row] }),
            matrix(3, 50_000, |row, _| if row == 1 { vec![] } else { (0..50_000).collect() }),
        ];
        for csr in matrices {
            let a = device.gpu.upload_matrix(&csr).unwrap();
            let what = format!("{}: {:?}", device.label, a.layout());
            assert_eq!(device.gpu.analyse_matrix(&a).unwrap(), csr.analyse(), "{what}");
        }
        let jds = ragged(90, 80, 30).to_jds().unwrap();
        let a = device.gpu.upload_matrix(&jds).unwrap();
        assert_eq!(device.gpu.analyse_matrix(&a).unwrap(), jds.to_csr().unwrap().analyse());
    }
}

#[test]
fn matrices_convert_to_the_textbook_and_the_fastest_format() {
    let Some(gpu) = gpu() else { return };
    let mostly = |row: usize| if row == 7 { (0..500).collect() } else { vec![0, 3, row] };
    let matrices = [
        (banded(300, 2), "ell"),
        (lower_triangle(60), "jds"),
        (matrix(500, 500, |row, _| mostly(row)), "hybrid"),
        (matrix(50, 50, |row, _| if row % 4 == 0 { vec![1] } else { vec![] }), "coo"),
        (ragged(300, 300, 100), "csr"),
    ];
    for (csr, name) in matrices {
        let (a, statistics) = gpu.suit_matrix(&gpu.upload_matrix(&csr.to_csc().unwrap()).unwrap()).unwrap();
        assert_eq!(statistics, csr.analyse());
        assert_eq!(statistics.textbook_format().0, name);
        let fastest = statistics.format(gpu.profile()).0;
        let to = |name| match Target::named(name).unwrap() {
            Target::Hybrid { .. } => Target::Hybrid { width: Some(statistics.hybrid_width) },
            target => target,
        };
        let csr = HostMatrix::Csr(csr.to_csc().unwrap().to_csr().unwrap());
        assert_same(fastest, &a, &spconvert(&csr, to(fastest)).unwrap());
        let a = gpu.convert_matrix(&a, to(name)).unwrap();
        assert_same(name, &a, &spconvert(&csr, to(name)).unwrap());
    }
}

#[test]
fn unchecked_lists_stay_within_bounds() {
    let Some(gpu) = gpu() else { return };
    for (from, to) in small_layouts().into_iter().flat_map(|from| small_layouts().map(|to| (from, to))) {
        let plan = Spconvert::new(from, to).plan::<f32>(gpu).unwrap();
        run_on_wild_lists(gpu, &plan.into_executable());
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let lower = |op: &Spconvert| op.lower(&profile).map(drop);
    let from = ragged(100, 100, 10).layout().unwrap();
    let to = MatrixLayout { format: Format::Csc, ..from };
    refused(lower(&Spconvert::new(from, to).variant("copy")), ErrorKind::InvalidArgument, "radix");
    let fewer = MatrixLayout { entries: from.entries - 1, ..to };
    refused(lower(&Spconvert::new(from, fewer)), ErrorKind::Shape, "they must agree");
    let turned = MatrixLayout { rows: 99, ..to };
    refused(lower(&Spconvert::new(from, turned)), ErrorKind::Shape, "99 x 100");
    let sell = MatrixLayout { format: Format::Sell { slice: 4, places: 2000 }, ..from };
    refused(lower(&Spconvert::new(from, sell).window(0)), ErrorKind::InvalidArgument, "at least 1");
    let [no_rows, no_cols] = [MatrixLayout { rows: 0, ..from }, MatrixLayout { cols: 0, ..from }];
    refused(lower(&Spconvert::new(no_rows, no_rows)), ErrorKind::Shape, "do not fit");
    refused(lower(&Spconvert::new(no_cols, no_cols)), ErrorKind::Shape, "do not fit");
    let jds = MatrixLayout { longest: 0, format: Format::Jds, ..from };
    refused(lower(&Spconvert::new(from, jds)), ErrorKind::Shape, "rows of at most 0");
    // 64-bit keys that exceed the largest binding.
    let wide = MatrixLayout { cols: 1 << 24, rows: 1 << 20, entries: 20_000_000, longest: 99, ..from };
    let csc = MatrixLayout { format: Format::Csc, ..wide };
    refused(lower(&Spconvert::new(wide, csc)), ErrorKind::TooLarge, "keys need 160000000 bytes");
    let Some(gpu) = gpu() else { return };
    // One long row makes all rows long.
    let csr = matrix(200_000, 5000, |row, _| if row == 9 { (0..5000).collect() } else { vec![0] });
    let a = gpu.upload_matrix(&csr).unwrap();
    refused(gpu.convert_matrix(&a, Target::Ell).map(drop), ErrorKind::TooLarge, "4000000000 bytes");
    let sell = |slice, window| gpu.convert_matrix(&a, Target::Sell { slice, window }).map(drop);
    refused(sell(0, 4), ErrorKind::InvalidArgument, "slices of 0 rows");
    refused(sell(4, 0), ErrorKind::InvalidArgument, "windows of 0; both");
    refused(sell(200_000, 4), ErrorKind::TooLarge, "4000000000 bytes");
    let hybrid = gpu.convert_matrix(&a, Target::Hybrid { width: Some(5000) }).map(drop);
    refused(hybrid, ErrorKind::TooLarge, "4000000000 bytes");
    let small = gpu.upload_matrix(&banded(10, 1)).unwrap();
    let plan = Spconvert::new(small.layout(), small.layout()).plan::<f32>(gpu).unwrap();
    let csc = gpu.convert_matrix(&small, Target::Csc).unwrap();
    refused(plan.record(&mut gpu.recorder(), &small, &csc), ErrorKind::Shape, "stored as csc");
    refused(plan.record(&mut gpu.recorder(), &small, &small), ErrorKind::Aliasing, "one wgpu buffer");
    let other = gpu.upload_matrix(&banded(11, 1)).unwrap();
    refused(plan.record(&mut gpu.recorder(), &small, &other), ErrorKind::Shape, "the matrix is 11 x 11");
    let coo = gpu.upload_matrix(&banded(10, 1).to_coo().unwrap()).unwrap();
    let mut into = gpu.upload_matrix(&banded(11, 1).to_coo().unwrap()).unwrap();
    refused(gpu.insert_entries(&mut into, &coo), ErrorKind::Shape, "10 x 10 into 11 x 11");
    let mut into = gpu.upload_matrix(&banded(10, 1)).unwrap();
    refused(gpu.insert_entries(&mut into, &small), ErrorKind::Shape, "new entries are coordinates");
    refused(gpu.insert_entries(&mut into, &coo), ErrorKind::InvalidArgument, "no room for new entries");
    let halves = gpu.upload_matrix_f16(&banded(10, 1).to_coo().unwrap()).unwrap();
    refused(gpu.sum_duplicates(&halves).map(drop), ErrorKind::Unsupported, "values is f16");
    let mut into = gpu.upload_matrix(&banded(10, 1).to_coo().unwrap()).unwrap();
    refused(gpu.insert_entries(&mut into, &halves), ErrorKind::InvalidArgument, "of f16 into a matrix of f32");
    refused(lower(&Spconvert::new(from, MatrixLayout { values: DType::F16, ..to })), ErrorKind::Shape, "of f16");
}

#[test]
fn a_matrix_of_device_buffers_equals_the_uploaded_one() {
    let Some(gpu) = gpu() else { return };
    for source in sources(&ragged(40, 30, 20)) {
        let uploaded = gpu.upload_matrix(&source).unwrap();
        let shared = DeviceMatrix::from_lists(uploaded.layout(), uploaded.lists().to_vec()).unwrap();
        assert_same("shared", &shared, &source);
        // What is written to a buffer later is in both.
        for list in uploaded.lists() {
            if let DeviceList::Values(values) = list {
                let ones = gpu.upload(&vec![1.0f32; values.len()]).unwrap();
                gpu.axpy(1.0, &ones, values).unwrap();
            }
        }
        let both = [&shared, &uploaded].map(|a| bits(&a.read().unwrap()));
        assert!(both[0] == both[1] && both[0] != bits(&source));
        let of = |layout: MatrixLayout, lists: &[DeviceList]| {
            DeviceMatrix::from_lists(layout, lists.to_vec()).map(|_| ()).map_err(|e| e.kind())
        };
        let (layout, lists) = (uploaded.layout(), uploaded.lists());
        assert_eq!(of(layout, &lists[1..]), Err(ErrorKind::Shape));
        assert_eq!(of(MatrixLayout { values: DType::F16, ..layout }, lists), Err(ErrorKind::Shape));
        let mut swapped = lists.to_vec();
        swapped.reverse();
        assert_eq!(of(layout, &swapped), Err(ErrorKind::Shape));
        let longer = MatrixLayout { rows: layout.rows + 100, cols: layout.cols + 100, entries: 9999, ..layout };
        assert_eq!(of(longer, lists), Err(ErrorKind::Shape));
    }
}
