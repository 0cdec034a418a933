//! The rounds of the search.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use remat_ir::{Graph, OpId};
use rustc_hash::FxHashSet;

use super::basis::{Basis, Courses};
use super::evaluate::{Score, score};
use super::front::Front;
use super::moves::{around, axes, clones, finer, over_clones};
use super::options::{SearchOptions, SearchReport};
use crate::FissionError;
use crate::apply::write;
use crate::course::Span;
use remat_plan::Axis;

/// The least gain of a move, as a part of the norm.
const LEAST_GAIN: f64 = 0.002;

/// Ops of levels below this share of the highest are no peaks.
const PEAK: f64 = 0.93;

/// After so many peaks at which nothing helps the search ends.
const STUCK: u32 = 12;

/// How many of the best moves are tried in every number of tiles and mode.
const BEST: usize = 6;

/// What every round uses.
struct Search<'a> {
    graph: &'a Graph,
    options: &'a SearchOptions<'a>,
    axes: Vec<Axis>,
    front: Front,
    evaluations: u64,
    /// Time of the graph as it came.
    base: u64,
}

/// Stretches of a basis and what they take.
#[derive(Clone)]
struct State {
    basis: Rc<Basis>,
    spans: Vec<Span>,
    score: Score,
}

/// A state that may follow, the stretch that is new in it, and its objective.
struct Move {
    state: State,
    span: Span,
    objective: f64,
}

pub(super) fn run(graph: &Graph, options: &SearchOptions<'_>) -> Result<SearchReport, FissionError> {
    let mut options = options.clone();
    options.tiles.retain(|&tiles| tiles > 1);
    let options = &options;
    let basis = Rc::new(Basis::new(graph, Vec::new())?);
    let mut search = Search {
        graph,
        options,
        axes: axes(graph, options),
        front: Front::default(),
        evaluations: 0,
        base: 1,
    };
    let mut courses = Courses::of(&basis, options.exactness)?;
    let start = search.evaluate(&basis, &mut courses, &[]);
    let mut is_finished = true;
    if let Some(score) = start {
        let spans = Vec::new();
        drop(courses);
        is_finished = search.descend(State { basis, spans, score })?;
    }
    Ok(SearchReport {
        front: search.front.into_candidates(),
        evaluations: search.evaluations,
        is_finished,
    })
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        let options = self.options;
        options.evaluations.is_some_and(|most| self.evaluations >= most)
            || options.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || options.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Estimates stretches, which are in order; `None` if they are not possible or take too long.
    fn evaluate(&mut self, basis: &Basis, courses: &mut Courses<'_>, spans: &[Span]) -> Option<Score> {
        let worked_out = spans
            .iter()
            .map(|&span| courses.get(span))
            .collect::<Option<Vec<_>>>()?;
        let worked_out: Vec<_> = worked_out.iter().map(Rc::as_ref).collect();
        self.evaluations += 1;
        let (graph, origin) = write(&courses.layout, &worked_out).ok()?;
        let score = score(graph, &origin, basis.graph.ops.len(), self.options.device)?;
        if spans.is_empty() && basis.again.is_empty() {
            self.base = score.time.max(1);
        }
        let time_ppm = u128::from(score.time) * 1_000_000 / u128::from(self.base);
        let time_ppm = u64::try_from(time_ppm).unwrap_or(u64::MAX);
        let most = self.options.most_overhead_permille;
        let most = most.map(|permille| permille.saturating_add(1_000).saturating_mul(1_000));
        if most.is_some_and(|most| time_ppm > most && !spans.is_empty()) {
            return None;
        }
        self.front.offer(score.peak, time_ppm, || basis.tiling(spans));
        Some(score)
    }

    /// Goes from state to state; whether it ended because nothing helped any more.
    fn descend(&mut self, mut state: State) -> Result<bool, FissionError> {
        let mut stuck = 0;
        let mut given_up: FxHashSet<OpId> = FxHashSet::default();
        while stuck < STUCK {
            if self.is_over() {
                return Ok(false);
            }
            let Some(peak) = highest(&state.score, &given_up) else {
                break;
            };
            let basis = Rc::clone(&state.basis);
            let mut courses = Courses::of(&basis, self.options.exactness)?;
            match self.round(&state, &mut courses, peak)? {
                Some(next) => {
                    if !Rc::ptr_eq(&next.basis, &basis) {
                        given_up.clear();
                    }
                    state = next;
                    stuck = 0;
                }
                None => {
                    given_up.insert(peak);
                    stuck += 1;
                }
            }
        }
        Ok(!self.is_over())
    }

    /// The best state after one move, if it is better.
    fn round(&mut self, state: &State, courses: &mut Courses<'_>, peak: OpId) -> Result<Option<State>, FissionError> {
        let basis = Rc::clone(&state.basis);
        let candidates = around(&basis, courses, peak, &state.spans, &self.axes, self.options);
        let mut tried = FxHashSet::default();
        let mut moves = self.attempt(state, courses, &candidates, &mut tried);
        moves.sort_by(|a, b| a.objective.total_cmp(&b.objective));
        let best: Vec<Span> = moves.iter().take(BEST).map(|next| next.span).collect();
        let again = if best.is_empty() {
            let fewest = self.options.tiles.first().copied();
            let coarse = |span: &Span| Span {
                tiles: fewest.unwrap_or(span.tiles),
                ..*span
            };
            candidates.iter().map(coarse).collect()
        } else {
            finer(&best, self.options)
        };
        let more = self.attempt(state, courses, &again, &mut tried);
        moves.extend(more);
        if moves.is_empty() && self.options.again {
            moves = self.attempt_clones(state, courses, peak)?;
        }
        let best = moves.into_iter().min_by(|a, b| a.objective.total_cmp(&b.objective));
        Ok(best.map(|best| best.state))
    }

    /// States with one of these stretches instead of those that it overlaps, as far as they lower the norm.
    fn attempt(
        &mut self,
        state: &State,
        courses: &mut Courses<'_>,
        candidates: &[Span],
        tried: &mut FxHashSet<Span>,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        for &span in candidates {
            if self.is_over() {
                break;
            }
            if !tried.insert(span) || courses.get(span).is_none() {
                continue;
            }
            let apart = |other: &&Span| other.last < span.first || other.first > span.last;
            let mut spans: Vec<Span> = state.spans.iter().filter(apart).copied().collect();
            spans.push(span);
            spans.sort_unstable();
            let Some(score) = self.evaluate(&state.basis, courses, &spans) else {
                continue;
            };
            if score.norm < state.score.norm * (1.0 - LEAST_GAIN) {
                let objective = score.objective(self.base);
                let basis = Rc::clone(&state.basis);
                let state = State { basis, spans, score };
                moves.push(Move { state, span, objective });
            }
        }
        moves
    }

    /// States in which ops run a second time before a late reader, with tiles over both.
    fn attempt_clones(&mut self, state: &State, courses: &Courses<'_>, peak: OpId) -> Result<Vec<Move>, FissionError> {
        let mut moves: Vec<Move> = Vec::new();
        for again in clones(&state.basis, courses, peak) {
            if self.is_over() {
                break;
            }
            let mut list = state.basis.again.clone();
            list.push(again.clone());
            let Ok(basis) = Basis::new(self.graph, list) else {
                continue;
            };
            let basis = Rc::new(basis);
            let Some(renumbered) = renumbered(&state.basis, &basis, &state.spans, &again.before) else {
                continue;
            };
            let Renumbered { spans, first, reader } = renumbered;
            let mut courses = Courses::of(&basis, self.options.exactness)?;
            let Some(score) = self.evaluate(&basis, &mut courses, &spans) else {
                continue;
            };
            // Clones without tiles over them are worth something by themselves, and they are where others start from.
            let start = State {
                basis: Rc::clone(&basis),
                spans,
                score: state.score.clone(),
            };
            if score.norm < state.score.norm * (1.0 - LEAST_GAIN) {
                let objective = score.objective(self.base);
                let span = Span {
                    first,
                    last: reader,
                    tiles: 1,
                    axis: Axis::Rows,
                    mode: crate::Mode::Again,
                };
                let state = State { score, ..start.clone() };
                moves.push(Move { state, span, objective });
            }
            let mut tried = FxHashSet::default();
            let candidates = over_clones(&basis, first, reader, &self.axes, self.options);
            let mut found = self.attempt(&start, &mut courses, &candidates, &mut tried);
            found.sort_by(|a, b| a.objective.total_cmp(&b.objective));
            let best: Vec<Span> = found.iter().take(BEST / 2).map(|next| next.span).collect();
            found.extend(self.attempt(&start, &mut courses, &finer(&best, self.options), &mut tried));
            moves.extend(found);
        }
        Ok(moves)
    }
}

/// The op of the highest level that is not given up, if it is a peak.
fn highest(score: &Score, given_up: &FxHashSet<OpId>) -> Option<OpId> {
    let levels = score.levels.iter().enumerate();
    let open = levels.filter(|(op, _)| !given_up.contains(&OpId::new(*op)));
    let (op, &level) = open.max_by_key(|&(op, &level)| (level, std::cmp::Reverse(op)))?;
    let is_peak = level as f64 >= score.peak as f64 * PEAK;
    is_peak.then_some(OpId::new(op))
}

/// Stretches on another basis.
struct Renumbered {
    spans: Vec<Span>,
    /// The first clone.
    first: OpId,
    /// The op before which the clones stand.
    reader: OpId,
}

fn renumbered(old: &Basis, new: &Basis, spans: &[Span], before: &str) -> Option<Renumbered> {
    let find = |name: &str| new.graph.ops.iter().position(|op| op.name == name).map(OpId::new);
    let renumber = |span: &Span| {
        Some(Span {
            first: find(&old.graph.ops[span.first].name)?,
            last: find(&old.graph.ops[span.last].name)?,
            ..*span
        })
    };
    let spans = spans.iter().map(renumber).collect::<Option<Vec<Span>>>()?;
    let reader = find(before)?;
    let clones = new.graph.ops.len() - old.graph.ops.len();
    let first = OpId::new(reader.index().checked_sub(clones)?);
    (clones > 0).then_some(Renumbered { spans, first, reader })
}
