//! The last step: the plan applied to the graph, and the result written.

use std::io::Write;
use std::path::{Path, PathBuf};

use remat_files::{OutputFile, Outputs, shown};
use remat_ir::Graph;
use remat_onnx_mlir::{Form, Options as MlirOptions};
use remat_plan::Step;
use thiserror::Error;

use crate::input::extension;
use crate::{Error, Format, Model, Solution};

/// Why a result cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The file cannot be written.
    #[error("cannot write `{path}`: {source}", path = shown(.path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The output is an input, or no regular file.
    #[error(transparent)]
    Output(#[from] remat_files::OutputError),
    /// The extension of the output names no format.
    #[error("`{path}` has no extension that names an output format: use .onnx, .mlir, .json (plan), .sched (plan for devices), .remat (readable text) or .dot", path = shown(.path.display()))]
    UnknownOutput {
        /// The output.
        path: PathBuf,
    },
    /// The input has no model to rewrite, only a problem.
    #[error("`{path}` cannot be written: the input is {input}, which has no model to rewrite; write a plan (`.json`) instead", path = shown(.path.display()))]
    NothingToRewrite {
        /// The output.
        path: PathBuf,
        /// What the input is.
        input: &'static str,
    },
    /// The plan moves storages, which ONNX cannot say.
    #[error("`{path}` cannot be written: the plan moves {storages} times to the second memory and back, which ONNX cannot say", path = shown(.path.display()))]
    Paged {
        /// The output.
        path: PathBuf,
        /// How often storages come back.
        storages: usize,
    },
    /// The plan cannot be applied.
    #[error(transparent)]
    Rewrite(#[from] remat_rewrite::RewriteError),
    /// The model cannot be written as MLIR.
    #[error(transparent)]
    Mlir(#[from] remat_onnx_mlir::ExportError),
}

impl SaveError {
    /// The error of a file that the system does not let us write.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    fn nothing_to_rewrite(path: &Path, input: Format) -> Self {
        Self::NothingToRewrite {
            path: path.to_owned(),
            input: input.describe(),
        }
    }
}

/// The formats that are written, by file extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// `.onnx`: the rewritten model.
    Onnx,
    /// `.mlir`: the rewritten model as MLIR text.
    Mlir,
    /// `.json`: the plan.
    Plan,
    /// `.sched`: the plan as a binary schedule for devices.
    Schedule,
    /// `.remat`: the rewritten graph as readable text.
    Text,
    /// `.dot`: the rewritten graph for Graphviz.
    Dot,
}

impl Output {
    /// The format that the extension of `path` names, if the input can be written in it.
    ///
    /// # Errors
    /// [`SaveError::UnknownOutput`], and [`SaveError::NothingToRewrite`] if the input has no model.
    pub fn of(path: &Path, input: Format) -> Result<Self, Error> {
        let output = match extension(path).as_str() {
            "onnx" => Self::Onnx,
            "mlir" => Self::Mlir,
            "json" => Self::Plan,
            "sched" => Self::Schedule,
            "remat" => Self::Text,
            "dot" => Self::Dot,
            _ => {
                let path = path.to_owned();
                return Err(SaveError::UnknownOutput { path }.into());
            }
        };
        let writable = match output {
            Self::Onnx | Self::Mlir => input == Format::Onnx,
            Self::Plan | Self::Schedule => true,
            Self::Text | Self::Dot => !matches!(input, Format::Problem | Format::Log),
        };
        if writable {
            Ok(output)
        } else {
            Err(SaveError::nothing_to_rewrite(path, input).into())
        }
    }
}

/// What a rewritten ONNX model is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// Any runtime: nodes in the order of the plan, clones as they are. What a runtime makes of it is its own affair.
    #[default]
    Onnx,
    /// The compilers that read MLIR. Only for [`Output::Mlir`], where it says how; without it, the form is `torch`, weights and all.
    Mlir {
        /// The form.
        options: MlirOptions,
        /// Whether weights stand in a file beside the module, of the same name with the extension `.safetensors`.
        weights_beside: bool,
    },
}

/// The model's graph with the plan applied: explicit `recompute`, `dealloc`, `page_out` and `page_in` ops, and with offsets where
/// the solution has a block. `None` where the input is a problem.
///
/// # Errors
/// [`SaveError::Rewrite`] if the plan is not valid, which no plan that passed the checker is.
pub fn rewrite(model: &Model, solution: &Solution) -> Result<Option<Graph>, Error> {
    let Some(graph) = model.graph() else { return Ok(None) };
    let reserved = model
        .onnx()
        .map(remat_onnx::OnnxModel::reserved_names)
        .unwrap_or_default();
    let is_reserved = |name: &str| reserved.contains(name);
    let (problem, plan) = (&solution.problem, &solution.plan);
    let placement = solution.placement.as_ref().map(|placed| &placed.placement);
    Ok(Some(remat_rewrite::rewrite_placed(
        graph,
        problem,
        plan,
        placement,
        &is_reserved,
    )?))
}

/// Writes the solution to `path` in the format its extension names. The file appears whole or not at all, and never in the place of the
/// model or its data files.
///
/// # Errors
/// [`enum@Error`] of kind `Input` if the file cannot be written or the format does not fit the input.
pub fn save(model: &Model, solution: &Solution, target: &Target, path: &Path) -> Result<(), Error> {
    let output = Output::of(path, model.format())?;
    let mut files = Outputs::default();
    for file in model.onnx().iter().flat_map(|onnx| onnx.files()) {
        files.reads("a file of the model", &file)?;
    }
    files.writes("the result", path)?;
    let refused = || SaveError::nothing_to_rewrite(path, model.format());
    let transfers = solution
        .plan
        .steps
        .iter()
        .filter(|step| matches!(step, Step::PageIn(_)));
    let storages = transfers.count();
    if output == Output::Onnx && storages > 0 {
        let path = path.to_owned();
        return Err(SaveError::Paged { path, storages }.into());
    }
    let rewritten = match output {
        Output::Plan | Output::Schedule => None,
        Output::Onnx | Output::Mlir | Output::Text | Output::Dot => rewrite(model, solution)?,
    };
    let content = match (output, rewritten) {
        (Output::Plan, _) => solution.plan_file(model).to_json().into_bytes(),
        (Output::Schedule, _) => crate::schedule::schedule(solution)?,
        (Output::Text, Some(graph)) => graph.to_string().into_bytes(),
        (Output::Dot, Some(graph)) => graph.to_dot().into_bytes(),
        (Output::Onnx, Some(graph)) => {
            return Ok(model.onnx().ok_or_else(refused)?.save(&graph, path)?);
        }
        (Output::Mlir, Some(graph)) => {
            let onnx = model.onnx().ok_or_else(refused)?;
            let (options, weights_beside) = match target {
                Target::Mlir {
                    options,
                    weights_beside,
                } => (*options, *weights_beside),
                Target::Onnx => (MlirOptions::new(Form::Torch), false),
            };
            let write = |out: &mut dyn Write, weights: Option<&mut dyn Write>| -> Result<(), Error> {
                Ok(remat_onnx_mlir::write(onnx, &graph, &options, out, weights).map(drop)?)
            };
            if weights_beside {
                let beside = path.with_extension("safetensors");
                files.writes("the weights", &beside)?;
                write_with(&beside, |weights| write_with(path, |out| write(out, Some(weights))))?;
            } else {
                write_with(path, |out| write(out, None))?;
            }
            return Ok(());
        }
        (_, None) => return Err(refused().into()),
    };
    write(path, content)
}

/// Writes a file, whole or not at all.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    Ok(remat_files::write(path, content).map_err(SaveError::io(path))?)
}

/// Writes what is too large to be held at once; whole or not at all.
fn write_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
    let mut file = OutputFile::create(path).map_err(SaveError::io(path))?;
    write(&mut file)?;
    Ok(file.commit().map_err(SaveError::io(path))?)
}
