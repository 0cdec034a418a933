//! Names of SSA values, of weights and of functions.

use rustc_hash::{FxHashMap, FxHashSet};

/// Gives out names that were not given out before.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: FxHashSet<String>,
    next: FxHashMap<String, u32>,
}

impl Names {
    /// An identifier close to `name`: letters, digits and `_`, beginning with none of the digits.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        let base = identifier(name);
        if self.taken.insert(base.clone()) {
            return base;
        }
        let next = self.next.entry(base.clone()).or_insert(0);
        loop {
            let candidate = format!("{base}_{next}");
            *next += 1;
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// The characters of `name` that every kind of identifier in MLIR allows; others become `_`.
pub(crate) fn identifier(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut text: String = name.chars().map(kept).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_stay_apart() {
        let mut names = Names::default();
        assert_eq!(names.fresh("layer/0.w"), "layer_0_w");
        assert_eq!(names.fresh("layer.0.w"), "layer_0_w_0");
        assert_eq!(names.fresh("layer_0_w_0"), "layer_0_w_0_0");
        assert_eq!(names.fresh("12"), "_12");
        assert_eq!(names.fresh(""), "_");
        assert_eq!(names.fresh("größe"), "gr__e");
    }
}
