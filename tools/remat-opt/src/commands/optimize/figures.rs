//! The three large figures of a page.

use remat_onnxruntime_deploy::{Check, Measured, Outputs};
use remat_page::Figure;

use super::headline::Headline;
use crate::units::{bytes, percent};

/// Memory, time and outputs; `overhead` is the estimated one in per cent.
pub(super) fn of(headline: &Headline, overhead: f64, check: Option<&Check>) -> Vec<Figure> {
    vec![memory(headline, check), time(overhead, check), outputs(check)]
}

/// The largest growth of the process where nothing is set, if that was measured; else what the headline says.
fn memory(headline: &Headline, check: Option<&Check>) -> Figure {
    let grown = |measured: &Measured| measured.resident_first_bytes.max(measured.resident_later_bytes);
    let growth = check.and_then(|check| Some((grown(&check.before)?, grown(&check.after)?)));
    let counted = (headline.before_bytes, headline.after_bytes);
    let ((before, after), about) = match growth {
        Some(growth) => {
            let (first, last) = (bytes(counted.0), bytes(counted.1));
            let about = format!(
                "growth of the process, default session, measured; {first} → {last}: {}",
                headline.of
            );
            (growth, about)
        }
        None => (counted, headline.of.to_string()),
    };
    Figure {
        name: "Memory".to_owned(),
        value: arrow(&bytes(before), &bytes(after)),
        change: Some((change(percent(after, before) - 100.0, 0), after < before)),
        bars: Some((before, after)),
        about,
    }
}

/// Two sizes, the unit once where both have it.
fn arrow(before: &str, after: &str) -> String {
    match (before.split_once(' '), after.split_once(' ')) {
        (Some((figure, unit)), Some((_, other))) if unit == other => format!("{figure} → {after}"),
        _ => format!("{before} → {after}"),
    }
}

/// A share that is added or taken away.
fn change(percent: f64, digits: usize) -> String {
    let text = format!("{percent:+.digits$} %").replace('-', "−");
    match text.contains(|digit| matches!(digit, '1'..='9')) {
        true => text,
        false => text.trim_start_matches(['+', '−']).to_owned(),
    }
}

fn time(overhead: f64, check: Option<&Check>) -> Figure {
    let estimated = change(overhead, 1);
    let measured = check.and_then(|check| check.time_ratio);
    let (value, about) = match measured {
        Some(ratio) => (
            change(100.0 * (ratio - 1.0), 1),
            format!("measured; {estimated} estimated"),
        ),
        None => (estimated, "estimated, not measured".to_owned()),
    };
    Figure {
        name: "Time".to_owned(),
        value,
        about,
        ..Figure::default()
    }
}

fn outputs(check: Option<&Check>) -> Figure {
    let (value, about) = match check.map(|check| (check.outputs, check.seeds)) {
        Some((Outputs::Identical, seeds)) => (
            "bit-identical",
            format!("compared in ONNX Runtime on {}", crate::units::count(seeds, "input")),
        ),
        Some((Outputs::MayRoundOtherwise, _)) => (
            "not compared",
            "sums may be rounded otherwise (`--fission any`)".to_owned(),
        ),
        None => ("not compared", "the models were not run".to_owned()),
    };
    Figure {
        name: "Outputs".to_owned(),
        value: value.to_owned(),
        about,
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_both_have_is_said_once() {
        assert_eq!(arrow("31.2 MiB", "11.7 MiB"), "31.2 → 11.7 MiB");
        assert_eq!(arrow("1.2 GiB", "711.7 MiB"), "1.2 GiB → 711.7 MiB");
    }

    #[test]
    fn a_change_has_its_sign() {
        assert_eq!(
            [(-62.6, 0), (0.14, 1), (-0.04, 1)].map(|(percent, digits)| change(percent, digits)),
            ["−63 %", "+0.1 %", "0.0 %"]
        );
    }
}
