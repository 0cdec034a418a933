//! Groups of arguments that several commands have, one file each. They are what was written on the command line, and nothing more: no
//! file is read and nothing is run for them; a [`Job`](crate::job::Job) does that.

mod block;
mod budgets;
mod choice;
mod fission;
mod goal;
mod load;
mod page;
mod planning;
mod process;
mod report;
mod runtime;
mod search;
mod shapes;

use std::path::PathBuf;

pub(crate) use block::BlockArgs;
pub(crate) use budgets::{Budgets, parse_budgets};
pub(crate) use choice::{Choice, SWITCH};
pub(crate) use fission::FissionArgs;
pub(crate) use goal::{GoalArgs, PagingArgs};
pub(crate) use load::{BaselineArg, LoadArgs, OpenSizes};
pub(crate) use page::PageArgs;
pub(crate) use planning::PlanningArgs;
pub(crate) use process::{ProcessArgs, ProgramArgs};
pub(crate) use report::{CommentArgs, ReportArgs, ReportFormat};
pub(crate) use runtime::{LEVELS, RuntimeArgs, SessionArgs, parse_intra_threads, provider};
pub(crate) use search::SearchArgs;
pub(crate) use shapes::{ShapeArgs, Shapes};

/// Groups of options in the help, the same in every command.
pub(crate) const INPUT: &str = "Input";
pub(crate) const GOAL: &str = "Goal";
pub(crate) const SEARCH: &str = "Search";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const RUNTIME: &str = "ONNX Runtime";
pub(crate) const MLIR: &str = "MLIR";
pub(crate) const SECOND_MEMORY: &str = "Second memory";
pub(crate) const REPORT: &str = "Report";

/// The files that a command reads, and what stdin is said to hold, as an extension.
#[derive(Default)]
pub(crate) struct Inputs<'a> {
    pub(crate) files: Vec<&'a mut PathBuf>,
    pub(crate) stdin_holds: Option<&'static str>,
}

impl<'a> Inputs<'a> {
    /// One file, which says itself what it holds.
    pub(crate) fn one(file: &'a mut PathBuf) -> Self {
        let (files, stdin_holds) = (vec![file], None);
        Self { files, stdin_holds }
    }
}

/// How much a command says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    /// No progress is shown.
    pub(crate) quiet: bool,
    /// The report says all that is known.
    pub(crate) verbose: bool,
}

/// A file that a command writes, and the extension of what it holds.
pub(crate) type OutputPath<'a> = (&'a mut PathBuf, &'static str);

/// What a command line says of a command.
pub(crate) trait Arguments {
    /// Every file that the command reads.
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs::default()
    }

    /// Every file that the command writes; asked for when all inputs are files.
    ///
    /// # Errors
    /// If nothing says what goes to stdout.
    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        Ok(Vec::new())
    }

    /// Says where what the command needs may lie, before it runs.
    ///
    /// # Errors
    /// If something that is named cannot be used.
    fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does the work and prints the report.
    ///
    /// # Errors
    /// Whatever ends the command.
    fn run(&self, talk: Talk) -> anyhow::Result<()>;

    /// Prepares and runs.
    ///
    /// # Errors
    /// Whatever ends the command.
    fn execute(&self, talk: Talk) -> anyhow::Result<()> {
        self.prepare()?;
        self.run(talk)
    }
}

/// The outputs that are named.
pub(crate) fn named<'a, const N: usize>(
    outputs: [(&'a mut Option<PathBuf>, &'static str); N],
) -> anyhow::Result<Vec<OutputPath<'a>>> {
    let named = outputs.into_iter();
    Ok(named.filter_map(|(path, form)| Some((path.as_mut()?, form))).collect())
}
