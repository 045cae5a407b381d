//! Tables of texts.

/// Formats columns as wide as needed; the first is left-aligned, the others right-aligned.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(wide).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(i, (t, &w))| if i == 0 { format!("{t:<w$}") } else { format!("{t:>w$}") });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Formats four significant digits.
pub(crate) fn short(x: f64) -> String {
    let digits = x.abs().log10().floor();
    match digits {
        _ if x == 0.0 => "0".into(),
        d if d < -5.0 => format!("{x:.3e}"),
        d => format!("{x:.*}", (3.0 - d).clamp(0.0, 8.0) as usize),
    }
}
