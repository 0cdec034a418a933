//! The peak that no plan undercuts.

use remat::Model;
use remat::plan::{BoundCovers, Tiling};
use remat::solver::{SolveControl, least_peak};
use remat_files::shown;
use schemars::JsonSchema;
use serde::Serialize;

/// The plans that a claim is about, but for their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plans {
    /// Every op runs as a whole: others run some tile by tile.
    OfWholeOps,
    /// Ops run in the tiles that were chosen: others run in other tiles, or as a whole.
    InTheseTiles,
}

impl Plans {
    /// Those that a plan for `model` is one of.
    pub(crate) fn of(model: &Model) -> Self {
        match model.tiling().is_some_and(Tiling::has_tiles) {
            false => Self::OfWholeOps,
            true => Self::InTheseTiles,
        }
    }

    /// One of the plans that a bound covers, after `every`, `no` or `the best`.
    pub(crate) fn covered(self, covers: BoundCovers) -> String {
        let ops = match self {
            Self::OfWholeOps => "plan of whole ops",
            Self::InTheseTiles => "plan with these tiles",
        };
        let order = match covers {
            BoundCovers::AllPlans => "in any order",
            BoundCovers::FixedOrder | BoundCovers::StageForm | BoundCovers::CandidateSet => "in this order",
        };
        format!("{ops} {order}")
    }
}

/// The peak that no plan undercuts, as plans count it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Floor {
    /// The peak.
    pub(crate) bytes: u64,
    /// The plans that need it: `plan of whole ops in this order`, for instance.
    pub(crate) plans: String,
    /// What needs it.
    needed_for: NeededFor,
    /// The op, where one needs it.
    node: Option<String>,
}

/// What needs the bytes of a floor.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum NeededFor {
    /// One op.
    Op,
    /// Every order, each op once.
    EveryOrder,
    /// The results that stay to the end.
    LiveOut,
}

impl Floor {
    /// That of the plans for a model, as far as it is found within `control`; none of a model without ops.
    pub(crate) fn of(model: &Model, control: &SolveControl<'_>) -> Option<Self> {
        let problem = model.problem();
        if problem.ops.is_empty() {
            return None;
        }
        let least = least_peak(problem, control);
        Some(Self {
            bytes: least.bytes,
            plans: Plans::of(model).covered(least.covers),
            needed_for: match least.op {
                Some(_) => NeededFor::Op,
                None if least.is_of_orders => NeededFor::EveryOrder,
                None => NeededFor::LiveOut,
            },
            node: least.op.map(|op| problem.ops[op].name.clone()),
        })
    }

    /// What needs it, in words.
    pub(crate) fn needed_for(&self) -> String {
        match self.needed_for {
            NeededFor::Op => format!("op `{}`", shown(self.node.as_deref().unwrap_or_default())),
            NeededFor::EveryOrder => "the best order, each op once".to_owned(),
            NeededFor::LiveOut => "the results that stay".to_owned(),
        }
    }
}
