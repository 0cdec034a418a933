//! `remat-opt explain`: what a rule of the checker demands, and why; the JSON schema of a form.

mod report;
mod schemas;

use anyhow::Context;
use clap::Args;
use remat::verify::Code;

use crate::args::{Arguments, ReportArgs};
use crate::console;
use crate::failure::UnknownName;

use self::report::Report;
use self::schemas::schemas;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code of a rule of the checker, `V006` for instance, or a form of JSON, `remat-report/1` or `problem` for instance, whose schema is
    /// printed; without it, all of them are listed.
    #[arg(value_name = "CODE|FORM")]
    name: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

/// One line for each rule, then the forms.
fn list() -> String {
    let rules = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title()));
    let forms = schemas().into_iter().map(|(form, _)| format!("{form}\n"));
    format!(
        "{}\nForms of JSON:\n{}",
        rules.collect::<String>(),
        forms.collect::<String>()
    )
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
