//! What `remat-opt explain` prints with `--format json`.

use std::collections::BTreeMap;

use remat::verify::Code;
use remat_files::document::to_json;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::document::Body;

/// The rules of the checker, and the forms of JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Report {
    /// The rule that was asked for, or all of them.
    rules: Vec<Rule>,
    /// The schema of the form that was asked for, or all of them, by the names of the forms.
    schemas: BTreeMap<&'static str, Schema>,
}

/// A rule of the checker.
#[derive(Serialize, JsonSchema)]
struct Rule {
    /// Its code, `V006` for instance.
    code: String,
    /// What it demands, in a line.
    title: String,
    /// What it demands and why, as Markdown.
    explanation: String,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-explain/1";

    /// The explanation or the schema that was asked for; else a line for each rule, then the forms.
    fn text(&self) -> String {
        if let [rule] = &self.rules[..] {
            return format!("{}\n", rule.explanation);
        }
        let mut schemas = self.schemas.iter();
        if let (true, Some((_, schema)), None) = (self.rules.is_empty(), schemas.next(), schemas.next()) {
            return to_json(schema);
        }
        let rules = self.rules.iter().map(|rule| format!("{}  {}\n", rule.code, rule.title));
        let forms = self.schemas.keys().map(|form| format!("{form}\n"));
        format!(
            "{}\nForms of JSON:\n{}",
            rules.collect::<String>(),
            forms.collect::<String>()
        )
    }
}

impl Report {
    pub(super) fn of(codes: &[Code], schemas: impl IntoIterator<Item = (&'static str, Schema)>) -> Self {
        let rule = |code: &Code| Rule {
            code: code.to_string(),
            title: code.title().to_owned(),
            explanation: code.explain().trim_end().to_owned(),
        };
        Self {
            rules: codes.iter().map(rule).collect(),
            schemas: schemas.into_iter().collect(),
        }
    }
}
