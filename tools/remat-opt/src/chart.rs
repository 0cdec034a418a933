//! A timeline of memory in a terminal: one column of block characters per slice of time.

/// Levels of a block character, an eighth each.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws `values` (bytes at each step) into `width` columns and `height` rows under a scale of `top` bytes. A column shows the
/// largest of the values it stands for, so that no peak is lost. `label` writes a number of bytes.
pub(crate) fn timeline(values: &[u64], width: usize, height: usize, top: u64, label: impl Fn(u64) -> String) -> String {
    if values.is_empty() || width == 0 || height == 0 {
        return String::new();
    }
    let columns: Vec<u64> = (0..width.min(values.len()))
        .map(|column| {
            let count = width.min(values.len());
            let range = column * values.len() / count..(column + 1) * values.len() / count;
            values[range].iter().copied().max().unwrap_or(0)
        })
        .collect();
    let eighths = (height * 8) as u128;
    let level = |value: u64| {
        (u128::from(value) * eighths)
            .div_ceil(u128::from(top.max(1)))
            .min(eighths) as usize
    };
    let margin = [label(top), label(0)]
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0);
    let mut lines = Vec::with_capacity(height + 1);
    for row in (0..height).rev() {
        let name = if row + 1 == height { label(top) } else { String::new() };
        let cells = columns
            .iter()
            .map(|&value| BLOCKS[level(value).saturating_sub(row * 8).min(8)]);
        lines.push(format!("{name:>margin$} │{}", cells.collect::<String>().trim_end()));
    }
    lines.push(format!("{:>margin$} └{}", label(0), "─".repeat(columns.len())));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_the_largest_value_it_stands_for() {
        let chart = timeline(&[0, 8, 0, 0, 16, 0, 4, 2], 4, 2, 16, |bytes| bytes.to_string());
        insta::assert_snapshot!(chart, @r"
        16 │  █
           │█ █▄
         0 └────
        ");
    }

    #[test]
    fn no_values_draw_nothing() {
        assert_eq!(timeline(&[], 10, 4, 1, |bytes| bytes.to_string()), "");
    }
}
