//! Formulas in words: `4*batch*floor((height+1)/2)`.

use std::collections::BTreeSet;

use crate::formula::{Derived, Formula};
use crate::variables::Variables;

/// Variables whose text is longer than this are called by a letter.
const MOST_TEXT: usize = 60;

/// How the variables of a table are called.
#[derive(Clone, Debug)]
pub struct Names {
    /// By variable.
    names: Vec<String>,
    /// By variable: what it is, if its name does not say that.
    definitions: Vec<Option<String>>,
    /// By variable: those that it is made of.
    parts: Vec<BTreeSet<usize>>,
}

impl Variables {
    /// How the variables are called.
    #[must_use]
    pub fn names(&self) -> Names {
        let mut names = Names {
            names: Vec::new(),
            definitions: Vec::new(),
            parts: Vec::new(),
        };
        for dim in self.dims() {
            names.push(format!("d{}", names.names.len()), quoted(&dim.name), BTreeSet::new());
        }
        for derived in self.derived() {
            let (text, parts) = names.derived(derived);
            names.push(format!("v{}", names.names.len()), text, parts);
        }
        names
    }
}

impl Names {
    /// A formula in these names.
    #[must_use]
    pub fn text(&self, formula: &Formula) -> String {
        formula.text(|variable| {
            self.names
                .get(variable)
                .map_or_else(|| format!("d{variable}"), Clone::clone)
        })
    }

    /// What the names in these formulas are that do not say it: `v7 = max(...)`.
    pub fn definitions<'f>(&self, formulas: impl IntoIterator<Item = &'f Formula>) -> Vec<String> {
        let mut pending: BTreeSet<usize> = formulas.into_iter().flat_map(variables).collect();
        let mut found = Vec::new();
        while let Some(variable) = pending.pop_last() {
            pending.extend(self.parts.get(variable).into_iter().flatten());
            let definition = self.definitions.get(variable).and_then(Option::as_ref);
            found.extend(definition.map(|definition| format!("{} = {definition}", self.names[variable])));
        }
        found.reverse();
        found
    }

    /// Adds a variable: by its text, or where that is long, by a letter.
    fn push(&mut self, letter: String, text: String, parts: BTreeSet<usize>) {
        let is_short = text.chars().count() <= MOST_TEXT;
        let (name, definition) = if is_short { (text, None) } else { (letter, Some(text)) };
        self.names.push(name);
        self.definitions.push(definition);
        self.parts.push(parts);
    }

    fn derived(&self, derived: &Derived) -> (String, BTreeSet<usize>) {
        let both = |one: &Formula, other: &Formula| variables(one).chain(variables(other)).collect();
        match derived {
            Derived::Quotient(of, by) if of.terms().count() == 1 => {
                (format!("floor({}/{by})", self.text(of)), variables(of).collect())
            }
            Derived::Quotient(of, by) => (format!("floor(({})/{by})", self.text(of)), variables(of).collect()),
            Derived::Max(one, other) => (
                format!("max({}, {})", self.text(one), self.text(other)),
                both(one, other),
            ),
            Derived::Min(one, other) => (
                format!("min({}, {})", self.text(one), self.text(other)),
                both(one, other),
            ),
        }
    }
}

/// A name as part of a formula: in quotes, if it looks like one itself.
fn quoted(name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|letter| letter.is_alphanumeric() || "_.:/[]".contains(letter));
    if is_plain { name.to_owned() } else { format!("`{name}`") }
}

fn variables(formula: &Formula) -> impl Iterator<Item = usize> {
    formula
        .terms()
        .flat_map(|(_, powers)| powers)
        .map(|&(variable, _)| variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::OpenDim;

    #[test]
    fn variables_are_called_by_what_they_are_and_long_ones_by_a_letter() {
        let dim = |name: &str| OpenDim {
            name: name.to_owned(),
            least: 1,
            most: 100,
        };
        let mut table = Variables::new(vec![dim("batch"), dim("height")]);
        let (batch, height) = (Formula::variable(0), Formula::variable(1));
        let half = table.floor(&height.plus(&Formula::constant(1)).unwrap(), 2).unwrap();
        let size = batch.times(&half).unwrap().times(&half).unwrap();
        let names = table.names();
        assert_eq!(names.text(&size), "batch*floor((height+1)/2)^2");
        assert!(names.definitions([&size]).is_empty());

        let long = table
            .max(&size, &batch.times(&batch).unwrap().plus(&half).unwrap())
            .unwrap();
        let names = table.names();
        assert_eq!(names.text(&long), "v3");
        let definition = "v3 = max(batch*floor((height+1)/2)^2, batch^2+floor((height+1)/2))";
        assert_eq!(names.definitions([&long]), [definition]);
    }

    #[test]
    fn names_that_look_like_formulas_or_are_long_are_told_apart() {
        let dim = |name: String| OpenDim {
            name,
            least: 1,
            most: 100,
        };
        let long = "x".repeat(1000);
        let table = Variables::new(vec![dim("past + 1".to_owned()), dim(long.clone())]);
        let sum = Formula::sum([(4, vec![(0, 1)]), (1, vec![(1, 1)])]);
        assert_eq!(table.names().text(&sum), "4*`past + 1`+d1");
        assert_eq!(table.names().definitions([&sum]), [format!("d1 = {long}")]);
    }
}
