//! Tables as text, Markdown or JSON.

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

/// Rows under a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    /// How many columns hold text, before those that hold figures.
    pub(crate) text_columns: usize,
    /// Names of the columns.
    pub(crate) header: &'static [&'static str],
    /// As many cells each as there are columns; short rows are filled up.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// The table in a form, with a line break at its end.
    pub(crate) fn render(&self, form: Form) -> String {
        let text = match form {
            Form::Json => self.json(),
            Form::Markdown => self.layout(ASCII_MARKDOWN),
            Form::Text => self.layout(NOTHING),
        };
        text + "\n"
    }

    /// Prints the table.
    pub(crate) fn print(&self, form: Form) {
        crate::console::print(&self.render(form));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_filled_up_and_figures_stand_to_the_right() {
        let table = Table {
            text_columns: 1,
            header: &["graph", "%"],
            rows: vec![vec!["a".into(), "12.5".into()], vec!["b".into()]],
        };
        let expected = "| graph |    % |\n|-------|------|\n| a     | 12.5 |\n| b     |      |\n";
        assert_eq!(table.render(Form::Markdown), expected);
        assert!(table.render(Form::Json).contains(r#""graph": "b""#));
    }
}
