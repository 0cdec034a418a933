//! The files that a command line names, of which one may be stdin and one stdout.

use std::path::PathBuf;

use clap::ValueEnum;
use remat::Format;

use crate::cli::{Cli, Command, LoadArgs};
use crate::console::streams;

/// What `-o -` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The rewritten model.
    Onnx,
    /// The rewritten model as MLIR.
    Mlir,
    /// The plan.
    Json,
    /// The plan for devices.
    Sched,
    /// The rewritten graph as readable text.
    Remat,
    /// The rewritten graph for Graphviz.
    Dot,
}

impl OutputFormat {
    /// The extension of files that hold it.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Onnx => "onnx",
            Self::Mlir => "mlir",
            Self::Json => "json",
            Self::Sched => "sched",
            Self::Remat => "remat",
            Self::Dot => "dot",
        }
    }
}

/// What stdin holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum InputFormat {
    /// An ONNX model.
    Onnx,
    /// A module of MLIR.
    Mlir,
    /// A node-link graph, a saved problem or a plan.
    Json,
    /// A log of an eager execution, plain or compressed.
    Log,
    /// A plan for devices.
    Sched,
}

impl InputFormat {
    /// The extension of files that hold it.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Onnx => "onnx",
            Self::Mlir => "mlir",
            Self::Json => "json",
            Self::Log => "log",
            Self::Sched => "sched",
        }
    }
}

/// A file that a command writes, and the extension of what it holds.
type OutputPath<'a> = (&'a mut PathBuf, &'static str);

impl Cli {
    /// Puts files in the place of paths that stand for stdin and stdout.
    ///
    /// # Errors
    /// Those of [`streams::read_stdin`] and [`streams::hold_stdout`], and if the form of an output is named that is no stream.
    pub(crate) fn hold_streams(&mut self) -> anyhow::Result<()> {
        let format = self.input_format().map(InputFormat::extension);
        streams::read_stdin(self.inputs(), format)?;
        let form = self.output_form()?;
        streams::hold_stdout(self.outputs(form))
    }

    /// What stdin is said to hold.
    fn input_format(&self) -> Option<InputFormat> {
        match &self.command {
            None => self.optimize.load.input_format,
            Some(Command::Inspect(args)) => args.load.input_format,
            Some(Command::Sweep(args)) => args.load.input_format,
            Some(Command::Compare(args)) => args.load.input_format,
            Some(Command::MaxBatch(args)) => args.load.input_format,
            Some(Command::Verify(args)) => args.load.input_format,
            Some(_) => None,
        }
    }

    /// Every file that the command reads.
    fn inputs(&mut self) -> Vec<&mut PathBuf> {
        fn all<'a>(
            input: &'a mut PathBuf,
            plan: Option<&'a mut PathBuf>,
            load: &'a mut LoadArgs,
        ) -> Vec<&'a mut PathBuf> {
            let more = [plan, load.profile.as_mut(), load.device_file.as_mut()];
            std::iter::once(input).chain(more.into_iter().flatten()).collect()
        }
        match &mut self.command {
            None => match &mut self.optimize.input {
                Some(input) => all(input, self.optimize.plan.as_mut(), &mut self.optimize.load),
                None => Vec::new(),
            },
            Some(Command::Inspect(args)) => all(&mut args.input, args.plan.as_mut(), &mut args.load),
            Some(Command::Sweep(args)) => all(&mut args.input, None, &mut args.load),
            Some(Command::Compare(args)) => all(&mut args.input, None, &mut args.load),
            Some(Command::MaxBatch(args)) => all(&mut args.input, None, &mut args.load),
            Some(Command::Verify(args)) => all(&mut args.input, Some(&mut args.plan), &mut args.load),
            Some(Command::Profile(args)) => vec![&mut args.input],
            Some(Command::Simulate(args)) => vec![&mut args.input],
            Some(Command::Reduce(args)) => vec![&mut args.input],
            Some(Command::MeasureChild | Command::Explain(_) | Command::Completions(_)) => Vec::new(),
        }
    }

    /// What the main job writes to stdout.
    fn output_form(&self) -> anyhow::Result<&'static str> {
        let args = &self.optimize;
        let is_streamed = args.output.as_deref().is_some_and(streams::is_stream);
        match (&args.input, args.output_format) {
            (_, Some(_)) if !is_streamed => {
                anyhow::bail!("`--output-format` says what `-o -` writes; of a file, the extension says it")
            }
            (_, Some(format)) => Ok(format.extension()),
            (Some(input), None) if is_streamed => Ok(match Format::of(input)? {
                Format::Onnx => "onnx",
                Format::Mlir => "mlir",
                Format::NodeLink | Format::Problem | Format::Log => "json",
            }),
            _ => Ok("json"),
        }
    }

    /// Every file that the command writes; `form` is what the main job writes to stdout.
    fn outputs(&mut self, form: &'static str) -> Vec<OutputPath<'_>> {
        fn all<'a>(files: [(&'a mut Option<PathBuf>, &'static str); 2]) -> Vec<OutputPath<'a>> {
            let named = files.into_iter();
            named
                .filter_map(|(path, extension)| Some((path.as_mut()?, extension)))
                .collect()
        }
        match &mut self.command {
            None => all([
                (&mut self.optimize.output, form),
                (&mut self.optimize.emit_plan, "json"),
            ]),
            Some(Command::Sweep(args)) => all([(&mut args.output, "json"), (&mut args.svg, "svg")]),
            Some(Command::Compare(args)) => all([(&mut args.output, "json"), (&mut args.svg, "svg")]),
            Some(Command::Verify(args)) => all([(&mut args.output, "json"), (&mut args.svg, "svg")]),
            Some(Command::Profile(args)) => args.output.as_mut().map(|path| (path, "json")).into_iter().collect(),
            Some(Command::Reduce(args)) => vec![(&mut args.output, "json")],
            Some(
                Command::Inspect(_)
                | Command::MaxBatch(_)
                | Command::Simulate(_)
                | Command::MeasureChild
                | Command::Explain(_)
                | Command::Completions(_),
            ) => Vec::new(),
        }
    }
}
