//! What is known of a plan that was written.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use remat_formula::{PeakBound, Ranges, Shape, Within};
use remat_onnxruntime_arena::Plans;
use remat_onnxruntime_run::Measurement;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ArenaPlanError;

/// A plan that was written, and what was measured of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArenaPlanned {
    /// The plan (`remat.arena.plan`).
    pub file: PathBuf,
    /// The library (`register_custom_ops_library`).
    pub library: PathBuf,
    /// The sizes of open dimensions that it is made for, as `--shapes` takes them.
    pub shapes: BTreeMap<String, String>,
    /// The most bytes that a run takes with any of them, block and what is outside: where ranges are stated.
    #[serde(skip)]
    pub bound: Option<PeakBound>,
    /// With up to how many threads within a node that holds: as many as this machine has.
    #[serde(skip)]
    pub bound_threads: u64,
    /// The sizes of the dimensions with more than one.
    #[serde(skip)]
    pub(super) ranges: Ranges,
    /// The plans for so many threads.
    #[serde(skip)]
    pub(super) plans: Arc<Plans>,
    /// The largest number of threads within a node that it is made for.
    pub threads: u64,
    /// Buffers of a run.
    pub buffers: usize,
    /// Buffers that have the size of a tensor of the model in every shape that was tried; the formulas of others, workspaces of kernels for the most
    /// part, are known from runs alone.
    pub inferred_buffers: usize,
    /// Buffers of which only a bound of their size is known.
    pub bounded_buffers: usize,
    /// Weights that the plan has in the order in which runs read them; none where that is not known.
    #[serde(skip)]
    pub weight_uses: usize,
    /// Shapes that were recorded.
    pub recorded_shapes: usize,
    /// Shapes with which the file was run with the plan and the original without: all outputs had the same bits.
    pub compared_shapes: usize,
    /// Buffers in these runs that no plan foresaw, or whose place was taken: the heap has them.
    pub missed_buffers: u64,
    /// At the sizes at which memory was measured.
    #[serde(flatten)]
    pub measured: ArenaMeasured,
    /// Other shapes: the frequent ones, and the largest where ranges are stated.
    pub at: Vec<ArenaAt>,
}

/// What was measured at one shape.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArenaMeasured {
    /// Sizes of the open dimensions.
    pub dims: BTreeMap<String, u64>,
    /// Most bytes that the buffers need at one time: no block is smaller.
    pub load_bytes: u64,
    /// Size of the block in bytes.
    pub block_bytes: u64,
    /// Most bytes of the heap that a run takes beside it.
    pub outside_bytes: u64,
    /// Buffers of a run that lie outside of the block though they have a place in it: at some loads, the runtime makes copies in another order.
    pub elsewhere: u64,
    /// Bytes of files that a run reads into memory, the code of kernels for the most part, as measured of the original.
    pub code_bytes: u64,
    /// Bytes that loading leaves in the heap, and the first run with the plan returns; the growth of the process is less by them.
    pub returned_bytes: u64,
    /// Growth of resident memory in the first run of the original in a default session, where the system says it.
    pub original_first_bytes: Option<u64>,
    /// The same in later runs.
    pub original_later_bytes: Option<u64>,
    /// Growth of resident memory in the first run, where the system says it.
    pub resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub resident_later_bytes: Option<u64>,
}

impl ArenaMeasured {
    /// By how much the process grows with the plan, where that is more than with the original in a default session, by over 1 MiB.
    #[must_use]
    pub fn takes_more(&self) -> Option<ArenaPlanError> {
        let planned = self.resident_first_bytes.max(self.resident_later_bytes)?;
        let original = self.original_first_bytes.max(self.original_later_bytes)?;
        (planned > original + TOLERANCE_BYTES).then_some(ArenaPlanError::NoLess { planned, original })
    }

    /// Takes in a session of the file that was loaded with the plan: the most of all counts.
    pub(super) fn take_load(&mut self, measured: &Measurement) {
        let peaks = measured.peaks.as_ref().ok();
        let most = peaks.map_or(0, |peaks| peaks.first.max(peaks.steady.unwrap_or(0)));
        self.outside_bytes = self.outside_bytes.max(most);
        if let Some(figures) = measured.planned {
            let elsewhere = (figures.missed + figures.refused).div_ceil(figures.runs.max(1));
            self.elsewhere = self.elsewhere.max(elsewhere);
            self.returned_bytes = figures.returned_bytes;
        }
        let resident = measured.resident.as_ref();
        self.resident_first_bytes = self.resident_first_bytes.max(resident.map(|resident| resident.first));
        self.resident_later_bytes = self
            .resident_later_bytes
            .max(resident.and_then(|resident| resident.later));
    }
}

/// What a plan says of a shape.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArenaAt {
    /// Sizes of the open dimensions.
    pub dims: BTreeMap<String, u64>,
    /// Most bytes that the buffers need at one time.
    pub load_bytes: u64,
    /// Size of the block in bytes.
    pub block_bytes: u64,
}

/// Most shapes of the ranges that a budget is held against.
const MOST_JUDGED: usize = 256;

/// Share of the predicted growth of a process, as a divisor, and bytes that the measured one may lie above it.
const TOLERANCE_SHARE: u64 = 50;
const TOLERANCE_BYTES: u64 = 1 << 20;

impl ArenaPlanned {
    /// In which shapes a run takes no more than `budget` bytes, block and what is outside: by frequent ones and how often they are seen, or, without
    /// any, by shapes of the ranges.
    #[must_use]
    pub fn within(&self, budget: u64, frequent: &[(Shape, u64)]) -> Within {
        let peak = |shape: &Shape| {
            let sizes = self.ranges.names().map(|name| shape.get(name).copied().unwrap_or(1));
            let most = self.plans.most_at(&sizes.collect::<Vec<_>>());
            Ok::<_, Infallible>(most.map_or(u64::MAX, |block| block.saturating_add(self.measured.outside_bytes)))
        };
        let Ok(found) = Within::judge(budget, (&self.ranges, frequent, MOST_JUDGED), peak);
        found
    }

    /// The first growth of the process that was measured to be larger than predicted, which is the block, what runs take outside of it,
    /// and the code of kernels.
    #[must_use]
    pub fn exceeded(&self) -> Option<ArenaPlanError> {
        let found = &self.measured;
        let predicted = found.block_bytes + found.outside_bytes + found.code_bytes;
        let most = predicted + predicted / TOLERANCE_SHARE + TOLERANCE_BYTES;
        let runs = [
            (found.resident_first_bytes, "first"),
            (found.resident_later_bytes, "later"),
        ];
        runs.into_iter().find_map(|(measured, runs)| {
            let measured = measured.filter(|&measured| measured > most)?;
            Some(ArenaPlanError::Grows {
                predicted,
                measured,
                runs,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_takes_more_where_the_process_grows_by_more_than_with_the_original() {
        let measured = |planned: [u64; 2], original: Option<[u64; 2]>| ArenaMeasured {
            dims: BTreeMap::new(),
            load_bytes: 0,
            block_bytes: 0,
            outside_bytes: 0,
            elsewhere: 0,
            code_bytes: 0,
            returned_bytes: 0,
            original_first_bytes: original.map(|[first, _]| first << 20),
            original_later_bytes: original.map(|[_, later]| later << 20),
            resident_first_bytes: Some(planned[0] << 20),
            resident_later_bytes: Some(planned[1] << 20),
        };
        // The most of all runs counts, and 1 MiB is nothing.
        assert!(measured([9, 31], Some([20, 30])).takes_more().is_none());
        let error = measured([33, 9], Some([20, 30])).takes_more().expect("it is more");
        insta::assert_snapshot!(error, @"with the plan of its memory, the process grows by 34603008 bytes, with the original by 31457280");
        assert!(
            measured([33, 9], None).takes_more().is_none(),
            "nothing to hold it against"
        );
    }
}
