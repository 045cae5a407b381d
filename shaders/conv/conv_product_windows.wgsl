// A product whose B is gathered from the windows of x while it is staged. A column is an output (or the cell of a
// window) at one place, a step of k a cell of a window (or an output). Both have digits: across, down and plane.
// Those of k advance by TILE_K with carries, without a division.
#import conv/conv_product

const WALKED_b: bool = true;

// Cells of x are spread this far apart, with zeros between them.
const UP_H: u32 = 1u;
const UP_W: u32 = 1u;
#if LAST
// Channels of x, which lie next to each other.
const APART_B: u32 = 1u;
#endif

@group(0) @binding(2) var<storage, read> b: array<T>;

// The part of a column or of a step of k: in the place in the plane, and in the index.
struct Place {
    y: u32,
    x: u32,
    at: u32,
}

fn line_b(column: u32) -> Place {
    let n = params.first_n + column;
    var place: Place;
    place.x = n % params.n_across * params.n_step_w - params.pad_w;
    place.y = n / params.n_across % params.n_down * params.n_step_h - params.pad_h;
    place.at = base_b + n / params.n_across / params.n_down * params.n_plane;
#if !SPREAD && LAST
    place.at += (place.y * params.w + place.x) * APART_B;
#endif
#if !SPREAD && !LAST
    place.at += place.y * params.w + place.x;
#endif
    return place;
}

fn walk_b(k: u32) -> Place {
    var place: Place;
    place.x = k % params.k_across * params.k_step_w;
    place.y = k / params.k_across % params.k_down * params.k_step_h;
    place.at = k / params.k_across / params.k_down * params.k_plane;
#if !SPREAD && LAST
    place.at += (place.y * params.w + place.x) * APART_B;
#endif
#if !SPREAD && !LAST
    place.at += place.y * params.w + place.x;
#endif
    return place;
}

fn step_b(from_: Place) -> Place {
    var place = from_;
    let width = params.k_across * params.k_step_w;
    let height = params.k_down * params.k_step_h;
    place.x += params.step_across;
    place.y += params.step_down;
    place.at += params.step_plane;
    if place.x >= width {
        place.x -= width;
        place.y += params.k_step_h;
#if !SPREAD && LAST
        place.at += (params.k_step_h * params.w - width) * APART_B;
#endif
#if !SPREAD && !LAST
        place.at += params.k_step_h * params.w - width;
#endif
    }
    if place.y >= height {
        place.y -= height;
        place.at += params.k_plane;
#if !SPREAD && LAST
        place.at -= height * params.w * APART_B;
#endif
#if !SPREAD && !LAST
        place.at -= height * params.w;
#endif
    }
    return place;
}

fn load_b(line: Place, k: Place) -> T {
    let y = line.y + k.y;
    let x = line.x + k.x;
    // Places before the first wrap to beyond the last.
    if y >= params.bound_h || x >= params.bound_w { return T(0.0); }
#if SPREAD
    if y % UP_H != 0u || x % UP_W != 0u { return T(0.0); }
#if LAST
    return b[line.at + k.at + (y / UP_H * params.w + x / UP_W) * APART_B];
#else
    return b[line.at + k.at + y / UP_H * params.w + x / UP_W];
#endif
#else
    return b[line.at + k.at];
#endif
}
