use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let settings = settings(call)?;
    let points: Vec<[f32; 2]> = input::<f32>(call, 0)?.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
    let given = settings.has("square").then(|| settings.numbers("square", "X,Y,SIDE")).transpose()?;
    let square = given.map_or_else(|| quadtree_square(&points), |[x, y, side]| TreeSquare { low: [x, y], side });
    let limit = settings.maybe("limit")?.unwrap_or(usize::MAX);
    let (nodes, order) = quadtree(&points, square, option(call, "capacity")?, option(call, "depth")?, limit);
    let order = settings.has("order").then(|| Wanted::exact(&[points.len()], order));
    let nodes = Wanted::exact(&[nodes.len(), 6], nodes.concat())?;
    std::iter::once(Ok(nodes)).chain(order).collect::<Result<_, Error>>()
}

/// The square that a quadtree divides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSquare {
    /// Its lower left corner.
    pub low: [f32; 2],
    /// The length of a side.
    pub side: f32,
}

/// Whether a point belongs to a node.
fn has_place(point: &[f32; 2]) -> bool {
    // False for NaN.
    point.iter().all(|x| x.abs() < 2f32.powi(126))
}

/// Returns the smallest square around the points that have a place, with its lower left corner at their least
/// coordinates.
pub fn quadtree_square(points: &[[f32; 2]]) -> TreeSquare {
    let inside = || points.iter().filter(|point| has_place(point));
    if inside().next().is_none() {
        return TreeSquare { low: [0.0; 2], side: 1.0 };
    }
    let low = [0, 1].map(|axis: usize| inside().fold(f32::INFINITY, |low, p| low.min(p[axis])));
    let high = [0, 1].map(|axis: usize| inside().fold(f32::NEG_INFINITY, |high, p| high.max(p[axis])));
    let side = (high[0] - low[0]).max(high[1] - low[1]);
    TreeSquare { low, side: if side < 2f32.powi(-100) { 1.0 } else { side } }
}

/// Returns the nodes of a tree, at most `limit`, and the order of the points.
pub fn quadtree(
    points: &[[f32; 2]], square: TreeSquare, capacity: u32, depth: u32, limit: usize,
) -> (Vec<[u32; 6]>, Vec<u32>) {
    let TreeSquare { low, side } = square;
    let scale = 65536.0 / side;
    // Column or row of the finest level.
    let place = |x: f32, low: f32| ((x - low).clamp(0.0, side) * scale).floor().min(65535.0) as u32;
    let column_row = |point: &[f32; 2]| [place(point[0], low[0]), place(point[1], low[1])];
    let code = |point: &[f32; 2]| {
        let [x, y] = column_row(point).map(|at| at >> (16 - depth) << (16 - depth));
        code_of(x, y)
    };
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    order.sort_by_key(|i| {
        let point = &points[*i as usize];
        if has_place(point) { (false, code(point)) } else { (true, 0) }
    });
    let inside = points.iter().filter(|point| has_place(point)).count();
    let codes: Vec<u32> = order[..inside].iter().map(|i| code(&points[*i as usize])).collect();
    let mut nodes = vec![[u32::MAX, 0, inside as u32, 0, 0, 0]];
    let mut next = 0;
    while let Some(&[_, first, points, level, x, y]) = nodes.get(next) {
        if points > capacity && level < depth && nodes.len() + 4 <= limit {
            nodes[next][0] = nodes.len() as u32;
            let mut begin = first;
            for quarter in 0..4 {
                let (level, x, y) = (level + 1, 2 * x + quarter % 2, 2 * y + quarter / 2);
                let own = |code: &&u32| **code >> (32 - 2 * level) == code_of(x, y);
                let members = codes[first as usize..(first + points) as usize].iter().filter(own).count() as u32;
                nodes.push([u32::MAX, begin, members, level, x, y]);
                begin += members;
            }
        }
        next += 1;
    }
    (nodes, order)
}

/// The bits of column and row in turn.
fn code_of(x: u32, y: u32) -> u32 {
    (0..16).map(|bit| (x >> bit & 1 | (y >> bit & 1) << 1) << (2 * bit)).sum()
}

#[cfg(test)]
#[path = "tests/quadtree.rs"]
mod tests;
