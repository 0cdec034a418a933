//! Bytes and times as people read them.

use bytesize::ByteSize;
use remat::{BaselinePeak, Model};

/// Bytes in binary units, `3.2 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// What the model takes as it is, as a line of a report.
pub(crate) fn baseline(model: &Model) -> String {
    let BaselinePeak { bytes: peak, of } = model.baseline_peak();
    format!("baseline  {}, {of}", bytes(peak))
}

/// Nanoseconds in the unit that keeps three digits, `12.3 ms`.
pub(crate) fn nanoseconds(ns: u64) -> String {
    in_unit(ns, &["ns", "µs", "ms", "s"])
}

/// Picojoules in the unit that keeps three digits, `12.3 mJ`.
pub(crate) fn picojoules(pj: u64) -> String {
    in_unit(pj, &["pJ", "nJ", "µJ", "mJ", "J"])
}

/// A figure in the largest of these units, each a thousand of the one before, in which it is not below 1.
fn in_unit(figure: u64, units: &[&str]) -> String {
    let (mut unit, mut scale) = (0, 1);
    while unit + 1 < units.len() && figure / scale >= 1_000 {
        (unit, scale) = (unit + 1, scale * 1_000);
    }
    if unit == 0 {
        return format!("{figure} {}", units[0]);
    }
    let value = figure as f64 / scale as f64;
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", units[unit])
}

/// A number of things, `1 op` or `2 ops`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// `part` of `whole` in per cent.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        100.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(nanoseconds(999), "999 ns");
        assert_eq!(nanoseconds(12_345_678), "12.3 ms");
        assert_eq!(nanoseconds(1_500), "1.50 µs");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
        assert_eq!(
            (count(1, "op"), count(0, "op")),
            ("1 op".to_owned(), "0 ops".to_owned())
        );
        assert_eq!(
            (picojoules(999), picojoules(7_889_000_000_000)),
            ("999 pJ".to_owned(), "7.89 J".to_owned())
        );
    }
}
