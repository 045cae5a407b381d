//! Writes quadtrees to files.

use super::common::Failure;
use super::points::Point;
use super::tree::Tree;
use npyz::WriterBuilder;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use tilework::io::write_aside;
use tilework::reference::{TreeSquare, quadtree_square};

/// Columns of the array: a cell's level, column and row in its level, first point, number of points, and first child,
/// -1 if none.
const COLUMNS: [&str; 6] = ["level", "column", "row", "first", "count", "child"];

fn rows(tree: &Tree) -> impl Iterator<Item = [i64; 6]> {
    tree.cells.iter().map(|cell| {
        let ([column, row], child) = (cell.place, cell.child.map_or(-1, i64::from));
        [cell.level.into(), column.into(), row.into(), cell.first.into(), cell.count.into(), child]
    })
}

/// Rejects a file name with another extension.
pub(crate) fn named(path: &Path) -> Result<(), Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json" | "npy") => Ok(()),
        _ => Err(Failure::bad_input("must end with .json or .npy").at(path)),
    }
}

/// Writes cells in the format of the file name; JSON includes the order of points.
pub(crate) fn save(path: &Path, tree: &Tree, points: &[Point]) -> Result<(), Failure> {
    let numpy = path.extension().is_some_and(|ending| ending == "npy");
    Ok(write_aside(path, |out| if numpy { write_npy(out, tree) } else { write_json(out, tree, points) })?)
}

fn write_npy(out: &mut impl Write, tree: &Tree) -> std::io::Result<()> {
    let shape = [tree.cells.len() as u64, COLUMNS.len() as u64];
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out).begin_nd()?;
    writer.extend(rows(tree).flatten())?;
    writer.finish()
}

fn write_json(out: &mut impl Write, tree: &Tree, points: &[Point]) -> std::io::Result<()> {
    let cells: Vec<_> = rows(tree).collect();
    let TreeSquare { low, side } = quadtree_square(points);
    let square = json!({ "low": low, "side": side });
    let all = json!({ "square": square, "columns": COLUMNS, "cells": cells, "order": tree.order });
    Ok(serde_json::to_writer(out, &all)?)
}
