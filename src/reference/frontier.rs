use super::prelude::*;
use super::select;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/frontier.rs"]
mod tests;
