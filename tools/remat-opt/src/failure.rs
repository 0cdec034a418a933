//! Errors on their way to the user: rendering, help, exit status, and what is saved of a bug of ours.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use remat::onnx::OnnxError;
use remat::plan::{PlanFile, StopReason};
use remat::{Error, ErrorKind, RejectedPlan};

/// Prints the error on stderr and gives the documented exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let known = error.downcast_ref::<Error>();
    let mut help = known.and_then(help);
    if let Some(Error::Rejected(rejected)) = known {
        help = Some(save_rejected(rejected, Path::new(".")));
    }
    // Messages of the library are whole; what the command line adds stands before the cause.
    let message = known.map_or_else(|| format!("{error:#}"), ToString::to_string);
    let rendered = Rendered {
        text: message.clone(),
        help,
    };
    let mut text = String::new();
    let theme = if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(120);
    if handler.render_report(&mut text, &rendered).is_err() {
        text = message + "\n";
    }
    eprint_text(&text);
    ExitCode::from(status(known.map(Error::kind)))
}

/// The exit status of the documentation; errors of the command line's own work are errors of usage.
fn status(kind: Option<ErrorKind>) -> u8 {
    match kind {
        Some(ErrorKind::Negative) => 1,
        Some(ErrorKind::Input) | None => 2,
        Some(ErrorKind::Internal) => 3,
        Some(ErrorKind::Limit) => 4,
    }
}

#[expect(clippy::print_stderr, reason = "the last words of a failed run")]
fn eprint_text(text: &str) {
    eprint!("{text}");
}

/// What the user can do about it.
fn help(error: &Error) -> Option<String> {
    let text = match error {
        Error::Infeasible(infeasible) => format!(
            "an op holds its operands, its results and its workspace together: no budget below {} bytes can be met",
            infeasible.need
        ),
        Error::NoPlan {
            stop: StopReason::Refused,
            ..
        } => "the solver cannot work on this problem, `-v` shows why; `--solver auto` can".to_owned(),
        Error::NoPlan { reached, .. } => {
            format!("give it more time (`--time-limit`), or a budget of at least {reached} bytes")
        }
        Error::Onnx(OnnxError::UnknownSizes { .. }) => {
            "give the dimensions with `--dim NAME=N`, or single sizes with `--size TENSOR=BYTES`".to_owned()
        }
        Error::PlanRejected(_) => "`remat-opt explain CODE` explains a rule".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Writes problem and plan where the bug can be reported from; returns a line for the user.
fn save_rejected(rejected: &RejectedPlan, folder: &Path) -> String {
    let stem = format!("remat-bug-{}", rejected.problem.digest());
    let steps = PlanFile::records(&rejected.problem, &rejected.plan);
    let lines: Vec<_> = steps
        .iter()
        .map(|step| serde_json::to_string(step).unwrap_or_default())
        .collect();
    let files: [(PathBuf, String); 3] = [
        (folder.join(format!("{stem}.problem.json")), rejected.problem.to_json()),
        (
            folder.join(format!("{stem}.steps.json")),
            format!("[\n{}\n]\n", lines.join(",\n")),
        ),
        (
            folder.join(format!("{stem}.violations.txt")),
            rejected.rejection.to_string(),
        ),
    ];
    for (path, text) in &files {
        if let Err(error) = remat_files::write(path, text) {
            return format!("the problem could not be saved to `{}`: {error}", path.display());
        }
    }
    let names: Vec<_> = files.iter().map(|(path, _)| format!("`{}`", path.display())).collect();
    format!("please report it with the files {}", names.join(", "))
}

/// An error in the form that miette renders.
#[derive(Debug)]
struct Rendered {
    text: String,
    help: Option<String>,
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Rendered {}

impl Diagnostic for Rendered {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}
