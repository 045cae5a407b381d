//! Room in memory, asked for before it is taken.

/// Refuses a list that this machine has no memory for, where the user's numbers say how long it is: taking it anyway
/// would end the program.
#[allow(dead_code, reason = "only some programs make lists of a length that the user says")]
pub(crate) fn room_for(what: &str, elements: usize, bytes_each: usize) -> Result<(), String> {
    let bytes = elements.saturating_mul(bytes_each);
    let mut probe = Vec::<u8>::new();
    let there = probe.try_reserve_exact(bytes).is_ok();
    // Without this the compiler may leave the attempt out.
    std::hint::black_box(&mut probe);
    if there {
        return Ok(());
    }
    Err(format!("{what}: {bytes} bytes are needed, and this machine has no memory for them; take less"))
}

#[cfg(test)]
mod tests {
    use super::room_for;

    #[test]
    fn room_is_refused_where_there_is_none() {
        assert_eq!(room_for("a list", 1000, 4), Ok(()));
        for (elements, bytes_each) in [(usize::MAX, 8), (usize::MAX / 8, 8), (1 << 60, 4)] {
            let refused = room_for("a list", elements, bytes_each).unwrap_err();
            assert!(refused.starts_with("a list: ") && refused.ends_with("take less"), "{refused}");
        }
    }
}
