//! `remat-opt explain`: what a rule of the checker demands, and why; the JSON schema of a form.

mod report;
mod schemas;

use anyhow::Context;
use clap::Args;
use remat::verify::Code;

use crate::args::{Arguments, ReportArgs, Talk};
use crate::console;
use crate::failure::UnknownName;

use self::report::Report;
use self::schemas::schemas;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code of a rule of the checker, `V006` for instance, or a form of JSON, `remat-report/2` or `problem` for instance, whose schema is
    /// printed; without it, all of them are listed.
    #[arg(value_name = "CODE|FORM")]
    name: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

impl Arguments for ExplainArgs {
    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let Some(name) = &self.name else {
            return console::report(&self.report, &Report::of(Code::ALL, schemas()), Ok(()));
        };
        let is_named = |code: &&Code| code.to_string().eq_ignore_ascii_case(name);
        if let Some(code) = Code::ALL.iter().find(is_named) {
            return console::report(&self.report, &Report::of(&[*code], []), Ok(()));
        }
        if let Some(schema) = schemas().into_iter().find(|(form, _)| form == name) {
            return console::report(&self.report, &Report::of(&[], [schema]), Ok(()));
        }
        let forms = schemas().into_iter().map(|(form, _)| form.to_owned());
        let known = Code::ALL.iter().map(ToString::to_string).chain(forms).collect();
        Err(UnknownName::new("rule or form", name, known)).context("`remat-opt explain` lists them")
    }
}
