//! Fission: fused chains of a model run tile by tile, where that lowers its peak or saves time within its budget.
//!
//! [`tile`] looks for fused chains (`remat-fission`), and has a solver plan the most promising of what it finds, beside the model as it is.
//! What comes of it is a [`Model`] like any other: planned, checked and written as if its tiles were ops of their own. Before it is used,
//! `remat-verify` derives every tile from the ops of the model again.

mod costs;
mod error;
mod outlook;
mod request;

use remat_fission::{Exactness, Tiling, more_loaded};
use remat_ir::Graph;
use remat_plan::BudgetSpec;
use remat_solve::SolveControl;

use self::costs::profile_of_tiles;
pub use self::error::FissionError;
use self::outlook::{GAIN_PERMILLE, candidates};
pub use self::outlook::{TilingOutlook, tiling_outlook};
pub use self::request::FissionRequest;

use crate::{Error, Format, LoadOptions, Model, ReadError, Solution, SolveRequest, solve};

/// Share of the time for planning the model as it is, which tiles are held against.
const WHOLE: f64 = 0.2;
/// Share of the time for finding fused chains.
const SEARCHING: f64 = 0.5;
/// Overhead in per cent up to which a plan without tiles is good enough for a budget.
const CHEAP_PERCENT: f64 = 0.5;
/// What the duration under a budget must be of that without tiles, in thousandths, to be worth them.
const SHORTER_PERMILLE: u64 = 995;
/// What a peak or a duration must be of that of tiles that keep every bit, in thousandths, to be worth other bits.
const CLOSE_PERMILLE: u64 = 970;

impl Model {
    /// The model with fused chains of it tile by tile; `options` are those that it was read with. Whether bits stay is for whoever chose the
    /// fused chains.
    ///
    /// # Errors
    /// [`FissionError`]; those of [`Model::open`].
    pub fn tiled(&self, tiling: &Tiling, options: &LoadOptions) -> Result<Self, Error> {
        let whole = self.whole_graph(options)?;
        let apply = |exactness| remat_fission::apply(&whole, tiling, exactness);
        let exact = || {
            apply(Exactness::Exact {
                threads: 1,
                blocks: true,
            })
        };
        let whole_sums = || apply(Exactness::WholeSums);
        let graph = match (tiling.close, outlook::device_of(self, options)?.cpu_kernels) {
            (true, _) => apply(Exactness::Close),
            // As they were searched for: cuts lie where blocks of the runtime's layout end.
            (false, true) => exact().or_else(|_| whole_sums()),
            // Maxima over the axis that is cut keep their bits, too.
            (false, false) => whole_sums().or_else(|refused| exact().map_err(|_| refused)),
        };
        let graph = graph.map_err(FissionError::Tiling)?;
        remat_fission_check::check_fission(&whole, &graph).map_err(FissionError::Rejected)?;
        let mut own = options.clone();
        if let Some(file) = &options.profile {
            own.profile = Some(profile_of_tiles(file, &whole, &graph, &options.device()?));
        }
        let model = match self.onnx() {
            Some(onnx) => Self::from_onnx(onnx.rewritten(&graph, &own.import()).map_err(ReadError::Onnx)?, &own)?,
            None => Self::from_mlir(graph, &own)?,
        };
        Ok(model.tiled_from(self, tiling.clone()))
    }

    /// The graph of which fused chains may be tiled, with what the rules ask of constants.
    fn whole_graph(&self, options: &LoadOptions) -> Result<Graph, Error> {
        match (self.onnx(), self.graph()) {
            (Some(onnx), _) => Ok(onnx.graph_with_integers(&options.import()).map_err(ReadError::Onnx)?),
            (None, Some(graph)) if self.format() == Format::Mlir => Ok(graph.clone()),
            _ => Err(FissionError::NoOps.into()),
        }
    }
}

/// A model with fused chains tile by tile, and what a plan for it is estimated to take.
#[derive(Debug)]
pub struct TiledModel {
    /// The model.
    pub model: Model,
    /// Bytes at the peak of a plan that a short search found.
    pub peak: u64,
    /// Bytes that the runtime keeps for the ops that the tiles add.
    pub op_bytes: u64,
    /// The overhead to ask for, in millionths: above the limit of the request where the estimated time is.
    pub max_overhead: Option<u64>,
}

/// The model with fused chains tile by tile with which a plan for `request` is better than without: of a peak that is lower by far, or under a
/// budget in bytes, shorter. The best of them first; none where nothing is gained.
///
/// Under a budget the tilings that are tried are those for the budget and those that are tried without one ([`BudgetSpec::Auto`]): what gives
/// the lowest peak for little time is the best answer to many budgets.
///
/// # Errors
/// Those of [`Model::tiled`].
pub fn tile(
    model: &Model,
    options: &LoadOptions,
    request: &SolveRequest,
    fission: &FissionRequest,
    control: &SolveControl<'_>,
) -> Result<Vec<Model>, Error> {
    let found = tile_to_measure(model, options, request, fission, TileChoice::default(), control)?;
    Ok(found.into_iter().map(|tiled| tiled.model).collect())
}

/// What is known of tiles and of plans without them by who measures both.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TileChoice {
    /// Behind models within the limit of time come those of lower peaks whose estimated time is above it by up to so many millionths of the
    /// duration of the model as it is.
    pub slack: u64,
    /// Whether plans of whole ops are known not to do, so that tiles need not be better than these by estimate.
    pub without_whole: bool,
}

/// [`tile`] for who measures.
///
/// # Errors
/// Those of [`Model::tiled`].
pub fn tile_to_measure(
    model: &Model,
    options: &LoadOptions,
    request: &SolveRequest,
    fission: &FissionRequest,
    TileChoice { slack, without_whole }: TileChoice,
    control: &SolveControl<'_>,
) -> Result<Vec<TiledModel>, Error> {
    if request.budget == BudgetSpec::None {
        return Ok(Vec::new());
    }
    let whole = match without_whole {
        true => None,
        false => solve(model, request, &control.share_of_time(WHOLE)).ok(),
    };
    let is_bounded = request.budget.bytes(model.baseline_peak().bytes).is_some();
    if whole
        .as_ref()
        .is_some_and(|whole| is_bounded && whole.overhead.percent() < CHEAP_PERCENT)
    {
        return Ok(Vec::new());
    }
    let asked = |slack| SolveRequest {
        max_overhead: request.most_overhead().map(|most| most.saturating_add(slack)),
        ..request.clone()
    };
    let searching = control.share_of_time(SEARCHING);
    let find = |request: &SolveRequest, slack, control: &SolveControl<'_>| {
        candidates(model, options, (request, slack), fission, control)
    };
    let mut candidates = Vec::new();
    if is_bounded {
        let without = SolveRequest {
            budget: BudgetSpec::Auto,
            ..request.clone()
        };
        candidates = find(&without, 0, &searching)?;
        // Planning lowers most; what is found for the budget itself may follow.
        let budget = request.budget.bytes(model.baseline_peak().bytes);
        candidates.retain(|candidate| outlook::may_keep(candidate, budget));
    }
    let searching = if is_bounded {
        control.share_of_time(SEARCHING)
    } else {
        searching
    };
    for candidate in find(request, slack, &searching)? {
        if !candidates.iter().any(|other| other.tiling == candidate.tiling) {
            candidates.push(candidate);
        }
    }
    let mut found: Vec<(bool, Score, TiledModel)> = Vec::new();
    let floor = whole.as_ref().map(|whole| Score::of(whole, is_bounded, 0));
    for (place, candidate) in candidates.iter().enumerate() {
        let tiled = match model.tiled(&candidate.tiling, options) {
            Ok(tiled) => tiled,
            // What the checker rejects is a bug, and no reason to end without a plan: the model goes on as it is.
            Err(error) => {
                tracing::error!("a tiling cannot be used: {error}");
                continue;
            }
        };
        let left = (candidates.len() - place) as f64;
        let is_slow = outlook::is_slow(candidate, request);
        let asked = if is_slow { asked(slack) } else { request.clone() };
        let Ok(planned) = solve(&tiled, &asked, &control.share_of_time(1.0 / left)) else {
            continue;
        };
        let ops = |model: &Model| model.problem().ops.len() as u64;
        let op_bytes = more_loaded(ops(&tiled).saturating_sub(ops(model)).saturating_mul(fission.op_bytes));
        let score = Score::of(&planned, is_bounded, op_bytes);
        tracing::debug!(tiling = ?candidate.tiling, estimated = candidate.peak, is_slow, ?score, "a tiling was planned");
        let alone = Score::of(&planned, is_bounded, 0);
        if floor
            .as_ref()
            .is_none_or(|floor| alone.gains_on(floor) && score < *floor)
        {
            let (peak, max_overhead) = (planned.replay.peak, asked.max_overhead);
            let tiled = TiledModel {
                model: tiled,
                peak,
                op_bytes,
                max_overhead,
            };
            found.push((is_slow, score, tiled));
        }
    }
    let is_close = |tiled: &TiledModel| tiled.model.tiling().is_some_and(|tiling| tiling.close);
    let exact: Vec<_> = found
        .iter()
        .filter(|(.., tiled)| !is_close(tiled))
        .map(|&(is_slow, score, _)| (is_slow, score))
        .collect();
    found.retain(|(is_slow, score, tiled)| {
        let is_as_good =
            |(other_is_slow, exact): &(bool, Score)| other_is_slow <= is_slow && !score.is_worth_bits(exact);
        !is_close(tiled) || !exact.iter().any(is_as_good)
    });
    found.sort_by_key(|&(is_slow, score, _)| (is_slow, score));
    Ok(found.into_iter().map(|(_, _, tiled)| tiled).collect())
}

/// How good a plan is, the less the better: its peak, then its duration; under a budget that it keeps, the other way round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Score {
    Duration(u64, u64),
    Peak(u64, u64),
}

impl Score {
    /// Of a plan for a model whose ops take `op_bytes` more than those of the one without tiles.
    fn of(solution: &Solution, is_bounded: bool, op_bytes: u64) -> Self {
        let (peak, duration) = (solution.replay.peak.saturating_add(op_bytes), solution.replay.duration);
        if is_bounded {
            Self::Duration(duration, peak)
        } else {
            Self::Peak(peak, duration)
        }
    }

    /// Whether it is so much better that tiles are worth it.
    fn gains_on(self, floor: &Self) -> bool {
        self.is_less(floor, [GAIN_PERMILLE, SHORTER_PERMILLE])
    }

    /// Whether it is so much better than what keeps every bit that other bits are worth it.
    fn is_worth_bits(self, exact: &Self) -> bool {
        self.is_less(exact, [CLOSE_PERMILLE; 2])
    }

    /// Whether its peak, or under a budget its duration, is below so many thousandths of that of another.
    fn is_less(self, other: &Self, [peak, duration]: [u64; 2]) -> bool {
        match (self, other) {
            (Self::Peak(own, _), Self::Peak(other, _)) => is_below(own, *other, peak),
            (Self::Duration(own, _), Self::Duration(other, _)) => is_below(own, *other, duration),
            (Self::Peak(..), Self::Duration(..)) | (Self::Duration(..), Self::Peak(..)) => false,
        }
    }
}

/// Whether a number is below so many thousandths of another.
fn is_below(own: u64, other: u64, permille: u64) -> bool {
    u128::from(own) * 1_000 < u128::from(other) * u128::from(permille)
}
