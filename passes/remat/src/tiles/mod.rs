//! Fission: stretches of a model run tile by tile, where that lowers its peak or saves time within its budget.
//!
//! [`tile`] looks for stretches (`remat-fission`), and has a solver plan the most promising of what it finds, beside the model as it is.
//! What comes of it is a [`Model`] like any other: planned, checked and written as if its tiles were ops of their own. Before it is used,
//! `remat-verify` derives every tile from the ops of the model again.

mod costs;
mod error;

use remat_fission::{Axis, Candidate, Exactness, SearchOptions, Tiling};
use remat_plan::BudgetSpec;
use remat_solve::SolveControl;

use self::costs::profile_of_tiles;
pub use self::error::FissionError;

use crate::{Error, LoadOptions, Model, ReadError, Solution, SolveRequest, solve};

/// Share of the time for planning the model as it is, which tiles are held against.
const WHOLE: f64 = 0.2;
/// Share of the time for finding stretches.
const SEARCHING: f64 = 0.5;
/// How many of what is found are planned.
const PLANNED: usize = 4;
/// What a peak must be of that without tiles, in thousandths, to be worth them: short searches for plans are that unsure.
const GAIN_PERMILLE: u64 = 900;
/// Overhead in per cent up to which a plan without tiles is good enough for a budget.
const CHEAP_PERCENT: f64 = 0.5;
/// Share of a peak, as a divisor, by which the next candidate's must differ.
const APART: u64 = 16;
/// By how much, in thousandths of its budget, an estimated peak may lie above it: planning lowers most.
const ABOVE_PERMILLE: u64 = 1_300;

/// What stretches may be run tile by tile.
#[derive(Clone, Debug)]
pub struct FissionRequest {
    /// Whether every bit stays.
    pub exactness: Exactness,
    /// Numbers of tiles to try; empty: those that the search likes.
    pub tiles: Vec<u32>,
    /// Axes to cut; empty: all.
    pub axes: Vec<Axis>,
}

impl FissionRequest {
    /// Every bit stays, with one to four threads.
    pub const EXACT: Self = Self {
        exactness: Exactness::Exact { threads: 4 },
        tiles: Vec::new(),
        axes: Vec::new(),
    };
}

impl Model {
    /// The model with stretches of it tile by tile; `options` are those that it was read with. Whether bits stay is for whoever chose the
    /// stretches.
    ///
    /// # Errors
    /// [`FissionError`]; those of [`Model::open`].
    pub fn tiled(&self, tiling: &Tiling, options: &LoadOptions) -> Result<Self, Error> {
        let onnx = self.onnx().ok_or(FissionError::NotOnnx)?;
        let whole = onnx.graph_with_integers(&options.import()).map_err(ReadError::Onnx)?;
        let graph = remat_fission::apply(&whole, tiling, Exactness::Any).map_err(FissionError::Tiling)?;
        remat_verify::check_fission(&whole, &graph).map_err(FissionError::Rejected)?;
        let mut own = options.clone();
        if let Some(file) = &options.profile {
            own.profile = Some(profile_of_tiles(file, &whole, &graph, &options.device()?));
        }
        let model = Self::from_onnx(onnx.rewritten(&graph, &own.import()).map_err(ReadError::Onnx)?, &own)?;
        Ok(model.tiled_from(self, tiling.clone()))
    }
}

/// The model with those stretches tile by tile with which a plan for `request` is better by far than without: of a lower peak, or under a
/// budget in bytes, shorter. `None` where nothing is gained.
///
/// # Errors
/// Those of [`Model::tiled`].
pub fn tile(
    model: &Model,
    options: &LoadOptions,
    request: &SolveRequest,
    fission: &FissionRequest,
    control: &SolveControl<'_>,
) -> Result<Option<Model>, Error> {
    if request.budget == BudgetSpec::None {
        return Ok(None);
    }
    let whole = solve(model, request, &control.share_of_time(WHOLE)).ok();
    let is_bounded = request.budget.bytes(model.baseline_peak().bytes).is_some();
    if whole
        .as_ref()
        .is_some_and(|whole| is_bounded && whole.overhead.percent() < CHEAP_PERCENT)
    {
        return Ok(None);
    }
    let candidates = candidates(model, options, request, fission, &control.share_of_time(SEARCHING))?;
    let mut best: Option<(Score, Model)> = None;
    let floor = whole.as_ref().map(|whole| Score::of(whole, request));
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
        let Ok(planned) = solve(&tiled, request, &control.share_of_time(1.0 / left)) else {
            continue;
        };
        let score = Score::of(&planned, request);
        tracing::debug!(tiling = ?candidate.tiling, estimated = candidate.peak, ?score, "a tiling was planned");
        let is_gain = floor.as_ref().is_none_or(|floor| score.gains_on(floor));
        if is_gain && best.as_ref().is_none_or(|(known, _)| score < *known) {
            best = Some((score, tiled));
        }
    }
    Ok(best.map(|(_, tiled)| tiled))
}

/// What is worth a plan, the most promising first.
fn candidates(
    model: &Model,
    options: &LoadOptions,
    request: &SolveRequest,
    fission: &FissionRequest,
    control: &SolveControl<'_>,
) -> Result<Vec<Candidate>, Error> {
    let onnx = model.onnx().ok_or(FissionError::NotOnnx)?;
    let graph = onnx.graph_with_integers(&options.import()).map_err(ReadError::Onnx)?;
    let device = options.device()?;
    let most = request.most_overhead();
    let mut asked = SearchOptions::new(&device);
    asked.exactness = fission.exactness;
    if !fission.tiles.is_empty() {
        asked.tiles.clone_from(&fission.tiles);
    }
    if !fission.axes.is_empty() {
        asked.axes.clone_from(&fission.axes);
    }
    asked.most_overhead_permille = most.map(|most| most.div_ceil(1_000));
    (asked.evaluations, asked.deadline, asked.cancelled) = (control.step_limit, control.deadline, control.cancel);
    let found = remat_fission::search(&graph, &asked).map_err(FissionError::Tiling)?;
    tracing::debug!(
        found.evaluations,
        found.is_finished,
        front = found.front.len(),
        "tilings were searched for"
    );
    let budget = request.budget.bytes(model.baseline_peak().bytes);
    let untiled = found.front.first().map_or(u64::MAX, |first| first.peak);
    let is_allowed = |candidate: &Candidate| {
        let is_fast = most.is_none_or(|most| candidate.time_ppm <= 1_000_000 + most);
        let is_low = budget.is_none_or(|budget| candidate.peak <= budget / 1_000 * ABOVE_PERMILLE);
        let is_gain = candidate.peak < untiled / 1_000 * GAIN_PERMILLE;
        is_fast && is_low && is_gain
    };
    let mut found: Vec<Candidate> = found.front.into_iter().filter(is_allowed).collect();
    if budget.is_some() {
        found.sort_by_key(|candidate| (candidate.time_ppm, candidate.peak));
    } else {
        found.sort_by_key(|candidate| (candidate.peak, candidate.time_ppm));
    }
    // Those whose peaks are close are close in all.
    let mut last = None;
    found.retain(|candidate| {
        let is_apart = last.is_none_or(|last: u64| candidate.peak.abs_diff(last) > last / APART);
        if is_apart {
            last = Some(candidate.peak);
        }
        is_apart
    });
    found.truncate(PLANNED);
    Ok(found)
}

/// How good a plan is, the less the better: its peak, then its duration; under a budget that it keeps, the other way round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Score(u64, u64);

impl Score {
    fn of(solution: &Solution, request: &SolveRequest) -> Self {
        let (peak, duration) = (solution.replay.peak, solution.replay.duration);
        match request.budget {
            BudgetSpec::Bytes(_) | BudgetSpec::Share(_) => Self(duration, peak),
            BudgetSpec::Auto | BudgetSpec::Min | BudgetSpec::None => Self(peak, duration),
        }
    }

    /// Whether it is so much better that tiles are worth it.
    fn gains_on(self, floor: &Self) -> bool {
        u128::from(self.0) * 1_000 < u128::from(floor.0) * u128::from(GAIN_PERMILLE)
    }
}
