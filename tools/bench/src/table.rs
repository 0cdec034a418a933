//! Tables as text, Markdown or JSON.

use clap::ValueEnum;
use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table};

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

/// Prints rows under a header; the first column is text, the others are figures.
#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
pub(crate) fn print(header: &[&str], rows: &[Vec<String>], form: Form) {
    if form == Form::Json {
        let object = |row: &Vec<String>| {
            let fields = header
                .iter()
                .zip(row)
                .map(|(&key, value)| (key.to_owned(), value.clone().into()));
            serde_json::Value::Object(fields.collect())
        };
        let rows: Vec<serde_json::Value> = rows.iter().map(object).collect();
        println!("{:#}", serde_json::Value::Array(rows));
        return;
    }
    let mut table = Table::new();
    table.load_style(if form == Form::Markdown {
        ASCII_MARKDOWN
    } else {
        NOTHING
    });
    table.set_header(header.to_vec());
    table.add_rows(rows.iter().cloned());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{}", table.trim_fmt());
}
