//! The blocks of a function and the regions inside of them, each as a problem of its own.
//!
//! Of a function of several blocks, what is live across a block counts throughout it. Of an operation with regions, the regions are its
//! workspace, as far as they take more than its results.

use std::cell::OnceCell;

use remat::ir::{Attribute, Graph, OpId, StorageClass};
use remat::plan::{Plan, Problem, Step, StorageRole};
use remat::verify::Replay;
use remat::{LoadOptions, Model};
use remat_mlir::{Body, Function, ImportError, ImportOptions, Imported, RegionKind};

use crate::PassError;
use crate::standing::as_it_stands;

/// The attributes of an op by which the cost model knows what its regions take, memory and time.
const WORKSPACE: &str = "workspace";
const NANOSECONDS: &str = "nanoseconds";

/// Until when tensors are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lives {
    /// Until their last reader.
    LastReader,
    /// Until their markers, where there are any.
    Markers,
}

/// How blocks are read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) import: ImportOptions,
    pub(crate) load: LoadOptions,
    pub(crate) lives: Lives,
}

impl Reading {
    fn inside(&self) -> Self {
        Self {
            load: inside(&self.load),
            ..self.clone()
        }
    }
}

/// A block that was read.
pub(crate) struct Block<'c> {
    pub(crate) imported: Imported<'c>,
    /// Its problem, with its regions as they stand.
    pub(crate) model: Model,
    /// Its operations as they stand.
    pub(crate) plan: Plan,
    pub(crate) replay: Replay,
    pub(crate) regions: Vec<Nested<'c>>,
    /// The lowest peak that was found for it.
    pub(crate) lowest: OnceCell<u64>,
}

/// The regions of an op.
pub(crate) struct Nested<'c> {
    pub(crate) op: OpId,
    pub(crate) kind: RegionKind,
    pub(crate) blocks: Vec<Block<'c>>,
    /// Bytes of the results of the op.
    pub(crate) results: u64,
}

impl<'c> Block<'c> {
    pub(crate) fn read(body: &Body<'c>, reading: &Reading) -> Result<Self, PassError<'c>> {
        let mut imported = body.import(&reading.import)?;
        let scheduled = (reading.lives == Lives::Markers).then(|| imported.graph().clone());
        if let Some(Err(errors)) = scheduled.as_ref().map(Graph::validate) {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(PassError::Schedule(format!(
                "the schedule is broken: {}",
                texts.join("; ")
            )));
        }
        imported.drop_memory_ops();
        let regions = regions(&imported, &reading.inside())?;
        let peaks = regions.iter().map(|nested| nested.peak(|block| block.replay.peak));
        let model = model_with(&imported, &regions, peaks, &reading.load)?;
        let (plan, replay) = match scheduled {
            Some(scheduled) => as_it_stands(&scheduled, &model)?,
            None => (model.baseline_plan().clone(), model.baseline().clone()),
        };
        Ok(Self {
            imported,
            model,
            plan,
            replay,
            regions,
            lowest: OnceCell::new(),
        })
    }

    /// The problem where the regions have these peaks.
    pub(crate) fn model_with(
        &self,
        peaks: impl IntoIterator<Item = u64>,
        load: &LoadOptions,
    ) -> Result<Model, PassError<'c>> {
        model_with(&self.imported, &self.regions, peaks, load)
    }

    /// Whether all results in it and in its regions have buffers of their own, whatever is merged.
    pub(crate) fn is_apart(&self) -> bool {
        let mut inside = self.regions.iter().flat_map(|nested| &nested.blocks);
        !self.imported.writes_into_empties() && inside.all(Self::is_apart)
    }

    /// Blocks in it and in its regions, itself included.
    pub(crate) fn count(&self) -> u32 {
        let inside = self.regions.iter().flat_map(|nested| &nested.blocks);
        inside.map(Block::count).fold(1, u32::saturating_add)
    }
}

impl<'c> Nested<'c> {
    /// The highest of the peaks of its blocks.
    pub(crate) fn peak(&self, of: impl Fn(&Block<'c>) -> u64) -> u64 {
        self.blocks.iter().map(of).max().unwrap_or(0)
    }

    /// Time of one run of the op as it stands, in nanoseconds: of branches the longest.
    fn duration(&self) -> u64 {
        let durations = self.blocks.iter().map(|block| block.replay.duration);
        match self.kind {
            RegionKind::Branch => durations.max().unwrap_or(0),
            RegionKind::Loop { trips } => durations.fold(0, u64::saturating_add).saturating_mul(trips),
        }
    }

    /// What the op takes on top of its operands and results where its regions have this peak.
    pub(crate) fn workspace(&self, peak: u64) -> u64 {
        workspace(self.kind, self.results, peak)
    }

    /// Bytes outside of the regions while the op runs, where it has this workspace.
    pub(crate) fn outside(&self, problem: &Problem, plan: &Plan, replay: &Replay, workspace: u64) -> u64 {
        let runs = plan.steps.iter().zip(&replay.trace);
        let runs = runs.filter(|(step, _)| matches!(**step, Step::Compute(op) if op == self.op));
        let during = runs.map(|(_, trace)| trace.during).max().unwrap_or(0);
        let apart = problem.ops[self.op].workspace.min(workspace);
        let results = match self.kind {
            RegionKind::Branch => self.results,
            RegionKind::Loop { .. } => 0,
        };
        during.saturating_sub(apart.saturating_add(results))
    }
}

/// What an op with results of these bytes takes on top of them where its regions have this peak. Results of a branch are what it hands on; those of
/// a loop are the memory of what it carries, and each iteration makes that anew.
pub(crate) fn workspace(kind: RegionKind, results: u64, peak: u64) -> u64 {
    match kind {
        RegionKind::Branch => peak.saturating_sub(results),
        RegionKind::Loop { .. } => peak,
    }
}

/// How a block is read that stands inside of an operation or beside other blocks: nothing of it moves to a second memory.
pub(crate) fn inside(load: &LoadOptions) -> LoadOptions {
    LoadOptions {
        second_memory: None,
        ..load.clone()
    }
}

/// The regions of the ops of a block. Those in which sizes are not known are left to their ops.
fn regions<'c>(imported: &Imported<'c>, reading: &Reading) -> Result<Vec<Nested<'c>>, PassError<'c>> {
    let mut found = Vec::new();
    for regions in imported.regions() {
        let blocks = regions.bodies.iter().map(|body| Block::read(body, reading));
        let blocks = match blocks.collect::<Result<Vec<_>, _>>() {
            Ok(blocks) => blocks,
            Err(PassError::Import(error))
                if !matches!(error.error, ImportError::Scheduled(_) | ImportError::Dropped(_)) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let graph = imported.graph();
        let results = graph.ops[regions.op].results().map(|result| &graph.tensors[result]);
        let storages = results.map(|tensor| &graph.storages[tensor.storage]);
        let own = storages.filter(|storage| storage.class == StorageClass::Intermediate);
        let results = own.filter_map(|storage| storage.bytes).fold(0, u64::saturating_add);
        found.push(Nested {
            op: regions.op,
            kind: regions.kind,
            blocks,
            results,
        });
    }
    Ok(found)
}

fn model_with<'c>(
    imported: &Imported<'c>,
    regions: &[Nested<'c>],
    peaks: impl IntoIterator<Item = u64>,
    load: &LoadOptions,
) -> Result<Model, PassError<'c>> {
    let mut graph = imported.graph().clone();
    for (nested, peak) in regions.iter().zip(peaks) {
        let attributes = &mut graph.ops[nested.op].attributes;
        for (name, value) in [(WORKSPACE, nested.workspace(peak)), (NANOSECONDS, nested.duration())] {
            let value = Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX));
            attributes.insert(name.to_owned(), value);
        }
    }
    Ok(Model::from_mlir(graph, load)?)
}

/// A block of a function and what is there beside it.
pub(crate) struct Placed<'c> {
    pub(crate) block: Block<'c>,
    /// Bytes that other blocks made, or that are passed to this one.
    pub(crate) outside: u64,
    /// Bytes that its end takes of its own, whatever the plan: what it hands on, and copies of that.
    pub(crate) end: u64,
}

impl<'c> Placed<'c> {
    /// The blocks of a function, in the order of the text.
    pub(crate) fn of(function: Function<'c>, reading: &Reading) -> Result<Vec<Self>, PassError<'c>> {
        let bodies = function.bodies()?;
        let reading = if bodies.len() > 1 { &reading.inside() } else { reading };
        let blocks = bodies.iter().map(|body| Block::read(body, reading));
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        let imported: Vec<&Imported<'c>> = blocks.iter().map(|block| &block.imported).collect();
        let all = remat_mlir::outside(&imported);
        let beside: Vec<(u64, u64)> = all
            .iter()
            .map(|outside| {
                let storages = outside.live.iter();
                let bytes = storages.map(|&(number, storage)| blocks[number].model.problem().storages[storage].bytes);
                (bytes.fold(0, u64::saturating_add), outside.copies)
            })
            .collect();
        let blocks = blocks.into_iter().zip(beside).map(|(block, (outside, copies))| {
            let storages = block.model.problem().storages.iter();
            let kept = storages.filter(|storage| storage.role == StorageRole::LiveOut);
            let end = kept.map(|storage| storage.bytes).fold(copies, u64::saturating_add);
            Self { block, outside, end }
        });
        Ok(blocks.collect())
    }

    /// The peak of the function while the block runs, where its operations have this one.
    pub(crate) fn peak(&self, inside: u64) -> u64 {
        self.outside.saturating_add(inside.max(self.end))
    }
}
