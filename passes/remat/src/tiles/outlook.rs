//! What tilings of a model are there, by estimate.

use remat_cost::Device;
use remat_fission::{Bound, BoundOnce, Candidate, Exactness, SearchOptions, SearchReport, bound, bound_once, search};
use remat_ir::Graph;
use remat_onnx::OnnxModel;
use remat_onnxruntime_sim::body_bytes;
use remat_solve::SolveControl;

use super::error::FissionError;
use super::request::FissionRequest;
use crate::{Error, Format, LoadOptions, Model, SolveRequest};

/// What a peak must be of that without tiles, in thousandths, to be worth them: short searches for plans are that unsure.
pub(super) const GAIN_PERMILLE: u64 = 900;
/// How many of what is found are planned.
const PLANNED: usize = 4;
/// The same for those whose estimated time is above the limit.
const SLOW_PLANNED: usize = 2;
/// Share of a peak, as a divisor, by which the next candidate's must differ.
const APART: u64 = 16;
/// By how much, in thousandths of its budget, an estimated peak may lie above it: planning lowers most.
const ABOVE_PERMILLE: u64 = 1_300;

/// What fission gives a model: estimates in reference order, before any plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TilingOutlook {
    /// Tilings of which none takes less memory in less time than another, from the fastest to the one of the lowest peak; the first one is empty.
    pub front: Vec<Candidate>,
    /// What no tiling goes below, and the op that needs it.
    pub bound: Option<Bound>,
    /// What no tiling goes below that computes no element twice, and what is there then.
    pub bound_once: Option<BoundOnce>,
}

impl TilingOutlook {
    /// The tiling of the lowest estimated peak that adds at most so many millionths of the time; `None` if that is no tiling.
    #[must_use]
    pub fn lowest(&self, most_overhead: Option<u64>) -> Option<&Candidate> {
        let is_fast = |candidate: &&Candidate| {
            most_overhead.is_none_or(|most| candidate.time_ppm <= most.saturating_add(1_000_000))
        };
        let lowest = self.front.iter().filter(is_fast).min_by_key(|candidate| candidate.peak);
        lowest.filter(|candidate| !candidate.tiling.fused_chains.is_empty())
    }
}

/// Looks for tilings of a model that was read with `options`, within the limits of `control`.
///
/// # Errors
/// [`FissionError`] for a model that is not ONNX.
pub fn tiling_outlook(
    model: &Model,
    options: &LoadOptions,
    fission: &FissionRequest,
    control: &SolveControl<'_>,
) -> Result<TilingOutlook, Error> {
    let graph = model.whole_graph(options)?;
    let device = device_of(model, options)?;
    let asked = (fission, model);
    let exactness = exactness(asked, &device);
    let mut front = searched(&graph, &device, asked, None, control)?.front;
    front.sort_by_key(|candidate| (candidate.time_ppm, candidate.peak, candidate.tiling.close));
    let mut least = u64::MAX;
    front.retain(|candidate| {
        let is_lower = candidate.peak < least;
        least = least.min(candidate.peak);
        is_lower
    });
    Ok(TilingOutlook {
        front,
        bound: bound(&graph, exactness),
        bound_once: bound_once(&graph, exactness),
    })
}

/// The device, with kernels of ONNX Runtime where those run the model.
pub(super) fn device_of(model: &Model, options: &LoadOptions) -> Result<Device, Error> {
    let mut device = options.device()?;
    device.cpu_kernels &= model.format() == Format::Onnx;
    Ok(device)
}

/// As long as no sum is split, kernels that add up each number by itself keep all bits; those of ONNX Runtime do not. What splits sums can be
/// written as ONNX only.
fn exactness((fission, model): (&FissionRequest, &Model), device: &Device) -> Exactness {
    match fission.exactness {
        exactness if device.cpu_kernels => exactness,
        Exactness::Close if model.format() == Format::Onnx => Exactness::Close,
        _ => Exactness::WholeSums,
    }
}

/// Tilings of which none is better than another of its class, from the fastest to the one of the lowest peak. Where outputs may round otherwise, those
/// that keep every bit are looked for first.
fn searched(
    graph: &Graph,
    device: &Device,
    asked: (&FissionRequest, &Model),
    most_overhead: Option<u64>,
    control: &SolveControl<'_>,
) -> Result<SearchReport, Error> {
    let find = |exactness, control: &SolveControl<'_>| {
        let most = most_overhead.map(|most| most.div_ceil(1_000));
        searched_for(graph, device, (asked, exactness), most, control)
    };
    let exactness = exactness(asked, device);
    if exactness != Exactness::Close || asked.0.two_passes {
        return find(exactness, control);
    }
    let bits = match device.cpu_kernels {
        true => FissionRequest::EXACT.exactness.in_blocks(),
        false => Exactness::WholeSums,
    };
    let third = control.share_of_time(1.0 / 3.0);
    let third = control.step_limit.map_or(third, |steps| third.step_limit(steps / 3));
    let mut found = find(bits, &third)?;
    let rest = control.step_limit.map(|steps| control.step_limit(steps - steps / 3));
    found.front.extend(find(exactness, &rest.unwrap_or(*control))?.front);
    Ok(found)
}

fn searched_for(
    graph: &Graph,
    device: &Device,
    ((fission, model), exactness): ((&FissionRequest, &Model), Exactness),
    most_overhead_permille: Option<u64>,
    control: &SolveControl<'_>,
) -> Result<SearchReport, Error> {
    let mut asked = SearchOptions::new(device);
    asked.exactness = exactness;
    asked.bodies = body_bytes;
    if !fission.tiles.is_empty() {
        asked.tiles.clone_from(&fission.tiles);
    }
    if !fission.axes.is_empty() {
        asked.axes.clone_from(&fission.axes);
    }
    asked.grids = fission.grids;
    asked.two_passes = fission.two_passes;
    asked.may_stream = model.onnx().is_none_or(OnnxModel::may_stream);
    asked.op_bytes = fission.op_bytes;
    asked.most_overhead_permille = most_overhead_permille;
    (asked.evaluations, asked.deadline, asked.cancelled) = (control.step_limit, control.deadline, control.cancel);
    let found = search(graph, &asked).map_err(FissionError::Tiling)?;
    tracing::debug!(
        ?exactness,
        found.evaluations,
        found.is_finished,
        front = found.front.len(),
        "tilings were searched for"
    );
    Ok(found)
}

/// Whether a tiling is estimated to take longer than is asked for.
pub(super) fn is_slow(candidate: &Candidate, request: &SolveRequest) -> bool {
    let most = request.most_overhead();
    most.is_some_and(|most| candidate.time_ppm > most.saturating_add(1_000_000))
}

/// Whether a plan with a tiling may keep a budget.
pub(super) fn may_keep(candidate: &Candidate, budget: Option<u64>) -> bool {
    budget.is_none_or(|budget| candidate.peak <= budget / 1_000 * ABOVE_PERMILLE)
}

/// What is worth a plan, the most promising first; of those that take longer than is asked for, by up to `slack` millionths, the ones of lower
/// peaks than all others.
pub(super) fn candidates(
    model: &Model,
    options: &LoadOptions,
    (request, slack): (&SolveRequest, u64),
    fission: &FissionRequest,
    control: &SolveControl<'_>,
) -> Result<Vec<Candidate>, Error> {
    let most = request.most_overhead().map(|most| most.saturating_add(slack));
    let device = device_of(model, options)?;
    let SearchReport {
        front: found,
        in_pieces,
        ..
    } = searched(&model.whole_graph(options)?, &device, (fission, model), most, control)?;
    let budget = request.budget.bytes(model.baseline_peak().bytes);
    let untiled = found.first().map_or(u64::MAX, |first| first.peak);
    let is_allowed = |candidate: &Candidate| {
        let is_fast = most.is_none_or(|most| candidate.time_ppm <= most.saturating_add(1_000_000));
        let is_low = may_keep(candidate, budget);
        let is_gain = candidate.peak < untiled / 1_000 * GAIN_PERMILLE;
        is_fast && is_low && is_gain
    };
    let (close, exact): (Vec<Candidate>, Vec<Candidate>) = found
        .into_iter()
        .filter(is_allowed)
        .partition(|candidate| candidate.tiling.close);
    // Estimates of both classes leave out what the runtime's layouts take: each has its share of what is planned.
    let classes = 1 + usize::from(!close.is_empty() && !exact.is_empty());
    let mut chosen = Vec::new();
    for found in [close, exact] {
        let (mut slow, mut fast): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| is_slow(one, request));
        // The fastest that keeps the budget in reference order needs no steps of a solver to keep it.
        let mut kept = None;
        if let Some(budget) = budget {
            fast.sort_by_key(|candidate| (candidate.time_ppm, candidate.peak));
            kept = fast.iter().find(|candidate| candidate.peak <= budget).cloned();
        } else {
            fast.sort_by_key(|candidate| (candidate.peak, candidate.time_ppm));
        }
        if let Some(least) = fast.iter().map(|candidate| candidate.peak).min() {
            slow.retain(|candidate| candidate.peak < least - least / APART);
        }
        slow.sort_by_key(|candidate| (candidate.peak, candidate.time_ppm));
        keep_apart(&mut fast, PLANNED / classes);
        if let Some(kept) = kept.filter(|kept| !fast.contains(kept)) {
            fast.truncate(PLANNED / classes - 1);
            fast.push(kept);
        }
        keep_apart(&mut slow, SLOW_PLANNED / classes);
        chosen.append(&mut fast);
        chosen.append(&mut slow);
    }
    let may_do = |found: &Candidate| !is_slow(found, request) && may_keep(found, budget);
    chosen.extend(in_pieces.filter(may_do));
    // Those within the time first.
    chosen.sort_by_key(|candidate| is_slow(candidate, request));
    Ok(chosen)
}

/// Leaves at most `most` candidates, without those that follow one of about the same peak: they are close in all.
fn keep_apart(candidates: &mut Vec<Candidate>, most: usize) {
    let mut last = None;
    candidates.retain(|candidate| {
        let is_apart = last.is_none_or(|last: u64| candidate.peak.abs_diff(last) > last / APART);
        if is_apart {
            last = Some(candidate.peak);
        }
        is_apart
    });
    candidates.truncate(most);
}
