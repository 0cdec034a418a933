//! `remat-opt explain`: what a rule of the checker demands, and why; the JSON schema of a form.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::Args;
use remat::verify::Code;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::args::{Arguments, ReportArgs};
use crate::console;
use crate::document::Body;
use crate::documents::schemas;
use crate::failure::UnknownName;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code of a rule of the checker, `V006` for instance, or a form of JSON, `remat-report/1` or `problem` for instance, whose schema is
    /// printed; without it, all of them are listed.
    #[arg(value_name = "CODE|FORM")]
    name: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

/// The rules of the checker, and the forms of JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
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
}

impl Report {
    fn of(codes: &[Code], schemas: impl IntoIterator<Item = (&'static str, Schema)>) -> Self {
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

/// One line for each rule, then the forms.
fn list() -> String {
    let rules = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title()));
    let forms: Vec<_> = schemas().into_iter().map(|(form, _)| form).collect();
    format!("{}\nforms of JSON: {}\n", rules.collect::<String>(), forms.join(", "))
}

impl Arguments for ExplainArgs {
    fn run(&self, _quiet: bool) -> anyhow::Result<()> {
        let Some(name) = &self.name else {
            return console::report(&self.report, list, || Report::of(Code::ALL, schemas()), Ok(()));
        };
        let is_named = |code: &&Code| code.to_string().eq_ignore_ascii_case(name);
        if let Some(code) = Code::ALL.iter().find(is_named) {
            let text = || format!("{}\n", code.explain().trim_end());
            return console::report(&self.report, text, || Report::of(&[*code], []), Ok(()));
        }
        if let Some((form, schema)) = schemas().into_iter().find(|(form, _)| form == name) {
            let text = || remat_files::document::to_json(&schema);
            return console::report(&self.report, text, || Report::of(&[], [(form, schema.clone())]), Ok(()));
        }
        let forms = schemas().into_iter().map(|(form, _)| form.to_owned());
        let known = Code::ALL.iter().map(ToString::to_string).chain(forms).collect();
        Err(UnknownName::new("rule or form", name, known)).context("`remat-opt explain` lists them")
    }
}
