use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::fission::Exactness;
use remat::{BaselineOf, BaselinePeak, LoadOptions, SolveRequest};
use remat_plan::{Axis, BudgetSpec, Mode};
use remat_solve::SolveControl;

use super::*;
use crate::clock::Clock;
use crate::relax::RELAXATIONS;
use crate::{DeployRequest, Strategy};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../test/models/mlp_tiny_train.onnx")
}

fn asked() -> SolveRequest {
    SolveRequest {
        budget: BudgetSpec::Auto,
        max_overhead: Some(100_000),
        solver: "search".to_owned(),
    }
}

/// The first or the second layer by rows.
fn layer(layer: usize) -> FusedChain {
    FusedChain {
        first: format!("l{layer}.z"),
        last: format!("l{layer}.y"),
        tiles: 4,
        axis: Axis::Tokens,
        mode: Mode::LineBuffer,
        within: None,
    }
}

fn again() -> Again {
    Again {
        first: "l0.s".to_owned(),
        last: "l0.s".to_owned(),
        before: "l2.z".to_owned(),
    }
}

fn other_bits() -> Rejection {
    Rejection::OutputDiffers {
        output: "y".to_owned(),
        seed: 0,
    }
}

struct Case {
    whole: Model,
    load: LoadOptions,
    solve: SolveRequest,
    path: PathBuf,
    fission: FissionRequest,
}

impl Case {
    fn new() -> Self {
        let (path, load) = (path(), LoadOptions::default());
        Self {
            whole: Model::open(&path, &load).expect("the model opens"),
            load,
            solve: asked(),
            path,
            fission: FissionRequest::EXACT,
        }
    }

    fn tiled(&self, again: &[Again], fused_chains: &[FusedChain], peak: u64) -> TiledModel {
        let tiling = Tiling {
            again: again.to_vec(),
            fused_chains: fused_chains.to_vec(),
            ..Tiling::default()
        };
        TiledModel {
            model: self.whole.tiled(&tiling, &self.load).expect("it can be tiled"),
            peak,
            op_bytes: 0,
            max_overhead: Some(100_000),
        }
    }

    /// What is tried after a tiling was rejected for its bits, beside those of `next`.
    fn after(&self, rejected: TiledModel, next: Vec<TiledModel>, has_bits: impl FnMut(&Model) -> bool) -> Vec<Tiling> {
        let mut tilings = Tilings {
            next: next.into(),
            ..Tilings::default()
        };
        let request = DeployRequest {
            fission: Some(&self.fission),
            ..DeployRequest::new(&self.path, None, &self.load, &self.solve)
        };
        let clock = Clock::start(&SolveControl::new());
        let context = Context {
            request: &request,
            clock: &clock,
            bench: None,
            measures: None,
            scratch: Path::new(""),
            peak: BaselinePeak {
                bytes: 0,
                of: BaselineOf::Simulated,
            },
            relaxations: RELAXATIONS,
        };
        let opened = Opened {
            strategy: Strategy::Tiled,
            model: rejected.model,
            laid_out: None,
            solve: self.solve.clone(),
            estimated_peak: rejected.peak,
            op_bytes: rejected.op_bytes,
            others: 0,
            file: Duration::ZERO,
            loads_to_simulate: false,
            static_is_worse: Cell::new(false),
            without_plan: OnceCell::new(),
        };
        tilings.rejects(&opened, &self.whole, &context, &other_bits(), has_bits);
        std::iter::from_fn(|| tilings.pop(None))
            .map(|(tiled, _)| tiled.model.tiling().expect("it has tiles").clone())
            .collect()
    }
}

fn has(model: &Model, chain: &FusedChain) -> bool {
    model.tiling().is_some_and(|tiling| tiling.fused_chains.contains(chain))
}

#[test]
fn a_chain_without_its_bits_is_left_out_of_all_tilings() {
    let case = Case::new();
    let (bad, good) = (layer(0), layer(1));
    let both = case.tiled(&[], &[bad.clone(), good.clone()], 1);
    let fewer = FusedChain {
        tiles: 2,
        ..bad.clone()
    };
    // What is left takes more than the first of those that follow, and less than the second.
    let next = || {
        vec![
            case.tiled(&[], std::slice::from_ref(&fewer), 2),
            case.tiled(&[], &[layer(2)], 3),
            case.tiled(&[], &[layer(3)], u64::MAX),
        ]
    };
    let left = case.after(both, next(), |model| !has(model, &bad));
    let fused_chains: Vec<_> = left.iter().map(|tiling| tiling.fused_chains.clone()).collect();
    assert_eq!(fused_chains, [vec![layer(2)], vec![good], vec![layer(3)]]);
}

#[test]
fn a_chain_that_is_cut_along_another_axis_may_have_its_bits() {
    let across = FusedChain {
        axis: Axis::Channels,
        ..layer(0)
    };
    assert!(is_like(&layer(0), &layer(0)) && !is_like(&across, &layer(0)) && !is_like(&layer(1), &layer(0)));
}

#[test]
fn clones_without_their_bits_are_left_out_and_chains_stay() {
    let case = Case::new();
    let all = [layer(1), layer(2)];
    let rejected = case.tiled(&[again()], &all, 1);
    let next = vec![case.tiled(&[again()], &[layer(1)], 2)];
    let left = case.after(rejected, next, |model| {
        model.tiling().is_none_or(|tiling| tiling.again.is_empty())
    });
    assert_eq!(left.len(), 1);
    assert_eq!(
        (left[0].again.len(), left[0].fused_chains.as_slice()),
        (0, all.as_slice())
    );
}

#[test]
fn what_was_to_keep_its_bits_is_tried_as_one_that_rounds_otherwise_where_it_may() {
    let case = Case {
        fission: FissionRequest {
            exactness: Exactness::Close,
            ..FissionRequest::EXACT
        },
        ..Case::new()
    };
    let (rejected, next) = (case.tiled(&[], &[layer(0)], 1), case.tiled(&[], &[layer(1)], u64::MAX));
    let left = case.after(rejected, vec![next], |_| unreachable!("no bits are looked at"));
    let found: Vec<_> = left
        .iter()
        .map(|tiling| (tiling.close, &tiling.fused_chains[..]))
        .collect();
    assert_eq!(found, [(true, &[layer(0)][..]), (false, &[layer(1)])]);
}

#[test]
fn where_every_chain_has_its_bits_the_next_tiling_is_tried() {
    let case = Case::new();
    let rejected = case.tiled(&[], &[layer(0)], 1);
    let next = vec![case.tiled(&[], &[layer(1)], 2)];
    let left = case.after(rejected, next, |_| true);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].fused_chains, [layer(1)]);
}

#[test]
fn only_tiles_of_lower_peaks_than_what_was_measured_are_tried_beside_it() {
    let case = Case::new();
    let peaks = [990_000, 980_000, 960_000];
    let next = peaks.map(|peak| case.tiled(&[], &[layer(0)], peak));
    let mut tilings = Tilings {
        next: VecDeque::from(next),
        ..Tilings::default()
    };
    let (next, others) = tilings.pop(Some(1_000_000)).expect("one is lower");
    assert_eq!((next.peak, others), (960_000, 0));
    assert!(tilings.pop(Some(1_000_000)).is_none());
}
