// Particles of diameter 1 in a box of cells of side 1, so that a particle only touches particles of the 9 cells around.
struct Params {
    // Extents of the box in cells; gravity, cells per step squared.
    box: vec2f,
    gravity: vec2f,
    // Where the pointer is, and how far it reaches: 0 without one.
    pointer: vec2f,
    reach: f32,
    count: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn cell_of(place: vec2f) -> u32 {
    let cell = vec2u(clamp(place, vec2f(), params.box - 1.0));
    return cell.y * u32(params.box.x) + cell.x;
}

// Place and speed of each particle, in the order of the last frame's cells.
@group(0) @binding(1) var<storage, read> particles: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;

// The key of each particle is its cell.
@compute @workgroup_size(256)
fn find_cells(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = id.y * groups.x * 256u + id.x;
    if i >= params.count { return; }
    keys[i] = cell_of(particles[i].xy);
    places[i] = i;
}

@group(0) @binding(4) var<storage, read> sorted: array<u32>;
@group(0) @binding(5) var<storage, read_write> ranges: array<vec2u>;

// Where the particles of each cell begin and end in the sorted order. Cells without particles keep zeros.
@compute @workgroup_size(256)
fn find_ranges(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = id.y * groups.x * 256u + id.x;
    if i >= params.count { return; }
    let key = sorted[i];
    if i == 0u || sorted[i - 1u] != key { ranges[key].x = i; }
    if i + 1u == params.count || sorted[i + 1u] != key { ranges[key].y = i + 1u; }
}

@group(0) @binding(6) var<storage, read> order: array<u32>;
@group(0) @binding(7) var<storage, read> found: array<vec2u>;
@group(0) @binding(8) var<storage, read> tags: array<u32>;
@group(0) @binding(9) var<storage, read_write> moved: array<vec4f>;
@group(0) @binding(10) var<storage, read_write> moved_tags: array<u32>;

// More particles of one cell than this do not fit it unless they overlap deeply.
const MAX_IN_CELL = 8u;

// Springs and dampers between particles that overlap (the discrete element method), then one step of time. The result
// is in the order of the cells, so that neighbours lie near each other in memory.
@compute @workgroup_size(256)
fn collide(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = id.y * groups.x * 256u + id.x;
    if i >= params.count { return; }
    let own = particles[order[i]];
    let cells = vec2i(params.box);
    let cell = vec2i(clamp(own.xy, vec2f(), params.box - 1.0));
    var push = vec2f();
    for (var y = max(cell.y - 1, 0); y <= min(cell.y + 1, cells.y - 1); y++) {
        for (var x = max(cell.x - 1, 0); x <= min(cell.x + 1, cells.x - 1); x++) {
            let range = found[y * cells.x + x];
            let end = min(range.y, range.x + MAX_IN_CELL);
            for (var j = range.x; j < end; j++) {
                let other = particles[order[j]];
                let away = own.xy - other.xy;
                let distance = length(away);
                if j != i && distance < 1.0 && distance > 1e-4 {
                    let normal = away / distance;
                    let approach = dot(own.zw - other.zw, normal);
                    push += normal * (0.25 * (1.0 - distance) - 0.12 * approach);
                }
            }
        }
    }
    let to_pointer = own.xy - params.pointer;
    let far = length(to_pointer);
    if far < params.reach && far > 1e-3 {
        push += to_pointer / far * 0.08 * (1.0 - far / params.reach);
    }
    var speed = (own.zw + push + params.gravity) * 0.9995;
    // A particle that moved more than half its size in a step would pass through others.
    speed *= min(1.0, 0.5 / max(length(speed), 1e-6));
    var place = own.xy + speed;
    let low = vec2f(0.5);
    let high = params.box - 0.5;
    speed = select(speed, abs(speed) * 0.4, place < low);
    speed = select(speed, -abs(speed) * 0.4, place > high);
    place = clamp(place, low, high);
    moved[i] = vec4f(place, speed);
    moved_tags[i] = tags[order[i]];
}

struct Drawn {
    @builtin(position) at: vec4f,
    @location(0) color: vec3f,
    @location(1) corner: vec2f,
}

@group(0) @binding(11) var<storage, read> drawn: array<vec4f>;
@group(0) @binding(12) var<storage, read> drawn_tags: array<u32>;

fn color_of(i: u32) -> vec3f {
    // Bands by the place at the start, brighter when fast.
    let band = f32(drawn_tags[i]) / 8.0;
    let hue = vec3f(0.55, 0.6, 0.62) + vec3f(0.42, 0.36, 0.38) * cos(6.2832 * (vec3f(0.0, 0.33, 0.62) + band));
    return hue * (0.65 + 1.6 * length(drawn[i].zw));
}

fn on_screen(place: vec2f) -> vec4f {
    return vec4f(place / params.box * 2.0 - 1.0, 0.0, 1.0);
}

// A dot of one pixel: for particles that are smaller.
@vertex
fn draw_dot(@builtin(vertex_index) i: u32) -> Drawn {
    return Drawn(on_screen(drawn[i].xy), color_of(i), vec2f());
}

// A square of the particle's size, whose corners the fragments leave out.
@vertex
fn draw_disc(@builtin(vertex_index) corner: u32, @builtin(instance_index) i: u32) -> Drawn {
    let away = vec2f(f32(corner & 1u), f32(corner >> 1u)) * 2.0 - 1.0;
    return Drawn(on_screen(drawn[i].xy + 0.5 * away), color_of(i), away);
}

@fragment
fn shade(in: Drawn) -> @location(0) vec4f {
    let r = dot(in.corner, in.corner);
    if r > 1.0 { discard; }
    return vec4f(in.color * (1.0 - 0.45 * r), 1.0);
}
