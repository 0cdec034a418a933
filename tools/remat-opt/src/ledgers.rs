//! What a process takes that loads a model and runs it, and how that compares with a limit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use remat::{LoadOptions, Model};
use remat_onnxruntime_deploy::{
    ArenaPlanned, DeployError, Ledgers, ProcessLimit, ProcessWithin, ProcessWritten, Program, Promise, WeightBytes,
    measured_ledgers,
};
use remat_onnxruntime_run::{ArenaLibrary, OptimizationLevel, Runner, SessionSettings};
use schemars::JsonSchema;
use serde::Serialize;

use crate::units::bytes;

/// What a process takes, in bytes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ProcessRecord {
    /// As predicted.
    predicted: Ledgers,
    /// As measured in a process of its own; absent where nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Ledgers>,
    /// Both together, for each program.
    promises: Vec<Promise>,
    /// How it compares with the limit (`--memory`); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<ProcessWithin>,
}

impl ProcessRecord {
    pub(crate) fn new(predicted: Ledgers, measured: Option<Ledgers>, limit: Option<ProcessLimit>) -> Self {
        let known = measured.map_or(predicted, |measured| measured.promised(&predicted));
        Self {
            predicted,
            measured,
            promises: Program::ALL.map(|program| known.promise(program)).to_vec(),
            limit: limit.map(|limit| limit.judge(&known)),
        }
    }

    /// That of a loadable form.
    pub(crate) fn of_form(written: &ProcessWritten, limit: Option<ProcessLimit>) -> Self {
        Self::new(written.predicted, Some(written.measured), limit)
    }

    /// How it compares with the limit, where there is one.
    pub(crate) fn within(&self) -> Option<&ProcessWithin> {
        self.limit.as_ref()
    }

    /// The whole for each program, and each ledger.
    pub(crate) fn lines(&self) -> Vec<String> {
        let whole = |promise: &Promise| {
            format!(
                "{} in {}, {} of them must be there",
                bytes(promise.bytes()),
                promise.program,
                bytes(promise.must_be_there_bytes)
            )
        };
        let origin = match self.measured {
            Some(_) => "measured (predicted)",
            None => "predicted",
        };
        let wholes: Vec<String> = self.promises.iter().rev().map(whole).collect();
        let predicted = self.predicted.each();
        let ledgers = match self.measured.as_ref().map(Ledgers::each) {
            Some(measured) => measured.iter().zip(predicted).map(pair).collect(),
            None => predicted.map(|(name, size)| format!("{name} {}", bytes(size))).to_vec(),
        };
        let mut lines = vec![wholes.join("; "), format!("{}; {origin}", ledgers.join(", "))];
        lines.extend(self.limit.as_ref().map(limit_line));
        lines
    }
}

fn pair((&(name, measured), (_, predicted)): (&(&str, u64), (&str, u64))) -> String {
    format!("{name} {} ({})", bytes(measured), bytes(predicted))
}

/// How a process compares with its limit, in words.
pub(crate) fn limit_line(within: &ProcessWithin) -> String {
    let limit = format!(
        "the limit of {} for a process in {}",
        bytes(within.limit_bytes),
        within.program
    );
    match within.forbidden_by {
        None if within.whole_bytes <= within.limit_bytes => format!("{limit} holds"),
        None => format!(
            "{limit} holds, but pages of files are dropped and read again, which takes time: with {} none are",
            bytes(within.whole_bytes)
        ),
        Some(ledger) => format!(
            "{limit} is missed because of its {ledger}: {} is the smallest that works",
            bytes(within.least_bytes)
        ),
    }
}

/// That a process works within its limit is what is promised.
///
/// # Errors
/// [`DeployError::ProcessTooLarge`] if it does not.
pub(crate) fn require(within: &ProcessWithin) -> anyhow::Result<()> {
    match within.holds {
        true => Ok(()),
        false => Err(DeployError::ProcessTooLarge(*within).into()),
    }
}

/// Why nothing is left for runs.
pub(crate) fn too_large(limit: &ProcessLimit, process: &Ledgers) -> anyhow::Error {
    let within = limit.judge(process);
    // Where the rest has room, the runs themselves have none.
    let forbidden_by = within.forbidden_by.or(Some("runs"));
    let holds = false;
    DeployError::ProcessTooLarge(ProcessWithin {
        holds,
        forbidden_by,
        ..within
    })
    .into()
}

/// Where the weights of a model lie in a session that optimizes it: in the heap, as they are or packed.
pub(crate) fn weights_of(model: &Model) -> WeightBytes {
    let graph = model.onnx().and_then(|onnx| onnx.proto().graph.as_ref());
    WeightBytes {
        heap: model.external_bytes().map_or(0, |bytes| bytes.constants),
        count: graph.map_or(0, |graph| graph.initializer.len() as u64),
        ..WeightBytes::default()
    }
}

/// The data files of a model.
pub(crate) fn data_of(model: &Model) -> BTreeSet<PathBuf> {
    let files = model.onnx().map(remat::onnx::OnnxModel::files).unwrap_or_default();
    // The first one is the model.
    let data = files.into_iter().skip(1);
    data.filter_map(|path| path.canonicalize().ok()).collect()
}

/// Bytes of the outputs of a run.
fn outputs_of(model: &Model) -> u64 {
    model.graph().map_or(0, |graph| {
        let sizes = graph
            .outputs
            .iter()
            .filter_map(|&output| graph.tensors[output].ty.bytes().ok().flatten());
        sizes.fold(0, u64::saturating_add)
    })
}

/// What a process of a model is predicted to take whose runs take so many bytes, in a session that optimizes it.
pub(crate) fn predicted(model: &Model, run_bytes: u64) -> Ledgers {
    of_weights(model, weights_of(model), run_bytes)
}

/// The same of its loadable form.
pub(crate) fn predicted_form(model: &Model, run_bytes: u64) -> Ledgers {
    let weights = weights_of(model);
    let weights = WeightBytes {
        heap: 0,
        packed: weights.heap,
        largest_to_pack: largest_packed(model),
        ..weights
    };
    of_weights(model, weights, run_bytes)
}

fn of_weights(model: &Model, weights: WeightBytes, run_bytes: u64) -> Ledgers {
    let outputs = outputs_of(model);
    let nodes = model.problem().ops.len() as u64;
    Ledgers::predicted(nodes, weights, (run_bytes.saturating_sub(outputs), outputs))
}

/// The size of the largest weight that kernels may pack: what only rows are taken of is not.
fn largest_packed(model: &Model) -> u64 {
    let Some(graph) = model.onnx().and_then(|onnx| onnx.proto().graph.as_ref()) else {
        return 0;
    };
    let nodes = graph.node.iter().filter(|node| node.op_type != "Gather");
    let read: BTreeSet<&str> = nodes.flat_map(|node| &node.input).map(String::as_str).collect();
    let weights = graph
        .initializer
        .iter()
        .filter(|weight| read.contains(weight.name.as_str()));
    let sizes = weights.map(|weight| {
        let elements = weight.dims.iter().map(|&size| u64::try_from(size).unwrap_or(0));
        // Four bytes for each: what has fewer is packed as bytes.
        elements.fold(4, u64::saturating_mul)
    });
    sizes.max().unwrap_or(0)
}

/// What a process of a file takes: in a session of this level, with its plan of memory if it has one.
pub(crate) fn measured(
    runner: &Runner<'_>,
    (file, model): (&Path, &Model),
    (level, load): (OptimizationLevel, &LoadOptions),
    plan: Option<&ArenaPlanned>,
) -> anyhow::Result<Ledgers> {
    let absolute = |path: &Path| std::path::absolute(path);
    let library = plan.map(|plan| -> std::io::Result<ArenaLibrary> {
        Ok(ArenaLibrary {
            library: absolute(&plan.library)?,
            plan: Some(absolute(&plan.file)?),
            keeps_pattern: false,
        })
    });
    let settings = SessionSettings {
        level,
        dims: load.dims.clone(),
        arena_library: library.transpose()?,
        ..SessionSettings::stock()
    };
    let weights = (weights_of(model), &data_of(model));
    Ok(measured_ledgers(runner, file, &settings, weights).map_err(DeployError::from)?)
}
