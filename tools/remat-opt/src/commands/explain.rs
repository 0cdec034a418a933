//! `remat-opt explain`: what a rule of the checker demands, and why.

use anyhow::bail;
use remat::verify::Code;

use crate::cli::ExplainArgs;

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let Some(wanted) = &args.code else {
        let lines = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title()));
        return super::print(&lines.collect::<String>());
    };
    let Some(code) = Code::ALL
        .iter()
        .find(|code| code.to_string().eq_ignore_ascii_case(wanted))
    else {
        bail!("there is no rule `{wanted}`: `remat-opt explain` lists them");
    };
    super::print(&format!("{}\n", code.explain().trim_end()))
}
