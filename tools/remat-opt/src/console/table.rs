//! Tables without lines around their cells.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// An empty table with these headings; `numbers` are the columns that stand to the right.
pub(crate) fn table<T: ToString>(
    headings: impl IntoIterator<Item = T>,
    numbers: impl IntoIterator<Item = usize>,
) -> Table {
    let headings: Vec<_> = headings.into_iter().map(|heading| heading.to_string()).collect();
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(headings);
    for number in numbers {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
