//! Reports as lines, each after the word that it begins with.

use schemars::JsonSchema;
use serde::Serialize;

/// What a report says after one word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The word.
    pub(crate) name: String,
    /// The lines after it, without the word.
    pub(crate) lines: Vec<String>,
}

/// The entries of a report, in its order.
#[derive(Default)]
pub(crate) struct Entries(Vec<Entry>);

impl Entries {
    /// Adds a line with a word of its own.
    pub(crate) fn add(&mut self, name: &str, line: impl Into<String>) {
        self.add_all(name, [line.into()]);
    }

    /// Adds lines under one word; nothing where there is no line.
    pub(crate) fn add_all(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        let lines: Vec<String> = lines.into_iter().collect();
        let name = name.to_owned();
        self.0.extend((!lines.is_empty()).then_some(Entry { name, lines }));
    }

    pub(crate) fn into_vec(self) -> Vec<Entry> {
        self.0
    }
}

/// The entries as text; lines stand at the column after the longest word there may be, of `width` letters.
pub(crate) fn text(entries: &[Entry], width: usize) -> String {
    let line = |(name, line): (&str, &String)| format!("{name:width$} {line}\n");
    let lines = entries.iter().flat_map(|entry| {
        let names = std::iter::once(entry.name.as_str()).chain(std::iter::repeat(""));
        names.zip(&entry.lines)
    });
    lines.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_of_a_word_stand_below_its_first_one() {
        let mut entries = Entries::default();
        entries.add_all("Memory", ["2.0 -> 1.0 MiB".to_owned(), "first run".to_owned()]);
        entries.add_all("Less", []);
        entries.add("Time", "+0.1 %");
        let text = text(&entries.into_vec(), 8);
        assert_eq!(text, "Memory   2.0 -> 1.0 MiB\n         first run\nTime     +0.1 %\n");
    }
}
