//! The predictions of the guide `shards`: its table is computed here, and the formulas are compared with the clocks of
//! ranks that count messages.

use std::fs;
use std::path::Path;
use tilework::program::DeviceProfile;
use tilework::shard::{Link, Model, Prediction, grid, part, schedule};

const BEGIN: &str = "<!-- predictions -->\n";
const END: &str = "<!-- end -->\n";

fn h100(link: Link) -> Prediction {
    Prediction { device: DeviceProfile::h100().ceilings.unwrap(), link }
}

/// Up to 8 devices share NVLink; more go through the network.
fn on(p: usize) -> Prediction {
    h100(if p <= 8 { Link::NVLINK4 } else { Link::NDR })
}

/// A cell: the time on `p` devices, and how much faster that is than on one (strong scaling), or the share of one
/// device's time (weak scaling, of `grown` work).
fn cell(p: usize, strong: f64, one: f64, grown: f64) -> String {
    let time = match strong {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    };
    if p == 1 {
        return time;
    }
    let gain = one / strong;
    let gain = if gain < 9.95 { format!("{gain:.1}") } else { format!("{gain:.0}") };
    format!("{time}, {gain} x, {:.0} %", 100.0 * one / grown)
}

fn table() -> String {
    let mut text = String::from(
        "| devices | all-reduce of 1 GiB | product of 32768^2 | sort of 2^31 keys | CG on 400^3, an iteration |\n|---|---|---|---|---|\n",
    );
    let one = on(1);
    for p in [1usize, 2, 4, 8, 64, 512, 1000] {
        let m = on(p);
        let scaled = |n: f64, power: f64| (n * (p as f64).powf(power)) as usize;
        let reduce = match p {
            1 => "-".into(),
            _ => format!("{:.1} ms", 1e3 * m.all_reduce(p, (1u64 << 30) as f64)),
        };
        let gemm = cell(p, m.gemm(p, 1 << 15), one.gemm(1, 1 << 15), m.gemm(p, scaled(32768.0, 1.0 / 3.0)));
        let sort = cell(p, m.sort(p, 1 << 31), one.sort(1, 1 << 31), m.sort(p, p << 31));
        let cg = cell(p, m.cg_iteration(p, 400), one.cg_iteration(1, 400), m.cg_iteration(p, scaled(400.0, 1.0 / 3.0)));
        text += &format!("| {p} | {reduce} | {gemm} | {sort} | {cg} |\n");
    }
    text
}

#[test]
fn the_guides_table_is_what_the_formulas_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guides/shards.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let want = table();
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(&path, [before, BEGIN, &want, END, after].concat()).unwrap();
    } else {
        assert_eq!(found, want, "run this test with UPDATE_README=1");
    }
}

/// A ring of any size that the rest of the world cannot hold: the clocks of 4 to 64 ranks.
#[test]
fn formulas_agree_with_ranks_that_count() {
    for link in [Link::NVLINK4, Link::NDR, Link::HOST] {
        let predicted = h100(link);
        for p in [4, 8, 16, 32, 64] {
            // The exchange of a sort, evenly cut.
            let n = 1 << 24;
            let mut model = Model::new(p, link);
            let each = part(n, p, 0).len() / p;
            let ranges: Vec<_> = (0..p).map(|i| i * each..(i + 1) * each).collect();
            model.run(4, |rank| schedule::all_to_all(rank, &ranges, &ranges)).unwrap();
            let counted = model.counted();
            assert_eq!(counted.messages, (p * (p - 1)) as u64);
            assert_eq!(counted.most_bytes, (4 * each * (p - 1)) as u64);
            let bytes = (4 * each * (p - 1)) as f64;
            // Messages of a rank leave one after another, and their latencies overlap.
            assert!(counted.seconds <= link.latency * (p as f64 - 1.0) + 1.01 * bytes / link.bandwidth);
            assert!(counted.seconds >= link.latency + 0.99 * bytes / link.bandwidth);
            // An iteration of conjugate gradients: planes to both neighbours, and an all-reduce of two numbers.
            let side = 128;
            let plane = side * side;
            let mut model = Model::new(p, link);
            model
                .run(4, |rank| {
                    let neighbours = [rank.checked_sub(1), (rank + 1 < p).then_some(rank + 1)];
                    let sends = neighbours.iter().flatten().map(|&to| schedule::Step::Send { to, range: 0..plane });
                    let takes = neighbours.iter().flatten().map(|&from| schedule::Step::Receive {
                        from,
                        range: 0..plane,
                        combine: false,
                    });
                    sends.chain(takes).collect()
                })
                .unwrap();
            assert_eq!(model.counted().messages, 2 * (p as u64 - 1));
            model.run(4, |rank| schedule::all_reduce(rank, p, 2, 4)).unwrap();
            let counted = model.counted();
            assert_eq!(counted.messages, 4 * (p as u64 - 1));
            let halo = link.latency + 2.0 * 4.0 * plane as f64 / link.bandwidth;
            let formula = halo + predicted.all_reduce(p, 8.0);
            assert!((counted.seconds - formula).abs() < 0.05 * formula, "{p}: {} and {formula}", counted.seconds);
        }
    }
}

/// The blocks that SUMMA moves: each rank sends its blocks to the others of its row and column.
#[test]
fn blocks_of_a_product_are_counted() {
    for p in [4usize, 6, 16, 64] {
        let [rows, columns] = grid(p);
        let (n, link) = (1024, Link::NVLINK4);
        let block = n * n / p;
        let mut model = Model::new(p, link);
        let steps = |mates: &[usize]| {
            let sends = mates.iter().map(|&to| schedule::Step::Send { to, range: 0..block });
            let takes = mates.iter().map(|&from| schedule::Step::Receive { from, range: 0..block, combine: false });
            sends.chain(takes).collect::<Vec<_>>()
        };
        let of_row = |r: usize| (0..columns).map(|c| r / columns * columns + c).filter(|&o| o != r).collect::<Vec<_>>();
        let of_column = |r: usize| (0..rows).map(|i| i * columns + r % columns).filter(|&o| o != r).collect::<Vec<_>>();
        model.run(4, |rank| steps(&of_row(rank))).unwrap();
        model.run(4, |rank| steps(&of_column(rank))).unwrap();
        let counted = model.counted();
        assert_eq!(counted.messages, (p * (rows + columns - 2)) as u64);
        assert_eq!(counted.most_bytes, (4 * block * (rows + columns - 2)) as u64);
        // The formula waits for each message; here only bytes queue.
        let most = (rows + columns - 2) as f64 * (link.latency + 4.0 * block as f64 / link.bandwidth);
        assert!(counted.seconds <= 1.01 * most, "{p}");
    }
}
