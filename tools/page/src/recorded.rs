//! What a program did that has no plan: what takes bytes from when to when.

use serde::Deserialize;

/// Steps of a program, and what takes bytes during them.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Recorded {
    /// What it is called.
    pub name: String,
    /// Names of the kinds of what takes bytes; at most seven have a color.
    pub kinds: Vec<String>,
    /// The op of each step, and what is said of it.
    pub steps: Vec<(String, String)>,
    /// What takes bytes.
    pub lives: Vec<Life>,
}

/// Something that takes bytes from one step to another.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Life {
    /// What it is called.
    pub name: String,
    /// Where it is made.
    pub about: String,
    /// Its kind, by its place among the names.
    pub kind: u8,
    /// The first step.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// How many bytes.
    pub bytes: u64,
}

impl Recorded {
    /// Those that have a kind with a name and lie within the steps.
    pub(crate) fn known_lives(&self) -> impl Iterator<Item = &Life> {
        let steps = self.steps.len();
        let is_known = move |life: &&Life| {
            usize::from(life.kind) < self.kinds.len().min(7) && life.from < life.to && life.to <= steps
        };
        self.lives.iter().filter(is_known)
    }

    /// Bytes that are taken during each step.
    #[must_use]
    pub fn memory(&self) -> Vec<u64> {
        let mut changes = vec![(0_u64, 0_u64); self.steps.len() + 1];
        for life in self.known_lives() {
            changes[life.from].0 += life.bytes;
            changes[life.to].1 += life.bytes;
        }
        let mut taken = 0;
        let during = changes.iter().take(self.steps.len()).map(|&(comes, goes)| {
            taken = taken + comes - goes;
            taken
        });
        during.collect()
    }
}
