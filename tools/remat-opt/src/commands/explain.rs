//! `remat-opt explain`: what a rule of the checker demands, and why.

use anyhow::Context;
use clap::Args;
use remat::verify::Code;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Arguments, ReportArgs};
use crate::console;
use crate::document::Body;
use crate::failure::UnknownName;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code of the rule, `V006` for instance; without it, all rules are listed.
    #[arg(value_name = "CODE")]
    code: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

/// The rules of the checker.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// The rule that was asked for, or all of them.
    rules: Vec<Rule>,
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
    fn of(codes: &[Code]) -> Self {
        let rule = |code: &Code| Rule {
            code: code.to_string(),
            title: code.title().to_owned(),
            explanation: code.explain().trim_end().to_owned(),
        };
        Self {
            rules: codes.iter().map(rule).collect(),
        }
    }
}

impl Arguments for ExplainArgs {
    fn run(&self, _quiet: bool) -> anyhow::Result<()> {
        let Some(wanted) = &self.code else {
            let lines = || {
                Code::ALL
                    .iter()
                    .map(|code| format!("{code}  {}\n", code.title()))
                    .collect()
            };
            return console::report(&self.report, lines, || Report::of(Code::ALL), Ok(()));
        };
        let Some(code) = Code::ALL
            .iter()
            .find(|code| code.to_string().eq_ignore_ascii_case(wanted))
        else {
            let known = Code::ALL.iter().map(ToString::to_string).collect();
            return Err(UnknownName::new("rule", wanted, known)).context("`remat-opt explain` lists the rules");
        };
        let text = || format!("{}\n", code.explain().trim_end());
        console::report(&self.report, text, || Report::of(&[*code]), Ok(()))
    }
}
