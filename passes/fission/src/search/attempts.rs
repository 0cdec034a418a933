//! Moves tried out.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use web_time::Instant;

use remat_ir::{Graph, OpId};
use remat_plan::Axis;
use rustc_hash::FxHashSet;

use super::basis::Basis;
use super::costs::Costs;
use super::courses::Courses;
use super::evaluate::Score;
use super::front::Front;
use super::moves::axes;
use super::options::{Candidate, SearchOptions, SearchReport};
use super::stretches::Means;
use crate::course::Span;
use crate::forms::Forms;
use crate::{Exactness, Tiling};

/// The least gain of a move, as a part of the objective.
const LEAST_GAIN: f64 = 0.002;

/// Less than the most by this part is as much.
const AS_MUCH: u64 = 16;

/// What every round uses.
pub(super) struct Search<'a> {
    pub(super) graph: &'a Graph,
    pub(super) options: &'a SearchOptions<'a>,
    /// Bases with clones or ops at other places that were tried last.
    pub(super) bases: Vec<(Rc<Basis>, Rc<RefCell<Courses>>)>,
    /// Forms of the ops of the graph, where tiles must have the same.
    forms: Option<Forms<'a>>,
    pub(super) axes: Vec<Axis>,
    pub(super) costs: Costs<'a>,
    front: Front,
    /// The graph as it is.
    original: Option<Candidate>,
    /// What has most in pieces.
    pub(super) in_pieces: Option<Candidate>,
    pub(super) evaluations: u64,
    /// When to stop, and after how many estimates.
    pub(super) limits: (Option<Instant>, Option<u64>),
    /// Time of the original graph.
    base: u64,
    /// How many new fused chains are tried around an op.
    pub(super) width: usize,
    /// How much a share of time weighs against the same share of memory.
    pub(super) weight: f64,
    /// The ends and the axis of a fused chain that must not be used.
    pub(super) forbidden: Option<(String, String, Axis)>,
}

/// Fused chains of a basis and what they take.
#[derive(Clone)]
pub(super) struct State {
    pub(super) basis: Rc<Basis>,
    pub(super) courses: Rc<RefCell<Courses>>,
    pub(super) spans: Vec<Span>,
    pub(super) score: Score,
}

/// A state that may follow, and the fused chain that is new in it.
pub(super) struct Move {
    pub(super) state: State,
    pub(super) span: Span,
}

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a Graph, options: &'a SearchOptions<'a>) -> Self {
        Self {
            graph,
            options,
            bases: Vec::new(),
            forms: options.exactness.is_exact().then(|| Forms::of(graph)).flatten(),
            axes: axes(graph, options),
            costs: Costs::new(options.device, options.bodies, options.op_bytes),
            front: Front::default(),
            original: None,
            in_pieces: None,
            evaluations: 0,
            limits: (options.deadline, options.evaluations),
            base: 1,
            width: 0,
            weight: 0.0,
            forbidden: None,
        }
    }

    pub(super) fn report(self, is_finished: bool) -> SearchReport {
        // The graph as it is comes first, even where the estimate has tiles faster.
        let mut front = self.front.into_candidates();
        if let Some(original) = self.original {
            front.retain(|candidate| candidate.peak < original.peak);
            front.insert(0, original);
        }
        SearchReport {
            in_pieces: self.in_pieces.filter(|found| !front.contains(found)),
            front,
            evaluations: self.evaluations,
            is_finished,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let (deadline, most) = self.limits;
        most.is_some_and(|most| self.evaluations >= most)
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.options.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Does something in a share of the time and the estimates that are left, in tenths.
    pub(super) fn within<T>(&mut self, tenths: u32, run: impl FnOnce(&mut Self) -> T) -> T {
        let (limits, now) = (self.limits, Instant::now());
        let until = limits
            .0
            .map(|deadline| now + deadline.saturating_duration_since(now) * tenths / 10);
        let left = |most: u64| most.saturating_sub(self.evaluations) * u64::from(tenths) / 10;
        self.limits = (until, limits.1.map(|most| self.evaluations + left(most)));
        let done = run(self);
        self.limits = limits;
        done
    }

    pub(super) fn objective(&self, score: &Score) -> f64 {
        score.objective(self.base, self.weight)
    }

    /// Whether a state is better than another one.
    pub(super) fn gains(&self, score: &Score, known: &Score) -> bool {
        self.objective(score) < self.objective(known) * (1.0 - LEAST_GAIN)
    }

    /// The time of a state in millionths of that of the original graph.
    pub(super) fn time_ppm(&self, score: &Score) -> u64 {
        let ppm = u128::from(score.time) * 1_000_000 / u128::from(self.base);
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }

    /// Whether a state takes no longer than is asked for.
    pub(super) fn is_fast(&self, score: &Score) -> bool {
        let most = self.options.most_overhead_permille;
        let most = most.map(|permille| permille.saturating_add(1_000).saturating_mul(1_000));
        most.is_none_or(|most| self.time_ppm(score) <= most)
    }

    /// Estimates fused chains, which are in order; `None` if they are not possible.
    pub(super) fn evaluate(&mut self, courses: &Rc<RefCell<Courses>>, spans: &[Span]) -> Option<Score> {
        let mut courses = courses.borrow_mut();
        let worked_out = spans
            .iter()
            .map(|&span| courses.get(span))
            .collect::<Option<Vec<_>>>()?;
        self.evaluations += 1;
        let mut means = Means {
            costs: &mut self.costs,
            forms: self.forms.as_ref(),
        };
        let score = courses.score(&worked_out, &mut means);
        let (score, basis) = (score?, &courses.basis);
        let is_changed = basis.changes != Tiling::default();
        if spans.is_empty() && !is_changed {
            self.base = score.time.max(1);
            self.original = Some(Candidate {
                tiling: Tiling::default(),
                peak: score.peak,
                time_ppm: self.time_ppm(&score),
            });
        }
        // Normalizations of which no fused chain has an op run as they are.
        let is_plain = spans.is_empty() && is_changed && basis.changes.again.is_empty();
        if self.is_fast(&score) && !is_plain {
            let time_ppm = self.time_ppm(&score);
            let close = self.options.exactness == Exactness::Close;
            self.front.offer(score.peak, time_ppm, || Tiling {
                close,
                ..basis.tiling(spans, self.options.two_passes)
            });
        }
        Some(score)
    }

    fn is_forbidden(&self, basis: &Basis, span: &Span) -> bool {
        let name = |op: OpId| basis.graph.ops[op].name.as_str();
        self.forbidden.as_ref().is_some_and(|(first, last, axis)| {
            *axis == span.axis && first == name(span.first) && last == name(span.last)
        })
    }

    /// States with one of these fused chains instead of those that it overlaps.
    pub(super) fn attempt(&mut self, state: &State, candidates: &[Span], tried: &mut FxHashSet<Span>) -> Vec<Move> {
        let mut moves = Vec::new();
        for &span in candidates {
            if self.is_over() {
                break;
            }
            if !tried.insert(span)
                || self.is_forbidden(&state.basis, &span)
                || state.courses.borrow_mut().get(span).is_none()
            {
                continue;
            }
            let apart = |other: &&Span| other.last < span.first || other.first > span.last;
            let mut spans: Vec<Span> = state.spans.iter().filter(apart).copied().collect();
            spans.push(span);
            spans.sort_unstable();
            if spans == state.spans {
                continue;
            }
            moves.extend(self.moved(state, spans, span));
        }
        moves
    }

    /// The state with these fused chains instead of its own; `span` is the one that is new or gone.
    fn moved(&mut self, state: &State, spans: Vec<Span>, span: Span) -> Option<Move> {
        let score = self.evaluate(&state.courses, &spans)?;
        let state = State {
            spans,
            score,
            ..state.clone()
        };
        Some(Move { state, span })
    }

    /// States in which chains that a graph repeats run in tiles everywhere, where `span` is one of them: all, and those in which as much is in memory.
    pub(super) fn attempt_everywhere(
        &mut self,
        state: &State,
        span: Span,
        tried: &mut FxHashSet<Vec<Span>>,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        let all = state.basis.equal_to(span);
        let level = |span: &Span| {
            let levels = &state.score.levels[span.first.index()..=span.last.index()];
            levels.iter().copied().max().unwrap_or(0)
        };
        let most = level(&span);
        let high = all
            .iter()
            .filter(|other| level(other) >= most - most / AS_MUCH)
            .copied()
            .collect();
        for equal in [all, high] {
            let is_forbidden = equal.iter().any(|span| self.is_forbidden(&state.basis, span));
            if equal.len() < 2 || is_forbidden || self.is_over() {
                continue;
            }
            let apart = |other: &&Span| {
                equal
                    .iter()
                    .all(|span| other.last < span.first || other.first > span.last)
            };
            let mut spans: Vec<Span> = state.spans.iter().filter(apart).copied().collect();
            spans.extend(equal);
            spans.sort_unstable();
            if spans != state.spans && tried.insert(spans.clone()) {
                moves.extend(self.moved(state, spans, span));
            }
        }
        moves
    }

    /// States without one of the fused chains.
    pub(super) fn attempt_fewer(&mut self, state: &State) -> Vec<Move> {
        let mut moves = Vec::new();
        for (place, &span) in state.spans.iter().enumerate() {
            if self.is_over() {
                break;
            }
            let mut spans = state.spans.clone();
            spans.remove(place);
            moves.extend(self.moved(state, spans, span));
        }
        moves
    }
}
