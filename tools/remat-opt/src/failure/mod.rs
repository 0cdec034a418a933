//! Errors on their way to the user: rendering, help, exit status, and what is saved of a bug of ours.

mod bug;
mod details;
mod exceeded;
mod flags;
mod help;
mod pipeline;
mod similar;
mod usage;

use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use remat::{Error, ErrorKind, PlanError, SolveError};
use remat_files::document::{DocumentError, to_json};
use remat_onnxruntime_deploy::DeployError;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use details::{Details, UnknownName, ViolationRecord};
pub(crate) use exceeded::{LimitExceeded, OverLimit};
pub(crate) use similar::similar;
pub(crate) use usage::report_usage;

pub(crate) use self::pipeline::pipeline;
use crate::args::ReportFormat;
use crate::console;

/// An error, and whether the report of the command tells it already.
#[derive(Debug)]
pub(crate) struct Reported(pub(crate) anyhow::Error);

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Reported {}

/// An error in several lines, without names from files.
#[cfg(feature = "mlir")]
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) String);

#[cfg(feature = "mlir")]
impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "mlir")]
impl std::error::Error for Lines {}

/// Whether the message has lines of its own: the list of what is wrong with a plan, which escapes the names in it itself, and what MLIR
/// says of a pipeline.
fn has_lines(error: &anyhow::Error) -> bool {
    #[cfg(feature = "mlir")]
    if error.is::<Lines>() {
        return true;
    }
    matches!(
        pipeline(error),
        Some(Error::Plan(PlanError::Rejected(_) | PlanError::InBody { .. }))
    )
}

/// The documented outcome of an error of a library, and its message, which is whole.
fn known(error: &anyhow::Error) -> Option<(ErrorKind, String)> {
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        return Some((ErrorKind::Negative, exceeded.to_string()));
    }
    if error.is::<DocumentError>() {
        return Some((ErrorKind::Input, format!("{error:#}")));
    }
    if pipeline(error).is_none() {
        let error: &DeployError = error.downcast_ref()?;
        return Some((error.kind(), error.to_string()));
    }
    let error = pipeline(error)?;
    let message = flags::message(error).unwrap_or_else(|| error.to_string());
    Some((error.kind(), message))
}

/// The outcome that the exit status stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Proved infeasible, no file keeps the budget, `verify` found a violation or a difference, or `check` a limit that is exceeded: exit
    /// status 1.
    Finding,
    /// The command line cannot be understood: exit status 2.
    Usage,
    /// The input, or the way it was asked for, is at fault: exit status 2.
    Input,
    /// The checker rejected a plan of ours, or a plan refutes what we claim: exit status 3.
    Internal,
    /// A limit was reached before a plan was found: exit status 4.
    Limit,
    /// A signal told the program to end before it had an answer: exit status 128 and the number of the signal.
    Interrupted,
}

impl Kind {
    /// The exit status of the documentation.
    fn status(self) -> u8 {
        match self {
            Self::Finding => 1,
            Self::Usage | Self::Input => 2,
            Self::Internal => 3,
            Self::Limit => 4,
            Self::Interrupted => crate::interrupt::status().unwrap_or(4),
        }
    }
}

/// What went wrong, for programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FailureBody {
    /// Which outcome it is.
    kind: Kind,
    /// What went wrong, in a sentence.
    message: String,
    /// What can be done about it.
    help: Option<String>,
    /// The status the process ends with.
    exit_status: u8,
    /// The op or tensor it is about.
    node: Option<String>,
    /// The names and numbers of the message, for errors that have them.
    details: Option<Details>,
}

/// What `--format json` prints where there is no report.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FailureDocument {
    /// Name and version of this form.
    format: &'static str,
    /// What went wrong.
    error: FailureBody,
    /// What was said as a warning on the way.
    warnings: Vec<String>,
}

impl FailureDocument {
    /// The value of the field `format`.
    pub(crate) const FORMAT: &'static str = "remat-error/1";

    fn new(error: FailureBody) -> Self {
        Self {
            format: Self::FORMAT,
            error,
            warnings: console::warnings_so_far(),
        }
    }
}

impl FailureBody {
    /// What is known of an error.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let known = known(error);
        let details = Details::of(error);
        let help = match (pipeline(error), &details) {
            (Some(Error::Solve(SolveError::Rejected(bug) | SolveError::FalseClaim(bug))), _) => {
                Some(bug::save(bug, std::path::Path::new(".")))
            }
            (_, Some(Details::UnknownName(unknown))) => unknown.suggestion(),
            _ => help::help(error),
        };
        let kind = match known.as_ref().map(|(kind, _)| *kind) {
            _ if crate::interrupt::status().is_some() => Kind::Interrupted,
            Some(ErrorKind::Negative) => Kind::Finding,
            Some(ErrorKind::Input) => Kind::Input,
            Some(ErrorKind::Internal) => Kind::Internal,
            Some(ErrorKind::Limit) => Kind::Limit,
            // Errors of the command line's own work are errors of usage.
            None => Kind::Usage,
        };
        // Messages of the library are whole; what the command line adds stands before the cause.
        let mut message = known.map_or_else(|| format!("{error:#}"), |(_, message)| message);
        if kind == Kind::Interrupted {
            message.insert_str(0, "interrupted: ");
        }
        Self {
            kind,
            message: console::streams::shown(&message),
            help: help.filter(|_| kind != Kind::Interrupted),
            exit_status: kind.status(),
            node: details::node(error),
            details,
        }
    }
}

/// Prints the error on stderr, and where programs read along, as an object on stdout, unless the report tells it already. Gives the
/// documented exit status.
pub(crate) fn report(error: &anyhow::Error, format: ReportFormat) -> u8 {
    let (error, is_reported) = match error.downcast_ref::<Reported>() {
        Some(Reported(inner)) => (inner, true),
        None => (error, false),
    };
    let body = FailureBody::of(error);
    let is_json = format == ReportFormat::Json;
    // Where the object goes to stderr too, it stands there alone.
    if !(is_json && console::streams::stdout_is_taken()) {
        let safe = if has_lines(error) {
            remat_files::lines
        } else {
            remat_files::line
        };
        console::write_stderr(&rendered(
            safe(&body.message),
            body.help.as_deref().map(remat_files::line),
            body.details.as_ref().and_then(Details::command).map(remat_files::line),
        ));
    }
    if is_json && !is_reported {
        print_failure(body.clone());
    }
    body.exit_status
}

/// Prints the object that stands for a failure. That stdout is gone is no news: the exit status tells.
fn print_failure(body: FailureBody) {
    _ = console::print(&to_json(&FailureDocument::new(body)));
}

fn rendered(message: String, help: Option<String>, command: Option<String>) -> String {
    let rendered = Rendered {
        text: message.clone(),
        help,
    };
    let mut text = String::new();
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let theme = if !is_plain && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(120);
    if handler.render_report(&mut text, &rendered).is_err() {
        text = message + "\n";
    }
    // In a line of its own, so that it can be copied.
    if let Some(command) = command {
        text += &format!("\nthis works:\n{command}\n");
    }
    text
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
