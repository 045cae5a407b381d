use super::prelude::*;
use super::select;

judges! { quadtree => judge_quadtree, adaptive_grid => judge_adaptive_grid, frontier => judge_frontier }

fn judge_quadtree(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_adaptive_grid(call: &OpCall) -> Result<Vec<Wanted>> {
    let array = call.inputs().next();
    let [h, w] = array.and_then(|array| array.shape().try_into().ok()).unwrap_or([0; 2]);
    let image = input::<f32>(call, 0)?;
    let field = |x, y| image[adaptive_grid_pixel([h, w], x, y)];
    let limit = settings(call)?.maybe("limit")?.unwrap_or(usize::MAX);
    let levels = option(call, "first")?..=option(call, "depth")?;
    let given = call.inputs().count() > 1;
    let threshold = if given { input::<f32>(call, 1)?[0] } else { option(call, "threshold")? };
    let (nodes, values) = adaptive_grid(field, levels, |_, range| range > threshold, limit);
    let bound = values.iter().flat_map(|_| [adaptive_grid_bound(image), 0.0]).collect();
    let count = nodes.len();
    Ok(vec![Wanted::exact(&[count, 4], nodes.concat())?, Wanted::near(&[count, 2], values.concat(), bound)?])
}

/// Returns the index of the pixel at a point of the unit square, by one product in f32 for each axis.
pub fn adaptive_grid_pixel([h, w]: [usize; 2], x: f64, y: f64) -> usize {
    let place = |at: f64, extent: usize| ((at as f32 * extent as f32) as usize).min(extent.saturating_sub(1));
    place(y, h) * w + place(x, w)
}

/// Bounds the error of the mean of 64 samples.
pub fn adaptive_grid_bound(samples: &[f32]) -> f64 {
    let largest = samples.iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
    8.0 * f64::from(f32::EPSILON) * f64::from(largest) + f64::from(f32::MIN_POSITIVE)
}

/// Returns the cells of a grid, and the mean and range of each. `field` gives the samples at points of the unit square,
/// and `splits` whether a cell above the deepest level splits, by cell and range.
pub fn adaptive_grid(
    field: impl Fn(f64, f64) -> f32, levels: std::ops::RangeInclusive<u32>, splits: impl Fn(&[u32; 4], f32) -> bool,
    limit: usize,
) -> (Vec<[u32; 4]>, Vec<[f32; 2]>) {
    let measured = |level: u32, x: u32, y: u32| {
        let at = |i: u32, cell: u32| (f64::from(8 * cell + i) + 0.5) / f64::from(8u32 << level);
        let samples: Vec<f32> = (0..64).map(|i| field(at(i % 8, x), at(i / 8, y))).collect();
        if samples.iter().any(|x| !x.is_finite()) {
            return [f32::NAN; 2];
        }
        let least = samples.iter().fold(f32::INFINITY, |least, x| least.min(*x));
        let largest = samples.iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x));
        [(samples.iter().map(|x| f64::from(*x)).sum::<f64>() / 64.0) as f32, largest - least]
    };
    let (first, depth) = (*levels.start(), *levels.end());
    let bits = |code: u32| (0..16).map(|bit| (code >> (2 * bit) & 1) << bit).sum::<u32>();
    let mut nodes: Vec<_> = (0..1 << (2 * first)).map(|i| [u32::MAX, first, bits(i), bits(i >> 1)]).collect();
    let mut values = Vec::new();
    while let Some(&cell) = nodes.get(values.len()) {
        let [_, level, x, y] = cell;
        let value = measured(level, x, y);
        if splits(&cell, value[1]) && level < depth && nodes.len() + 4 <= limit {
            nodes[values.len()][0] = nodes.len() as u32;
            nodes.extend((0..4).map(|quarter| [u32::MAX, level + 1, 2 * x + quarter % 2, 2 * y + quarter / 2]));
        }
        values.push(value);
    }
    (nodes, values)
}

fn judge_frontier(call: &OpCall) -> Result<Vec<Wanted>> {
    let (items, flags) = (input::<u32>(call, 0)?, input::<u32>(call, 1)?);
    let (list, children) =
        frontier(&items[..there(call, items.len())?], flags, option(call, "children")?, option(call, "room")?);
    Ok(vec![Wanted::exact(&[list.len()], list)?, Wanted::exact(&[1], vec![children])?])
}

/// Returns the items with a nonzero flag, and the number of their children, `each` for an item, in this room.
pub fn frontier(items: &[u32], flags: &[u32], each: u32, room: u32) -> (Vec<u32>, u32) {
    let list = select(items, flags);
    let children = each * (list.len() as u32).min(room / each);
    (list, children)
}

#[cfg(test)]
#[path = "tests/trees.rs"]
mod tests;
