//! Rows as tables, one for each folder.

use crate::table::{Form, Table};

use super::row::{Change, Deployed, Opened, Outcome, Row};

/// The columns. Peaks are those of the process's heap while the model runs, above what its weights and inputs take, under the runtime's
/// default optimization level and order: with the memory arena off, then with it in the first run and in later ones.
const HEADER: &[&str] = &[
    "model",
    "import",
    "result",
    "before MB",
    "predicted MB",
    "after MB",
    "arena: before MB",
    "arena: after MB",
    "later: before MB",
    "later: after MB",
    "time %",
    "bits",
];

/// Columns of text at the start.
const TEXT_COLUMNS: usize = 3;

/// A peak is lower, higher or off what was predicted by more than this share of it, in thousandths, and these bytes: tables of the runtime
/// and the allocator's granularity.
const SAME_PERMILLE: u64 = 5;
const SAME_BYTES: u64 = 1 << 16;
const PREDICTED_PERMILLE: u64 = 10;
const PREDICTED_BYTES: u64 = 200_000;

/// Messages are told up to so many characters; the file of rows has all of them.
const MESSAGE: usize = 240;

/// The tables of all folders under their settings.
pub(super) fn text(rows: &[Row], form: Form) -> String {
    let mut text = String::new();
    let mut rest = rows;
    if let Some(row) = rows.first() {
        text += &settings(row);
    }
    while let Some(first) = rest.first() {
        let end = rest
            .iter()
            .position(|row| row.folder != first.folder)
            .unwrap_or(rest.len());
        let (folder, others) = rest.split_at(end);
        rest = others;
        text += &format!("\n## {}\n\n{}\n\n", first.folder, summary(folder));
        let rows = folder.iter().map(|row| cells(row, form)).collect();
        text += &Table::new(TEXT_COLUMNS, HEADER, rows).render(form);
    }
    text
}

fn settings(row: &Row) -> String {
    let settings = &row.settings;
    let given: Vec<String> = settings
        .dims
        .given
        .iter()
        .map(|(name, value)| format!("`{name}` {value}, "))
        .collect();
    format!(
        "Budget `{}`, {} s to search and measure, at most {} s and {:.0} GB for each process, one thread, ONNX Runtime {}. Open dimensions of inputs, \
         where the row says nothing else: {}{} for a batch, {} for others.\n",
        settings.budget,
        settings.time_ms as f64 / 1e3,
        settings.limit_ms / 1_000,
        settings.memory_bytes as f64 / 1e9,
        settings.runtime,
        given.concat(),
        settings.dims.batch,
        settings.dims.other,
    )
}

/// How many models came how far.
fn summary(rows: &[Row]) -> String {
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let deployed = |is: fn(&Deployed) -> bool| {
        count(&move |row: &Row| matches!(&row.deployed, Some(Outcome::Done(done)) if is(done)))
    };
    format!(
        "{} models: {} imported, {} run before and after with the same bits, {} of them in less memory with the arena off, {} in less in the first run with \
         it; {} in more than the original in any of the three settings; {} predicted within 1 % and 0.2 MB.",
        rows.len(),
        count(&|row| matches!(row.opened, Outcome::Done(_))),
        deployed(|done| done.seeds > 0),
        deployed(|done| is_lower(done.exact)),
        deployed(|done| is_lower(done.first)),
        deployed(|done| [done.exact, done.first, done.later].into_iter().any(is_higher)),
        deployed(|done| done.exact.after.is_some_and(|after| is_near(
            done.predicted,
            after,
            PREDICTED_PERMILLE,
            PREDICTED_BYTES
        ))),
    )
}

fn is_near(a: u64, b: u64, permille: u64, bytes: u64) -> bool {
    let share = u128::from(b) * u128::from(permille) / 1_000;
    u128::from(a.abs_diff(b)) <= share + u128::from(bytes)
}

fn is_lower(change: Change) -> bool {
    let known = change.before.zip(change.after);
    known.is_some_and(|(before, after)| after < before && !is_near(after, before, SAME_PERMILLE, SAME_BYTES))
}

fn is_higher(change: Change) -> bool {
    let known = change.before.zip(change.after);
    known.is_some_and(|(before, after)| after > before && !is_near(after, before, SAME_PERMILLE, SAME_BYTES))
}

fn cells(row: &Row, form: Form) -> Vec<String> {
    let mut cells = vec![row.model.clone(), import(&row.opened)];
    match &row.deployed {
        None => {}
        Some(Outcome::Failed(why)) => cells.push(format!("failed: {why}")),
        Some(Outcome::Done(done)) => {
            cells.push(result(done));
            cells.extend(figures(done));
        }
    }
    cells.iter().map(|cell| short(cell, form)).collect()
}

fn import(opened: &Outcome<Opened>) -> String {
    match opened {
        Outcome::Failed(why) => why.clone(),
        Outcome::Done(opened) => {
            let dims = opened.dims.iter().map(|(name, value)| format!("{name}={value}"));
            let measured = Some(opened.measured_sizes).filter(|&count| count > 0);
            let notes: Vec<String> = dims
                .chain(measured.map(|count| format!("{count} sizes measured")))
                .collect();
            if notes.is_empty() {
                "ok".to_owned()
            } else {
                format!("ok ({})", notes.join(", "))
            }
        }
    }
}

/// Whether something was gained, and if not, why.
fn result(done: &Deployed) -> String {
    let mut notes = if is_lower(done.exact) {
        vec![format!("lower; {}", done.strategy)]
    } else if is_lower(done.first) || is_lower(done.later) {
        vec![format!("lower with the arena; {}", done.strategy)]
    } else if !done.rejected.is_empty() {
        vec![format!("nothing gained; {}", done.rejected.join("; "))]
    } else if done.exact.after.is_none() {
        vec![format!("not measured; {}", done.strategy)]
    } else {
        vec!["nothing gained; no lower plan was found".to_owned()]
    };
    if [done.exact, done.first, done.later].into_iter().any(is_higher) {
        notes.insert(0, "HIGHER".to_owned());
    }
    if !done.left_out.is_empty() {
        notes.push(format!("no time for {}", done.left_out.join(", ")));
    }
    notes.join("; ")
}

fn figures(done: &Deployed) -> impl Iterator<Item = String> {
    let megabytes =
        |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.2}", bytes as f64 / 1e6));
    let time = done
        .time_ratio
        .map_or_else(|| "?".to_owned(), |ratio| format!("{:+.1}", 100.0 * (ratio - 1.0)));
    let bits = if done.seeds > 0 { "same" } else { "?" };
    let peaks = [
        done.exact.before,
        Some(done.predicted),
        done.exact.after,
        done.first.before,
        done.first.after,
        done.later.before,
        done.later.after,
    ];
    peaks.into_iter().map(megabytes).chain([time, bits.to_owned()])
}

/// A cell of one line, of no more than so many characters.
fn short(cell: &str, form: Form) -> String {
    let line = cell.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(MESSAGE).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    if form == Form::Markdown {
        short = short.replace('|', "\\|").replace('<', "&lt;");
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MB: u64 = 1_000_000;

    fn change(before: u64, after: u64) -> Change {
        Change {
            before: Some(before),
            after: Some(after),
        }
    }

    fn deployed(exact: Change) -> Option<Outcome<Deployed>> {
        let same = change(16 * MB, 16 * MB);
        let row = json!({
            "strategy": "fused", "rejected": [], "is_rewritten": true, "recomputes": 1, "predicted": 6 * MB,
            "exact": exact, "first": same, "later": same, "time_ratio": 1.015, "seeds": 2, "left_out": [], "ms": 1,
        });
        Some(Outcome::Done(serde_json::from_value(row).expect("it is a row")))
    }

    fn row(folder: &str, deployed: Option<&Outcome<Deployed>>) -> Row {
        let opened = match deployed {
            Some(_) => json!({ "done": { "dims": { "batch": 1 }, "ops": 3, "measured_sizes": 2, "ms": 1 } }),
            None => json!({ "failed": "a | b\n<c>" }),
        };
        let row = json!({
            "folder": folder, "model": "m", "hash": "", "opened": opened, "deployed": deployed,
            "settings": {
                "budget": "auto", "time_ms": 1_500, "limit_ms": 60_000, "memory_bytes": 8_000_000_000u64, "program": "1",
                "runtime": "2", "dims": { "given": {}, "batch": 1, "other": 64 },
            },
        });
        serde_json::from_value(row).expect("it is a row")
    }

    #[test]
    fn each_folder_has_its_table_and_what_came_of_its_models() {
        let lower = row("a", deployed(change(10 * MB, 6 * MB)).as_ref());
        let higher = row("a", deployed(change(6 * MB, 10 * MB)).as_ref());
        let crashed = row("a", Some(&Outcome::Failed("crashed (signal 9)".to_owned())));
        let text = text(&[lower, higher, crashed, row("b", None)], Form::Markdown);
        for part in [
            "## a\n\n3 models: 3 imported, 2 run before and after with the same bits, 1 of them in less",
            "0 in less in the first run with it; 1 in more than the original in any of the three settings; 1 predicted within",
            "| m     | ok (batch=1, 2 sizes measured) | lower; fused",
            "| HIGHER; nothing gained; no lower plan was found |",
            "| failed: crashed (signal 9) ",
            "|     10.00 |         6.00 |     6.00 |            16.00 |",
            "|   +1.5 | same |",
            "## b\n\n1 models: 0 imported",
            "| a \\| b &lt;c> |",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_peak_is_lower_only_beyond_what_the_runtime_takes_for_itself() {
        assert!(is_lower(change(10 * MB, 9 * MB)));
        assert!(!is_lower(change(10 * MB, 10 * MB - 1_000)));
        assert!(!is_higher(change(10 * MB, 10 * MB + 1_000)));
        assert!(!is_lower(Change {
            before: None,
            after: Some(1)
        }));
    }
}
