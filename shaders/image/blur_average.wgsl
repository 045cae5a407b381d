// How a sum becomes a pixel.
#import conv/byte_output

fn average(sum: u32, p: vec2<u32>) -> u32 {
#if WINDOW
    let side = 2u * params.radius + 1u;
    return sum / (side * side);
#else
    let x = reach(p.x, params.w);
    let y = reach(p.y, params.h);
    let count = (x.y - x.x + 1u) * (y.y - y.x + 1u);
    return (2u * sum + count) / (2u * count);
#endif
}
