//! The block level: fragments of a workgroup, each imported by a small kernel, on the device and in the simulator.

use crate::support::gpu;
use tilework::gpu::Arg;
use tilework::sim::{Options, run_wgsl};

/// Workgroups of each launch.
const WORKGROUPS: u32 = 3;

/// Words that every test starts from.
fn words(n: usize) -> Vec<u32> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u32
    };
    (0..n).map(|_| next()).collect()
}

/// Runs a kernel with arrays of u32 `input` and `output` and `body`, and compares its output with `wanted`.
fn check(name: &str, declarations: &str, body: &str, size: u32, input: &[u32], wanted: &[u32]) {
    let text = format!(
        "const WORKGROUP_SIZE: u32 = {size}u;
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
{declarations}
@compute @workgroup_size(WORKGROUP_SIZE)
fn test(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let at = group.x * WORKGROUP_SIZE + lane;
{body}
}}"
    );
    let grid = [WORKGROUPS, 1, 1];
    let mut buffers = vec![bytemuck::cast_slice(input).to_vec(), vec![0u8; size_of_val(wanted)]];
    run_wgsl(name, &text, "test", grid, &mut buffers, &Options::default()).unwrap();
    let simulated: Vec<u32> = bytemuck::pod_collect_to_vec(&buffers[1]);
    assert_eq!(simulated, wanted, "{name} of {size} in the simulator");
    let Some(gpu) = gpu() else { return };
    if size > gpu.profile().limits.max_invocations {
        return;
    }
    let (x, y) = (gpu.upload(input).unwrap(), gpu.alloc_zeroed::<u32>(wanted.len()).unwrap());
    let kernel = gpu.kernel(name, &text, "test").unwrap();
    let mut rec = gpu.recorder();
    kernel.record(&mut rec, &[Arg::from(&x), Arg::from(&y)], grid).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), wanted, "{name} of {size} on {}", gpu.profile().name);
}

/// A kernel that writes one word per thread, for workgroup sizes that are powers of two and, if `any`, others.
fn check_lanes(name: &str, any: bool, declarations: &str, body: &str, wanted: impl Fn(&[u32]) -> Vec<u32>) {
    for size in [1u32, 2, 7, 32, 100, 128, 256] {
        if !any && !size.is_power_of_two() {
            continue;
        }
        let input = words((WORKGROUPS * size) as usize);
        let all: Vec<u32> = input.chunks(size as usize).flat_map(&wanted).collect();
        check(name, declarations, body, size, &input, &all);
    }
}

/// x, then y: a product of 2 x 2 matrices in a word, which is associative and does not commute.
const AFFINE: &str = "alias Acc = vec2<u32>;
fn op_identity() -> Acc { return vec2(1u, 0u); }
fn op_combine(a: Acc, b: Acc) -> Acc { return vec2(a.x * b.x, a.y * b.x + b.y); }";

fn affine(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
    [a[0].wrapping_mul(b[0]), a[1].wrapping_mul(b[0]).wrapping_add(b[1])]
}

fn of_word(x: u32) -> [u32; 2] {
    [x, x >> 3]
}

#[test]
fn reduce_keeps_order_and_returns_the_result_to_every_lane() {
    let declarations = format!("#import workgroup/reduce\n{AFFINE}");
    let body = "    let x = vec2(input[at], input[at] >> 3u);
    let all = workgroup_reduce(x, lane);
    let again = workgroup_reduce(all, lane);
    output[at] = all.y ^ again.x ^ lane;";
    check_lanes("reduce", true, &declarations, body, |block| {
        let reduce = |all: &mut dyn Iterator<Item = [u32; 2]>| all.fold([1, 0], affine);
        let all = reduce(&mut block.iter().copied().map(of_word));
        let again = reduce(&mut block.iter().map(|_| all));
        (0..block.len() as u32).map(|lane| all[1] ^ again[0] ^ lane).collect()
    });
}

#[test]
fn a_branch_may_depend_on_the_result_of_reduce() {
    let declarations = "#import op/add as op\n#import workgroup/reduce\nalias Acc = u32;";
    let body = "    var all = workgroup_reduce(input[at] & 1u, lane);
    if all > 0u { all = workgroup_reduce(all, lane); }
    output[at] = all;";
    check_lanes("branch", true, declarations, body, |block| {
        let odd = block.iter().filter(|x| *x % 2 == 1).count() as u32;
        vec![odd * block.len() as u32; block.len()]
    });
}

#[test]
fn scan_returns_exclusive_inclusive_and_total() {
    let declarations = format!("#import workgroup/scan\n{AFFINE}");
    let body = "    let x = vec2(input[at], input[at] >> 3u);
    let once = workgroup_scan(x, lane);
    let twice = workgroup_scan(once.through, lane);
    output[at] = once.before.y ^ once.through.x * 3u ^ once.total.y * 5u ^ twice.before.y * 7u;";
    check_lanes("scan", true, &declarations, body, |block| {
        let scan = |items: &[[u32; 2]]| {
            let through = items.iter().scan([1, 0], |sum, x| {
                *sum = affine(*sum, *x);
                Some(*sum)
            });
            through.collect::<Vec<_>>()
        };
        let items: Vec<_> = block.iter().copied().map(of_word).collect();
        let once = scan(&items);
        let twice = scan(&once);
        let before = |all: &[[u32; 2]], lane: usize| if lane == 0 { [1, 0] } else { all[lane - 1] };
        let total = once.last().unwrap()[1];
        let lanes = 0..block.len();
        let word = |lane| {
            before(&once, lane)[1]
                ^ once[lane][0].wrapping_mul(3)
                ^ total.wrapping_mul(5)
                ^ before(&twice, lane)[1].wrapping_mul(7)
        };
        lanes.map(word).collect()
    });
}

#[test]
fn radix_rank_is_the_position_in_a_stable_sort() {
    let declarations = "#import workgroup/radix_rank";
    let body = "    let first = workgroup_radix_rank(input[at] & 15u, lane);
    output[at] = first * 65536u + workgroup_radix_rank(input[at] >> 4u & 15u, lane);";
    check_lanes("radix_rank", true, declarations, body, |block| {
        let ranks = |digit: &dyn Fn(u32) -> u32| {
            let mut order: Vec<_> = (0..block.len()).collect();
            order.sort_by_key(|lane| digit(block[*lane]));
            let mut ranks = vec![0u32; block.len()];
            order.iter().enumerate().for_each(|(rank, lane)| ranks[*lane] = rank as u32);
            ranks
        };
        let (low, high) = (ranks(&|x| x & 15), ranks(&|x| x >> 4 & 15));
        low.iter().zip(high).map(|(a, b)| a * 65536 + b).collect()
    });
}

/// Keys with the lane that they come from, so that the order is total.
const ENTRIES: &str = "alias Entry = vec2<u32>;
fn goes_before(a: Entry, b: Entry) -> bool { return a.x < b.x || a.x == b.x && a.y < b.y; }";

#[test]
fn sort_small_sorts_keys_with_values() {
    let declarations = format!("#import workgroup/sort_small\n{ENTRIES}");
    let body = "    let once = workgroup_sort(vec2(input[at] % 50u, lane), lane);
    let back = workgroup_sort(vec2(once.y, once.x), lane);
    output[at] = once.x * 65536u + once.y + back.y * 1024u;";
    check_lanes("sort_small", false, &declarations, body, |block| {
        let mut entries: Vec<_> = block.iter().enumerate().map(|(lane, x)| (x % 50, lane as u32)).collect();
        entries.sort_unstable();
        entries.iter().zip(block).map(|(e, x)| e.0 * 65536 + e.1 + x % 50 * 1024).collect()
    });
}

#[test]
fn top_k_small_keeps_the_first_and_merges_tiles() {
    for k in [1usize, 2, 8, 32, 64] {
        let declarations = format!("#import workgroup/top_k_small\nconst TOP_K: u32 = {k}u;\n{ENTRIES}");
        // Two tiles of a workgroup: its words, and their complements in 24 bits.
        let body = "    let first = workgroup_top_k(vec2(input[at] % 1000u, lane), lane);
    let second = workgroup_top_k(vec2(999u - input[at] % 1000u, WORKGROUP_SIZE + lane), lane);
    let both = workgroup_top_k_joined(first, second, lane);
    output[at] = select(0u, both.x * 65536u + both.y * 64u + first.y % 64u, lane < TOP_K);";
        for size in [64u32, 256] {
            let input = words((WORKGROUPS * size) as usize);
            let wanted = input.chunks(size as usize).flat_map(|block| {
                let n = block.len() as u32;
                let entries = |of: &dyn Fn(u32) -> u32, begin: u32| {
                    let all = block.iter().zip(begin..).map(|(x, i)| (of(x % 1000), i));
                    all.collect::<Vec<_>>()
                };
                let mut first = entries(&|x| x, 0);
                let mut both = [first.clone(), entries(&|x| 999 - x, n)].concat();
                first.sort_unstable();
                both.sort_unstable();
                let word = |lane: usize| both[lane].0 * 65536 + both[lane].1 * 64 + first[lane].1 % 64;
                (0..block.len()).map(|lane| if lane < k { word(lane) } else { 0 }).collect::<Vec<_>>()
            });
            let wanted: Vec<u32> = wanted.collect();
            check("top_k_small", &declarations, body, size, &input, &wanted);
        }
    }
}

#[test]
fn top_k_small_joins_lists() {
    // Five entries of each thread; all of one thread are among the first.
    const EACH: u32 = 5;
    let body = format!(
        "    var list: array<Entry, TOP_K>;
    for (var i = 0u; i < TOP_K; i++) {{ list[i] = vec2(~0u, ~0u); }}
    for (var j = 0u; j < {EACH}u; j++) {{
        let own = select(input[at] % 1000u * (j + 1u) % 1009u, 0u, lane == 3u);
        top_k_insert(&list, vec2(own, lane + j * WORKGROUP_SIZE));
    }}
    let best = workgroup_top_k_of_lists(&list, lane);
    output[at] = select(0u, best.x * 65536u + best.y, lane < TOP_K);"
    );
    for k in [1usize, 2, 8, 64] {
        let declarations = format!("#import workgroup/top_k_small\nconst TOP_K: u32 = {k}u;\n{ENTRIES}");
        for size in [64u32, 256] {
            let input = words((WORKGROUPS * size) as usize);
            let wanted = input.chunks(size as usize).flat_map(|block| {
                let entry = |lane: usize, j: u32| {
                    let own = if lane == 3 { 0 } else { block[lane] % 1000 * (j + 1) % 1009 };
                    (own, lane as u32 + j * size)
                };
                let mut all: Vec<_> =
                    (0..block.len()).flat_map(|lane| (0..EACH).map(move |j| entry(lane, j))).collect();
                all.sort_unstable();
                (0..block.len()).map(|i| if i < k { all[i].0 * 65536 + all[i].1 } else { 0 }).collect::<Vec<_>>()
            });
            let wanted: Vec<u32> = wanted.collect();
            check("top_k_small", &declarations, &body, size, &input, &wanted);
        }
    }
}

#[test]
fn histogram_counts_and_skips_values_without_a_bin() {
    let declarations = "#import workgroup/histogram\nconst BINS: u32 = 40u;";
    let body = "    for (var round = 0u; round < 2u; round++) {
        histogram_clear(lane);
        histogram_add(input[at] % 50u);
        if input[at] % 3u == 0u { histogram_add(input[at] % 7u); }
        workgroupBarrier();
        for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) {
            output[(2u * group.x + round) * BINS + bin] = histogram_count(bin);
        }
    }";
    for size in [1u32, 64, 100, 256] {
        let input = words((WORKGROUPS * size) as usize);
        let wanted = input.chunks(size as usize).flat_map(|block| {
            let mut counts = [0u32; 50];
            for x in block {
                counts[(x % 50) as usize] += 1;
                counts[(x % 7) as usize] += u32::from(x % 3 == 0);
            }
            [&counts[..40], &counts[..40]].concat()
        });
        let wanted: Vec<u32> = wanted.collect();
        check("histogram", declarations, body, size, &input, &wanted);
    }
}

#[test]
fn tiles_load_blocked_and_store_in_place_or_scattered() {
    let items = 5u32;
    let declarations = format!(
        "#import workgroup/load_tile\n#import workgroup/store_tile
alias T = u32;
const ITEMS_PER_THREAD: u32 = {items}u;
fn load_element(at: u32) -> T {{ return input[at]; }}
fn store_element(at: u32, x: T) {{ output[at] = x; }}"
    );
    // Adds its number in the tile to each element, then reverses the tile; `end` cuts the last one.
    let body = "    let first = group.x * WORKGROUP_SIZE * ITEMS_PER_THREAD;
    let tile = WORKGROUP_SIZE * ITEMS_PER_THREAD;
    var items = load_tile(first, arrayLength(&input), 77u, lane);
    var places: array<u32, ITEMS_PER_THREAD>;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let number = lane * ITEMS_PER_THREAD + i;
        items[i] += number;
        places[i] = tile - 1u - number;
    }
    store_tile(first, arrayLength(&output), scatter_to_blocked(items, places, lane), lane);";
    for size in [1u32, 32, 100, 256] {
        let tile = (size * items) as usize;
        let input = words(WORKGROUPS as usize * tile - 3);
        let all: Vec<u32> = input.iter().copied().chain([77; 3]).collect();
        let reversed = all.chunks(tile).flat_map(|tile| {
            let numbered = tile.iter().zip(0..).map(|(x, i)| x + i);
            numbered.collect::<Vec<u32>>().into_iter().rev()
        });
        let wanted: Vec<u32> = reversed.take(input.len()).collect();
        check("tiles", &declarations, body, size, &input, &wanted);
    }
}

#[test]
fn philox_makes_the_words_and_numbers_of_the_op() {
    use tilework::prelude::*;
    use tilework::reference::{random_floats, random_words};
    let body = "    let x = philox(vec4(at, input[at], 3u, 0u), vec2(9u, 0u));
    let pair = random_normal(x.x, x.y);
    output[at] = x.x ^ x.y ^ x.z ^ x.w;
    output[at + 3u * WORKGROUP_SIZE] = bitcast<u32>(random_uniform(x.z));
    output[at + 6u * WORKGROUP_SIZE] = u32(16.0 * (pair.x + 16.0)) + (u32(16.0 * (pair.y + 16.0)) << 16u);";
    let threads = (WORKGROUPS * 64) as usize;
    let random = |distribution| Random::new(distribution, 4 * threads).seed(9).stream(3);
    let words = random_words(&random(Distribution::Bits));
    let floats = random_floats(&random(Distribution::Uniform)).0;
    let normal = random_floats(&random(Distribution::Normal { mean: 0.0, deviation: 1.0 })).0;
    let cell = |x: f64| (16.0 * (x + 16.0)) as u32;
    let mixed = words.chunks(4).map(|x| x.iter().fold(0, |all, x| all ^ x));
    let third = floats.chunks(4).map(|x| (x[2] as f32).to_bits());
    let pairs = normal.chunks(4).map(|z| cell(z[0]) + (cell(z[1]) << 16));
    let wanted: Vec<u32> = mixed.chain(third).chain(pairs).collect();
    check("philox", "#import op/philox", body, 64, &vec![0; threads], &wanted);
}
