// Batch norm in training, with GRADIENTS its gradients, in one pass over memory. A workgroup holds a tile of a channel
// in registers, ITEMS a thread. With SEVERAL tiles a channel, workgroups take tiles in turn until none is left. Each
// posts the statistics of a tile, and waits for those of the other tiles of its channel when it has posted the next.
// After SPINS reads of a missing post it finds that tile's statistics itself, so that no workgroup depends on another's
// progress (T. Smith, R. Levien, J. D. Owens, Decoupled Fallback, 2025). A word of a post is its value and, unless 0,
// the sign that it is there. Requires at most WORKGROUP_SIZE tiles a channel.
#import nn/items
#import nn/batch_norm_train_params
#import activation/none as activation

const ITEMS: u32 = 8u;
const BLOCK: u32 = WORKGROUP_SIZE * ITEMS;
const SPINS: u32 = 128u;
// Maximum tiles of a workgroup.
const TAKES: u32 = 8u;

@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read> gamma: array<f32>;
#if GRADIENTS
@group(0) @binding(3) var<storage, read> gradients: array<Item>;
@group(0) @binding(4) var<storage, read_write> output: array<Item>;
@group(0) @binding(5) var<storage, read_write> dgamma: array<f32>;
@group(0) @binding(6) var<storage, read_write> dbeta: array<f32>;
const POST_WORDS: u32 = 4u;
#else
@group(0) @binding(3) var<storage, read> beta: array<f32>;
const OUTPUT_BINDING: u32 = 4u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<Item>;
#if IN_PLACE
@group(0) @binding(4) var<storage, read_write> running_mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> running_variance: array<f32>;
#else
#if RUNNING
#if !SEVERAL
@group(0) @binding(4) var<storage, read> running_mean: array<f32>;
@group(0) @binding(5) var<storage, read> running_variance: array<f32>;
#endif
const MEAN_BINDING: u32 = OUTPUT_BINDING + 1u;
const VARIANCE_BINDING: u32 = OUTPUT_BINDING + 2u;
@group(0) @binding(MEAN_BINDING) var<storage, read_write> new_running_mean: array<f32>;
@group(0) @binding(VARIANCE_BINDING) var<storage, read_write> new_running_variance: array<f32>;
#endif
#endif
const POST_WORDS: u32 = 2u;
#endif

// Of a tile or channel: mean, sum of squared differences from it and, with GRADIENTS, the sums of dy and of dy times
// the difference.
alias Moments = vec4<f32>;

const LINES: u32 = WORKGROUP_SIZE / 16u;
var<workgroup> wg_sums: array<vec4<f32>, WORKGROUP_SIZE>;
var<workgroup> wg_lines: array<vec4<f32>, 16>;

// The total of all threads, for all of them.
fn workgroup_total(lane: u32, own: vec4<f32>) -> vec4<f32> {
    wg_sums[lane] = own;
    workgroupBarrier();
    if lane < 16u {
        var sum = wg_sums[lane];
#for i in 1..LINES
        sum += wg_sums[lane + {16 * i}u];
#end
        wg_lines[lane] = sum;
    }
    workgroupBarrier();
    var total = wg_lines[0];
#for i in 1..16
    total += wg_lines[{i}];
#end
    return total;
}

fn total(x: Item) -> f32 {
#if VECTORS
    return (x.x + x.y) + (x.z + x.w);
#else
    return x;
#endif
}

// Where an item lies: its place in its plane, and in memory.
struct Place { column: u32, at: u32 }

fn place_of(channel: u32, item: u32) -> Place {
    let len = params.len / WIDTH;
    let column = item % len;
    return Place(column, params.origin / WIDTH + (item / len * params.channels + channel) * len + column);
}

// The place of the item WORKGROUP_SIZE further.
fn next(place: Place) -> Place {
    let len = params.len / WIDTH;
    let planes = WORKGROUP_SIZE / len;
    let step = WORKGROUP_SIZE % len;
    let wraps = place.column + step >= len;
    let column = place.column + step - select(0u, len, wraps);
    let further = (planes + u32(wraps)) * params.channels * len;
    return Place(column, place.at + further + column - place.column);
}

// The moments of a tile of `count` elements: `sums` are the mean of its differences from `center`, and the sums of
// their squares, of dy and of its products with them.
fn moments_of(center: f32, sums: vec4<f32>, count: f32) -> Moments {
    let shift = sums.x;
    let squares = sums.y - count * shift * shift;
    // Not max, which would drop NaN.
    return Moments(center + shift, select(squares, 0.0, squares < 0.0), sums.z, sums.w - sums.z * shift);
}

// Adds an item's terms to the sums.
#block add_terms(sums, x, gradient)
    {
        let apart = {x} - Item(center);
#if GRADIENTS
        let g = {gradient};
        {sums} += vec4(share * total(apart), total(apart * apart), total(g), total(g * apart));
#else
        {sums} += vec4(share * total(apart), total(apart * apart), 0.0, 0.0);
#endif
    }
#end

// Writes the result of an item.
#block write(at, x, gradient)
    {
        let apart = {x} - Item(moments.x);
#if GRADIENTS
        output[{at}] = factor * ({gradient} - (apart * slope + Item(level)));
#else
        let y = four(apart * factor + Item(shift));
#if VECTORS
        output[{at}] = vec4(activate(y.x), activate(y.y), activate(y.z), activate(y.w));
#else
        output[{at}] = activate(y.x);
#endif
#endif
    }
#end

fn elements_of(part: u32) -> f32 {
    let all = params.images * (params.len / WIDTH);
    return f32((min((part + 1u) * BLOCK, all) - part * BLOCK) * WIDTH);
}

#if SEVERAL
const POSTS_BINDING: u32 = 5u;
@group(0) @binding(POSTS_BINDING) var<storage, read_write> posts: array<atomic<u32>>;

// A value of these bits is never posted, which is right, if slow.
const SPARE: u32 = 0xffa5c3e1u;
const NONE: u32 = 0xffffffffu;

// The nearest tile that is missing, or NONE.
var<workgroup> wg_missing: atomic<u32>;
var<workgroup> wg_blocked: u32;
// The mean of the first tile.
var<workgroup> wg_center: f32;
var<workgroup> wg_tile: u32;

// The first word counts the tiles taken.
fn word_place(channel: u32, part: u32, k: u32) -> u32 {
    return 1u + (k * params.channels + channel) * params.parts + part;
}

fn post(channel: u32, part: u32, moments: Moments) {
#for k in POST_WORDS
    atomicStore(&posts[word_place(channel, part, {k}u)], bitcast<u32>(moments[{k}]) ^ SPARE);
#end
}

#if LEAVING_OUT
// For tests: every other tile posts nothing, as if its workgroup had been stopped.
fn posts_are_made(part: u32) -> bool { return part % 2u == 0u; }
#else
fn posts_are_made(part: u32) -> bool { return true; }
#endif

// The moments of any tile, read from memory. Not unrolled, since it is rarely wanted and would take registers.
fn read_moments(channel: u32, part: u32, lane: u32) -> Moments {
    let end = min((part + 1u) * BLOCK, params.images * (params.len / WIDTH));
    let first = place_of(channel, part * BLOCK + lane);
    var place = first;
    let count = elements_of(part);
    let share = 1.0 / count;
    var sum = 0.0;
    for (var i = part * BLOCK + lane; i < end; i += WORKGROUP_SIZE) {
        sum += total(share * input[place.at]);
        place = next(place);
    }
    let center = workgroup_total(lane, vec4(sum, 0.0, 0.0, 0.0)).x;
    place = first;
    var sums = vec4(0.0);
    for (var i = part * BLOCK + lane; i < end; i += WORKGROUP_SIZE) {
#put add_terms(sums, input[place.at], gradients[place.at])
        place = next(place);
    }
    return moments_of(center, workgroup_total(lane, sums), count);
}

// Takes the next tile, unless this workgroup has taken its share.
fn take(lane: u32, taken: u32) {
    if lane == 0u {
        wg_tile = NONE;
        if taken < TAKES {
            wg_tile = atomicAdd(&posts[0], 1u);
        }
    }
}

// What a lane waits for: the moments of the tile of its number.
struct Awaited { ready: bool, moments: Moments }

// Waits for the tiles of a channel. Returns NONE or one that is missing; each workgroup begins with those behind its
// own, so that they share the work.
fn await_posts(channel: u32, part: u32, lane: u32, awaited: ptr<function, Awaited>) -> u32 {
    for (var spins = 0u; !(*awaited).ready && spins <= SPINS; spins++) {
#for k in POST_WORDS
        let word_{k} = atomicLoad(&posts[word_place(channel, lane, {k}u)]);
        (*awaited).moments[{k}] = bitcast<f32>(word_{k} ^ SPARE);
#end
        (*awaited).ready = word_0 != 0u && word_1 != 0u;
#if GRADIENTS
        (*awaited).ready = (*awaited).ready && word_2 != 0u && word_3 != 0u;
#endif
    }
    if lane == 0u {
        wg_center = (*awaited).moments.x;
    }
    if !(*awaited).ready {
        atomicMin(&wg_missing, (lane + params.parts - part) % params.parts);
    }
    workgroupBarrier();
    if lane == 0u {
        wg_blocked = atomicLoad(&wg_missing);
        atomicStore(&wg_missing, NONE);
    }
    let blocked = workgroupUniformLoad(&wg_blocked);
    return select((blocked + part) % params.parts, NONE, blocked == NONE);
}

// The moments of a channel from those of its tiles. All workgroups take the same steps, and get the same bits.
fn join_tiles(lane: u32, found: Moments) -> Moments {
    let counts = lane < params.parts;
    let elements = elements_of(min(lane, params.parts - 1u));
    let center = wg_center;
    let shift = select(0.0, elements / params.count * (found.x - center), counts);
    let mean = center + workgroup_total(lane, vec4(shift, 0.0, 0.0, 0.0)).x;
    let apart = found.x - mean;
    let terms = vec4(0.0, found.y + elements * apart * apart, found.z, found.w + apart * found.z);
    return Moments(mean, workgroup_total(lane, select(vec4(0.0), terms, counts)).yzw);
}

// The moments of a channel, whoever finds those of its tiles.
fn channel_moments(channel: u32, part: u32, lane: u32) -> Moments {
    var awaited = Awaited(lane >= params.parts, Moments());
    loop {
        let tile = await_posts(channel, part, lane, &awaited);
        if tile == NONE {
            break;
        }
        let read = read_moments(channel, tile, lane);
        if lane == tile {
            post(channel, tile, read);
            awaited = Awaited(true, read);
        }
    }
    return join_tiles(lane, awaited.moments);
}
#endif

// The variables of a tile.
#block declare(tile)
#for i in ITEMS
    var {tile}_x_{i} = Item();
#if GRADIENTS
    var {tile}_g_{i} = Item();
#endif
#end
#end

// Loads a part of a channel. Loads past the end read an item of the tile.
#block load()
    let begin = part * BLOCK + lane;
    let end = min((part + 1u) * BLOCK, params.images * (params.len / WIDTH));
    let lowest = place_of(channel, min(begin, end - 1u));
    var place = lowest;
#for i in ITEMS
    if begin + {i}u * WORKGROUP_SIZE >= end {
        place = lowest;
    }
    new_x_{i} = input[place.at];
#if GRADIENTS
    new_g_{i} = gradients[place.at];
#endif
    place = next(place);
#end
#end

// Finds the moments of the tile that was loaded.
#block find_moments()
    let count = elements_of(part);
    let share = 1.0 / count;
    var sum = 0.0;
#for i in ITEMS
    if begin + {i}u * WORKGROUP_SIZE < end {
        sum += total(share * new_x_{i});
    }
#end
    let center = workgroup_total(lane, vec4(sum, 0.0, 0.0, 0.0)).x;
    var sums = vec4(0.0);
#for i in ITEMS
    if begin + {i}u * WORKGROUP_SIZE < end {
#put add_terms(sums, new_x_{i}, new_g_{i})
    }
#end
    let moments = moments_of(center, workgroup_total(lane, sums), count);
#end

// Finds what the results of a channel need of its moments. One thread writes those of the channel.
#block find_factors()
    let variance = moments.y / params.count;
    let inverse = inverseSqrt(variance + params.eps);
    let factor = inverse * gamma[channel];
    if part == 0u && lane == 0u {
#if GRADIENTS
        dgamma[channel] = moments.w * inverse;
        dbeta[channel] = moments.z;
#endif
#if RUNNING
#if SEVERAL && !IN_PLACE
        // Behind the posts; a device need not bind more than eight buffers.
        let behind = word_place(0u, 0u, POST_WORDS) + channel;
        let old_mean = bitcast<f32>(atomicLoad(&posts[behind]));
        let old_variance = bitcast<f32>(atomicLoad(&posts[behind + params.channels]));
#else
        let old_mean = running_mean[channel];
        let old_variance = running_variance[channel];
#endif
        let kept = 1.0 - params.momentum;
        let new_mean = kept * old_mean + params.momentum * moments.x;
        let averaged = variance * params.correction;
        let new_variance = kept * old_variance + params.momentum * averaged;
#if IN_PLACE
        running_mean[channel] = new_mean;
        running_variance[channel] = new_variance;
#else
        new_running_mean[channel] = new_mean;
        new_running_variance[channel] = new_variance;
#endif
#endif
    }
#if GRADIENTS
    let slope = moments.w * inverse * inverse / params.count;
    let level = moments.z / params.count;
#else
    let shift = beta[channel];
#endif
#end

// Writes the results of a part that is held.
#block finish(tile)
#put find_factors()
    let written = part * BLOCK + lane;
    let behind_last = min((part + 1u) * BLOCK, params.images * (params.len / WIDTH));
    var output_place = place_of(channel, written);
#for i in ITEMS
    if written + {i}u * WORKGROUP_SIZE < behind_last {
#put write(output_place.at, {tile}_x_{i}, {tile}_g_{i})
    }
    output_place = next(output_place);
#end
#end

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_train_resident(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
#put declare(new)
#if SEVERAL
#put declare(held)
    if lane == 0u {
        atomicStore(&wg_missing, NONE);
    }
    let tiles = params.channels * params.parts;
    var taken = 1u;
    take(lane, 0u);
    var tile = workgroupUniformLoad(&wg_tile);
    var held = NONE;
    loop {
        if tile < tiles {
            let channel = tile / params.parts;
            let part = tile % params.parts;
#put load()
            take(lane, taken);
#put find_moments()
            if lane == 0u && posts_are_made(part) {
                post(channel, part, moments);
            }
        }
        if held != NONE {
            let channel = held / params.parts;
            let part = held % params.parts;
            var awaited = Awaited(lane >= params.parts, Moments());
            if await_posts(channel, part, lane, &awaited) != NONE {
                break;
            }
            let moments = join_tiles(lane, awaited.moments);
#put finish(held)
            held = NONE;
        }
        if tile >= tiles {
            break;
        }
#for i in ITEMS
        held_x_{i} = new_x_{i};
#if GRADIENTS
        held_g_{i} = new_g_{i};
#endif
#end
        held = tile;
        tile = workgroupUniformLoad(&wg_tile);
        taken++;
    }
    // After a post was missing: tiles are read again, which takes no registers that the loop above needs.
    while held != NONE {
        let channel = held / params.parts;
        let part = held % params.parts;
        let moments = channel_moments(channel, part, lane);
#put find_factors()
        let end = min((part + 1u) * BLOCK, params.images * (params.len / WIDTH));
        var place = place_of(channel, part * BLOCK + lane);
        for (var i = part * BLOCK + lane; i < end; i += WORKGROUP_SIZE) {
#put write(place.at, input[place.at], gradients[place.at])
            place = next(place);
        }
        held = NONE;
        if tile < tiles {
            held = tile;
            tile = workgroupUniformLoad(&wg_tile);
            taken++;
            if tile < tiles {
                take(lane, taken);
                let read = read_moments(tile / params.parts, tile % params.parts, lane);
                if lane == 0u && posts_are_made(tile % params.parts) {
                    post(tile / params.parts, tile % params.parts, read);
                }
            }
        }
    }
#else
    let channel = workgroup_index(group);
    let part = 0u;
    if channel >= params.channels {
        return;
    }
#put load()
#put find_moments()
#put finish(new)
#endif
}
