// Batch norm in training, with GRADIENTS its gradients, in one pass over memory. A workgroup holds a tile of a channel
// in registers, ITEMS a thread, and in workgroup memory, SHARED a thread, before those. With SEVERAL tiles it posts the
// statistics of its own and waits for those of the others.
// After SPINS reads of a missing post it finds that tile's statistics itself, so that no workgroup depends on another's
// progress (T. Smith, R. Levien, J. D. Owens, Decoupled Fallback, 2025). A word of a post is its value and, unless 0,
// the sign that it is there. Requires at most WORKGROUP_SIZE tiles a channel.
#import nn/items
#import nn/batch_norm_train_params
#import activation/none as activation

const ITEMS: u32 = 8u;
const SHARED: u32 = 0u;
const BLOCK: u32 = WORKGROUP_SIZE * (SHARED + ITEMS);
const SPINS: u32 = 128u;

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

#if SHARED > 0
var<workgroup> wg_items: array<Item, WORKGROUP_SIZE * SHARED>;
#if GRADIENTS
var<workgroup> wg_gradients: array<Item, WORKGROUP_SIZE * SHARED>;
#endif
#endif

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

var<workgroup> wg_missing: atomic<u32>;
var<workgroup> wg_blocked: u32;

fn word_place(channel: u32, part: u32, k: u32) -> u32 {
    return (k * params.channels + channel) * params.parts + part;
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

// The moments of a channel, from those of this tile and of all others.
fn channel_moments(channel: u32, part: u32, lane: u32, own: Moments) -> Moments {
    if lane == 0u {
        if posts_are_made(part) {
            post(channel, part, own);
        }
        atomicStore(&wg_missing, NONE);
    }
    // Lane `i` waits for tile `i`.
    var found = own;
    var ready = lane == part || lane >= params.parts;
    loop {
        for (var spins = 0u; !ready && spins <= SPINS; spins++) {
#for k in POST_WORDS
            let word_{k} = atomicLoad(&posts[word_place(channel, lane, {k}u)]);
            found[{k}] = bitcast<f32>(word_{k} ^ SPARE);
#end
            ready = word_0 != 0u && word_1 != 0u;
#if GRADIENTS
            ready = ready && word_2 != 0u && word_3 != 0u;
#endif
        }
        workgroupBarrier();
        // Each workgroup begins with the tiles behind its own, so that they share the work.
        if !ready {
            atomicMin(&wg_missing, (lane + params.parts - part) % params.parts);
        }
        workgroupBarrier();
        if lane == 0u {
            wg_blocked = atomicLoad(&wg_missing);
            atomicStore(&wg_missing, NONE);
        }
        let blocked = workgroupUniformLoad(&wg_blocked);
        if blocked == NONE {
            break;
        }
        let tile = (blocked + part) % params.parts;
        let read = read_moments(channel, tile, lane);
        if lane == tile {
            post(channel, tile, read);
            found = read;
            ready = true;
        }
    }
    let counts = lane < params.parts;
    let elements = elements_of(min(lane, params.parts - 1u));
    // All tiles of a channel take the same steps, and get the same bits.
    let center = workgroup_total(lane, select(vec4(0.0), found, lane == 0u)).x;
    let shift = select(0.0, elements / params.count * (found.x - center), counts);
    let mean = center + workgroup_total(lane, vec4(shift, 0.0, 0.0, 0.0)).x;
    let apart = found.x - mean;
    let terms = vec4(0.0, found.y + elements * apart * apart, found.z, found.w + apart * found.z);
    let sums = workgroup_total(lane, select(vec4(0.0), terms, counts));
    return Moments(mean, sums.yzw);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_train_resident(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = workgroup_index(group);
    if index >= params.channels * params.parts {
        return;
    }
    let channel = index / params.parts;
    let part = index % params.parts;
    let begin = part * BLOCK + lane;
    let end = min((part + 1u) * BLOCK, params.images * (params.len / WIDTH));
    // Loads past the end read an item of the tile.
#if SHARED > 0
    {
        let lowest = place_of(channel, min(begin, end - 1u));
        var place = lowest;
#for i in SHARED
        if begin + {i}u * WORKGROUP_SIZE >= end {
            place = lowest;
        }
        let x_{i} = input[place.at];
#if GRADIENTS
        let g_{i} = gradients[place.at];
#endif
        place = next(place);
#end
#for i in SHARED
        wg_items[{i}u * WORKGROUP_SIZE + lane] = x_{i};
#if GRADIENTS
        wg_gradients[{i}u * WORKGROUP_SIZE + lane] = g_{i};
#endif
#end
    }
    // A thread reads only its own items. The barrier keeps a compiler from holding all of them in registers.
    workgroupBarrier();
#endif
    let first = begin + SHARED * WORKGROUP_SIZE;
    let place_0 = place_of(channel, min(first, end - 1u));
    let x_0 = input[place_0.at];
#if GRADIENTS
    let g_0 = gradients[place_0.at];
#endif
#for i in 1..ITEMS
    var place_{i} = next(place_{i - 1});
    if first + {i}u * WORKGROUP_SIZE >= end {
        place_{i} = place_0;
    }
    let x_{i} = input[place_{i}.at];
#if GRADIENTS
    let g_{i} = gradients[place_{i}.at];
#endif
#end
    let count = elements_of(part);
    let share = 1.0 / count;
    var sum = 0.0;
#if SHARED > 0
    for (var j = lane; j < SHARED * WORKGROUP_SIZE && part * BLOCK + j < end; j += WORKGROUP_SIZE) {
        sum += total(share * wg_items[j]);
    }
#endif
#for i in ITEMS
    if first + {i}u * WORKGROUP_SIZE < end {
        sum += total(share * x_{i});
    }
#end
    let center = workgroup_total(lane, vec4(sum, 0.0, 0.0, 0.0)).x;
    var sums = vec4(0.0);
#if SHARED > 0
    for (var j = lane; j < SHARED * WORKGROUP_SIZE && part * BLOCK + j < end; j += WORKGROUP_SIZE) {
#put add_terms(sums, wg_items[j], wg_gradients[j])
    }
#endif
#for i in ITEMS
    if first + {i}u * WORKGROUP_SIZE < end {
#put add_terms(sums, x_{i}, g_{i})
    }
#end
    var moments = moments_of(center, workgroup_total(lane, sums), count);
#if SEVERAL
    moments = channel_moments(channel, part, lane, moments);
#endif
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
#if SHARED > 0
    var place = place_of(channel, begin);
    for (var j = lane; j < SHARED * WORKGROUP_SIZE && part * BLOCK + j < end; j += WORKGROUP_SIZE) {
#put write(place.at, wg_items[j], wg_gradients[j])
        place = next(place);
    }
#endif
#for i in ITEMS
    if first + {i}u * WORKGROUP_SIZE < end {
#put write(place_{i}.at, x_{i}, g_{i})
    }
#end
}
