//! Tables as text, Markdown or JSON, and in documents, where they are regenerated in place.
//!
//! A table stands between the lines `<!-- bench: NAME -->` and `<!-- /bench: NAME -->`; everything else is left alone.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table as Layout, TableStyle};

/// How a table is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Form {
    /// Aligned columns.
    Text,
    /// For documents.
    Markdown,
    /// One object per row.
    Json,
}

/// Where tables go.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Output {
    /// Form of the tables.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) format: Form,
    /// Also write the tables into this document, between their marks; may be repeated.
    #[arg(long, value_name = "DOCUMENT")]
    pub(crate) write: Vec<PathBuf>,
}

impl Output {
    /// Prints a table, and puts it into the documents, each time between the marks of `name` and below the words that say how it was made.
    ///
    /// # Errors
    /// If a document cannot be read or written, or has no such marks.
    pub(crate) fn give(&self, name: &str, how: &str, table: &Table) -> anyhow::Result<()> {
        crate::console::print(&table.render(self.format));
        self.write_all(name, &format!("{how}{}", table.render(Form::Markdown)))
    }

    /// Puts text into the documents, between the marks of `name`.
    ///
    /// # Errors
    /// As of [`Output::give`].
    pub(crate) fn write_all(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let mut documents = self.write.iter();
        documents.try_for_each(|document| replace_in(document, name, text))
    }
}

/// Rows under a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    text_columns: usize,
    header: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first columns hold text, and the others figures. Rows have as many cells as there are columns; short ones are filled up.
    pub(crate) fn new(text_columns: usize, header: &'static [&'static str], rows: Vec<Vec<String>>) -> Self {
        Self {
            text_columns,
            header,
            rows,
        }
    }

    /// The table in a form, with a line break at its end.
    pub(crate) fn render(&self, form: Form) -> String {
        let text = match form {
            Form::Json => self.json(),
            Form::Markdown => self.layout(ASCII_MARKDOWN),
            Form::Text => self.layout(NOTHING),
        };
        text + "\n"
    }

    fn filled(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.rows.iter().map(|row| {
            let mut row = row.clone();
            row.resize(self.header.len(), String::new());
            row
        })
    }

    fn json(&self) -> String {
        let object = |row: Vec<String>| {
            let fields = self.header.iter().zip(row);
            serde_json::Value::Object(fields.map(|(&key, value)| (key.to_owned(), value.into())).collect())
        };
        format!("{:#}", serde_json::Value::Array(self.filled().map(object).collect()))
    }

    fn layout(&self, style: TableStyle) -> String {
        let mut layout = Layout::new();
        layout.load_style(style);
        layout.set_header(self.header.to_vec());
        layout.add_rows(self.filled());
        for column in layout.column_iter_mut().skip(self.text_columns) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        layout.trim_fmt()
    }
}

/// Replaces what stands between the marks of `name`.
///
/// # Errors
/// If the file cannot be read or written, or has no such marks.
pub(crate) fn replace_in(path: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    let marks = || format!("`{shown}` has no marks `<!-- bench: {name} -->` and `<!-- /bench: {name} -->`");
    let text = replaced(&text, name, content).with_context(marks)?;
    remat_files::write(path, text).with_context(|| format!("cannot write `{shown}`"))
}

fn replaced(text: &str, name: &str, content: &str) -> Option<String> {
    let (open, close) = (format!("<!-- bench: {name} -->\n"), format!("<!-- /bench: {name} -->"));
    let (before, rest) = text.split_once(&open)?;
    let (_, after) = rest.split_once(&close)?;
    Some(format!("{before}{open}{}\n{close}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_filled_up_and_figures_stand_to_the_right() {
        let table = Table::new(
            1,
            &["graph", "%"],
            vec![vec!["a".into(), "12.5".into()], vec!["b".into()]],
        );
        let expected = "| graph |    % |\n|-------|------|\n| a     | 12.5 |\n| b     |      |\n";
        assert_eq!(table.render(Form::Markdown), expected);
        assert!(table.render(Form::Json).contains(r#""graph": "b""#));
    }

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let text = "a\n<!-- bench: x -->\nold\nolder\n<!-- /bench: x -->\nb\n<!-- bench: y -->\n<!-- /bench: y -->\n";
        let new = replaced(text, "x", "new\n").unwrap();
        assert_eq!(new, text.replace("old\nolder", "new"));
        assert_eq!(replaced(&new, "x", "new"), Some(new.clone()));
        assert!(replaced(text, "y", "new").is_some_and(|text| text.contains("old") && text.contains("new")));
        assert_eq!(replaced(text, "z", "new"), None);
        assert_eq!(replaced("<!-- bench: z -->\n", "z", "new"), None);
    }
}
