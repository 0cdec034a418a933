//! Tables in Markdown show as tables: a header, a line of dashes, and rows with as many cells as the header.

use crate::workspace::{Finding, Source};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let lines = source.prose();
    let mut findings = Vec::new();
    let mut end_of_last = None;
    let mut index = 0;
    while index < lines.len() {
        if !is_row(lines[index]) {
            index += 1;
            continue;
        }
        let length = lines[index..].iter().take_while(|line| is_row(line)).count();
        let table = &lines[index..index + length];
        let broken_off =
            end_of_last.is_some_and(|end: usize| lines[end..index].iter().all(|line| line.trim().is_empty()));
        let mut wrong = wrong(table, broken_off);
        index += length;
        end_of_last = Some(index);
        if lines.get(index).is_some_and(|line| continues(line)) {
            wrong.push((
                length,
                "text right below a table becomes a row of it: leave a blank line".to_owned(),
            ));
        }
        let start = index - length + 1;
        findings.extend(
            wrong
                .into_iter()
                .map(|(offset, message)| Finding::new(source, start + offset, message)),
        );
    }
    findings
}

/// Whether the line is one of a table; with four spaces before it, it is code.
fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|') && !line.starts_with("    ")
}

/// Whether Markdown takes the line for a row of the table above it although it has no bars.
fn continues(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with(['#', '<', '>', '`', '-', '*'])
}

/// What is wrong with a table, each with its line counted from the first.
fn wrong(table: &[&str], broken_off: bool) -> Vec<(usize, String)> {
    let headed = table.get(1).is_some_and(|line| is_delimiter(line));
    if !headed {
        let message = if broken_off {
            "rows broken off from the table above by a blank line"
        } else {
            "a table without a header and a line of dashes below it"
        };
        return vec![(0, message.to_owned())];
    }
    if table.len() == 2 {
        return vec![(0, "a table without rows".to_owned())];
    }
    let expected = cells(table[0]).len();
    let other = |(index, line): (usize, &&str)| {
        let count = cells(line).len();
        (count != expected).then(|| (index, format!("{count} cells in a table of {expected} columns")))
    };
    table.iter().enumerate().filter_map(other).collect()
}

/// Whether the line separates a header from its rows.
fn is_delimiter(line: &str) -> bool {
    let dashes = |cell: &&str| {
        let dashes = cell.trim().trim_start_matches(':').trim_end_matches(':');
        !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
    };
    cells(line).iter().all(dashes)
}

/// The cells of a row. A bar after a backslash belongs to its cell, a bar within backquotes does not: that is how Markdown reads tables.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches('|');
    let row = row
        .strip_suffix('|')
        .filter(|rest| !rest.ends_with('\\'))
        .unwrap_or(row);
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in row.match_indices('|') {
        if !row[..at].ends_with('\\') {
            cells.push(&row[start..at]);
            start = at + 1;
        }
    }
    cells.push(&row[start..]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn findings(text: &str) -> Vec<(usize, String)> {
        let found = check(&source("docs/a.md", text));
        found
            .into_iter()
            .map(|finding| (finding.line, finding.message))
            .collect()
    }

    fn lines(text: &str) -> Vec<usize> {
        findings(text).into_iter().map(|(line, _)| line).collect()
    }

    const TABLE: &str = "text\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n";

    #[test]
    fn a_row_with_another_number_of_cells_is_found() {
        let found = findings(&format!("{TABLE}| 1 | 2 | 3 |\n| 1 |\n| 1 | |\n"));
        let expected = ["3 cells in a table of 2 columns", "1 cells in a table of 2 columns"];
        assert_eq!(found, [(6, expected[0].to_owned()), (7, expected[1].to_owned())]);
        assert_eq!(lines("| a | b |\n|---|\n| 1 | 2 |\n"), [2]);
    }

    #[test]
    fn a_table_without_header_or_rows_is_found() {
        assert_eq!(lines("text\n\n| 1 | 2 |\n| 3 | 4 |\n"), [3]);
        assert_eq!(lines("| 1 | 2 |\n"), [1]);
        assert_eq!(findings("| a |\n|---|\n"), [(1, "a table without rows".to_owned())]);
    }

    #[test]
    fn rows_broken_off_by_a_blank_line_are_found() {
        let found = findings(&format!("{TABLE}\n| 3 | 4 |\n"));
        assert_eq!(
            found,
            [(7, "rows broken off from the table above by a blank line".to_owned())]
        );
    }

    #[test]
    fn text_right_below_a_table_is_found() {
        assert_eq!(lines(&format!("{TABLE}text\n")), [6]);
        assert!(lines(&format!("{TABLE}<!-- /bench: x -->\n")).is_empty());
    }

    #[test]
    fn bars_after_a_backslash_belong_to_their_cell_and_bars_in_code_do_not() {
        assert!(lines(&format!("{TABLE}| `x \\| y` | 2 |\n| 1 | 2\\||\n")).is_empty());
        assert_eq!(lines(&format!("{TABLE}| `x | y` | 2 |\n")), [6]);
    }

    #[test]
    fn code_tables_apart_and_other_files_pass() {
        assert!(
            lines(&format!(
                "{TABLE}\n{TABLE}\n```text\n| not\n~~~\n| a table\n```\n    | nor this\n"
            ))
            .is_empty()
        );
        assert!(check(&source("a.rs", "| a\n")).is_empty());
    }
}
