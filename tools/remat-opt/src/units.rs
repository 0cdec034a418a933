//! Bytes and times as people read them.

use bytesize::ByteSize;
use remat::BaselineOf;
use remat_onnxruntime_run::Closeness;

/// Bytes in binary units, `3.2 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Bytes before and after, `31.2 -> 11.7 MiB`: the unit once where both have the same.
pub(crate) fn pair(before: u64, after: u64) -> String {
    let (before, after) = (bytes(before), bytes(after));
    match (before.split_once(' '), after.split_once(' ')) {
        (Some((figure, unit)), Some((_, other))) if unit == other => format!("{figure} -> {after}"),
        _ => format!("{before} -> {after}"),
    }
}

/// By how much a figure changes, `-63 %`; nothing where it was 0.
pub(crate) fn change(before: u64, after: u64) -> Option<String> {
    (before > 0).then(|| added(percent(after, before) - 100.0))
}

/// How far outputs lie apart that may round otherwise.
pub(crate) fn closeness(found: &Closeness) -> String {
    let largest = found.relative_difference();
    let farthest = found
        .farthest()
        .filter(|farthest| farthest.relative_difference > largest);
    let farthest = farthest.map(|farthest| format!(" ({:.0e} on {})", farthest.relative_difference, farthest.kind));
    let psnr = found.psnr_db().map(|psnr| format!(", PSNR {psnr:.0} dB"));
    format!(
        "close: largest difference {largest:.0e} relative{}{}",
        farthest.unwrap_or_default(),
        psnr.unwrap_or_default()
    )
}

/// Per cent that are added, `+0.1 %` or `-63 %`: with a digit after the point where they are few.
pub(crate) fn added(percent: f64) -> String {
    // No minus before what is shown as zero.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// What the model takes as it is, as a line of a report.
pub(crate) fn baseline(peak: u64, of: BaselineOf) -> String {
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
        assert_eq!(pair(3 << 20, 1 << 20), "3.0 -> 1.0 MiB");
        assert_eq!(pair(3 << 20, 512), "3.0 MiB -> 512 B");
        assert_eq!(
            [change(1000, 370), change(1000, 1001), change(1000, 1000), change(0, 1)],
            [
                Some("-63 %".to_owned()),
                Some("+0.1 %".to_owned()),
                Some("+0.0 %".to_owned()),
                None
            ]
        );
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
