//! The report as a comment of a pull request.

use remat_files::line;

use super::model::Checked;
use super::report::Report;
use crate::units;

/// What the comment begins with, so that a later one can take its place.
const MARK: &str = "<!-- remat-opt check -->";

/// How many characters of a commit are shown: all of its hash.
const HASH: usize = 40;

/// The comment.
pub(super) fn comment(report: &Report) -> String {
    let with_baseline = report.baseline.is_some();
    let over = report.models.iter().filter(|model| model.is_exceeded()).count();
    let title = match over {
        0 => "Memory".to_owned(),
        count => format!("Memory: {} over the limit", units::count(count, "model")),
    };
    let mut text = format!("{MARK}\n### {title}\n\n");
    let titles = ["model", "limit", "now", "before", "difference", "op at the peak"];
    let shown = |place: usize| with_baseline || !(3..=4).contains(&place);
    let row = |cells: [String; 6]| {
        let cells = cells.into_iter().enumerate().filter(|&(place, _)| shown(place));
        cells.map(|(_, cell)| format!("| {cell} ")).collect::<String>() + "|\n"
    };
    text += &row(titles.map(str::to_owned));
    text += &row([0, 1, 1, 1, 1, 0].map(|right| ["---", "---:"][right].to_owned()));
    for model in &report.models {
        text += &row(cells(report, model));
    }
    for model in report.models.iter().filter(|model| model.is_exceeded()) {
        text += &format!(
            "\n{}: {}. In memory at its peak: ",
            code(model.name()),
            model.exceeded()
        );
        text += &(model.largest(code).join(", ") + "\n");
    }
    text += &format!("\n{}.", report.about(code));
    if let Some(baseline) = &report.baseline {
        let commit = |of: &Option<String>| match of {
            Some(commit) => code(&commit.chars().take(HASH).collect::<String>()),
            None => "not stated".to_owned(),
        };
        text += &format!(
            " Commit now: {}; before: {}.",
            commit(&report.origin.commit),
            commit(&baseline.origin.commit)
        );
    }
    text + "\n"
}

fn cells(report: &Report, model: &Checked) -> [String; 6] {
    let now = report.now(model);
    let now = if model.is_exceeded() { format!("**{now}**") } else { now };
    let limit = model.limit().map_or_else(|| "none".to_owned(), units::bytes);
    let (before, difference) = match &model.since {
        Some(found) => (units::bytes(found.before_bytes), found.text()),
        None => ("not in the baseline".to_owned(), String::new()),
    };
    let op = match model.op_before() {
        Some(before) => format!("{}, before {}", code(model.op()), code(before)),
        None => code(model.op()),
    };
    [code(model.name()), limit, now, before, difference, op]
}

/// A name as code, where nothing in it means anything, in a cell of a table too.
fn code(name: &str) -> String {
    let name = line(name);
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    if !name.contains(['|', '`', '\\']) {
        return format!("`{name}`");
    }
    // References to characters are never syntax.
    let escaped = name.chars().map(|c| match c.is_ascii_punctuation() {
        true => format!("&#{};", u32::from(c)),
        false => c.to_string(),
    });
    format!("<code>{}</code>", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::baseline::Origin;
    use super::super::report::BaselineRecord;
    use super::*;

    #[test]
    fn words_of_a_baseline_are_code() {
        let words = |version: &str| Origin {
            commit: Some(version.to_owned()),
            runtime: Some(version.to_owned()),
        };
        let report = Report {
            origin: words("1.31.1"),
            baseline: Some(BaselineRecord {
                path: "memory.json".into(),
                origin: words("`|\n# <img src=x>"),
            }),
            models: Vec::new(),
        };
        let comment = comment(&report);
        assert!(!comment.contains("<img") && !comment.contains("\n# "), "{comment}");
        assert_eq!(comment.matches("&#60;img").count(), 2, "{comment}");
    }

    #[test]
    fn a_name_cannot_leave_its_cell() {
        assert_eq!(code("block_1/conv1 <b> @you"), "`block_1/conv1 <b> @you`");
        assert_eq!(code("a|b\n|"), "<code>a&#124;b&#92;n&#124;</code>");
        assert_eq!(code("`</code>"), "<code>&#96;&#60;&#47;code&#62;</code>");
        assert_eq!(code(r"a\|"), "<code>a&#92;&#124;</code>");
        assert_eq!(code(""), "(no name)");
    }
}
