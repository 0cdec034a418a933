//! The report for people.

use comfy_table::Table;
use remat_files::{line, shown};

use super::model::{Checked, Difference, Limit};
use super::report::{BaselineRecord, Report};
use crate::lines::{self, Entries};
use crate::{console, units};

/// How many characters of a commit are shown.
const COMMIT: usize = 12;
/// Columns of the longest word that a line begins with.
const WIDTH: usize = 9;

/// All that is known of one model; of several a table, and all of those that exceed a limit.
pub(super) fn text(report: &Report) -> String {
    let all = |model: &Checked| format!("{}\n{}", shown(model.name()), of_model(model, report.baseline.as_ref()));
    let mut text = match &report.models[..] {
        [model] => all(model),
        models => {
            let exceeded = models.iter().filter(|model| model.is_exceeded());
            let exceeded = exceeded.map(|model| format!("\n{}", all(model)));
            format!("{}\n{}", table(report).trim_fmt(), exceeded.collect::<String>())
        }
    };
    text.extend(report.notes(line).into_iter().map(|note| note + "\n"));
    text
}

fn table(report: &Report) -> Table {
    let titles = ["model", "limit", "now", "before", "difference", "op at the peak"];
    let mut table = console::table(titles, 1..4);
    for model in &report.models {
        let since = model.since.as_ref();
        table.add_row([
            line(model.name()),
            model.limit().map_or_else(String::new, units::bytes),
            report.now(model),
            since.map_or_else(String::new, |since| units::bytes(since.before_bytes)),
            since.map_or_else(String::new, Difference::text),
            line(model.op()),
        ]);
    }
    table
}

/// All that is known of a model, in lines; what is exceeded comes first.
fn of_model(model: &Checked, baseline: Option<&BaselineRecord>) -> String {
    let mut entries = Entries::default();
    let (holding, exceeded): (Vec<_>, Vec<_>) = model.limits.iter().partition(|limit| limit.holds);
    entries.add_all("Exceeded", exceeded.into_iter().map(Limit::text));
    let (bytes, of) = model.now.bytes();
    let bytes = units::bytes(bytes);
    let memory = format!("{bytes}   growth of the process in runs, default session, {of}");
    let predicted = model.now.measured_bytes.map(|_| model.now.predicted_bytes);
    let predicted = predicted.map(|bytes| format!(" ({} predicted)", units::bytes(bytes)));
    entries.add("Memory", memory + &predicted.unwrap_or_default());
    entries.add_all("Limit", holding.into_iter().map(Limit::text));
    if let Some(baseline) = baseline {
        entries.add_all("Before", before(model, baseline));
    }
    let quoted = |name: &str| format!("`{}`", shown(name));
    let other = model.op_before().map(|op| format!(", before op {}", quoted(op)));
    let op = format!("op {}{}", quoted(model.op()), other.unwrap_or_default());
    entries.add_all("Peak", [op, model.largest(quoted).join(", ")]);
    lines::text(&entries.into_vec(), WIDTH)
}

/// What changed since the baseline.
fn before(model: &Checked, baseline: &BaselineRecord) -> Vec<String> {
    let Some(since) = &model.since else {
        return vec!["the baseline does not have this model".to_owned()];
    };
    let commit = baseline.origin.commit.as_deref();
    let commit = commit.map(|commit| commit.chars().take(COMMIT).collect::<String>());
    let commit = commit.map(|commit| format!(" at commit {}", shown(commit)));
    let (now, before) = (&model.now, &since.before);
    let bytes = units::bytes(since.before_bytes);
    let mut lines = vec![format!("{bytes}{}: {}", commit.unwrap_or_default(), since.text())];
    if before.ops != now.ops {
        lines.push(format!("{} -> {} ops", before.ops, now.ops));
    }
    if before.weights_bytes != now.weights_bytes {
        let weights = units::pair(before.weights_bytes, now.weights_bytes);
        lines.push(format!("{weights} of weights"));
    }
    lines
}
