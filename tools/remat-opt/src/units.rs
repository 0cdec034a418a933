//! Bytes and times as people read them.

use bytesize::ByteSize;

/// Bytes in binary units, `3.2 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Nanoseconds in the unit that keeps three digits, `12.3 ms`.
pub(crate) fn nanoseconds(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

/// Picojoules in the unit that keeps three digits, `12.3 mJ`.
pub(crate) fn picojoules(pj: u64) -> String {
    let (value, unit) = match pj {
        0..1_000 => return format!("{pj} pJ"),
        1_000..1_000_000 => (pj as f64 / 1e3, "nJ"),
        1_000_000..1_000_000_000 => (pj as f64 / 1e6, "µJ"),
        1_000_000_000..1_000_000_000_000 => (pj as f64 / 1e9, "mJ"),
        _ => (pj as f64 / 1e12, "J"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
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
