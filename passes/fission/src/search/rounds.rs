//! The rounds of the search.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use web_time::Instant;

use remat_ir::{Graph, OpId, StorageClass};
use rustc_hash::FxHashSet;

use super::attempts::{Move, Search, State};
use super::basis::Basis;
use super::courses::Courses;
use super::evaluate::Score;
use super::moves::{LARGE, along_sums, around, finer, in_turns};
use super::options::{Candidate, SearchOptions, SearchReport};
use super::path::Paths;
use crate::course::Span;
use crate::streamed::streamable;
use crate::{Exactness, FissionError, Tiling};
use crate::{best, softened};

/// Ops of levels below this share of the highest are no peaks.
const PEAK: f64 = 0.93;

/// After so many peaks at which nothing helps a descent ends.
const STUCK: u32 = 12;

/// How many of the best moves are tried in every number of tiles and mode.
const BEST: usize = 6;

/// The share of time and estimates, as a divisor, for paths of fused chains.
const SHARE_OF_PATHS: u32 = 3;

/// The share of time and estimates in which what may run in two passes does, in tenths.
const SHARE_IN_TWO_PASSES: u32 = 7;

/// The share of time and estimates, in tenths, in which fused chains along one axis and another take turns: for finding such sets, and for what follows.
const SHARE_IN_TURNS: u32 = 1;

/// What ops need by themselves is about the same if it is the same in so many parts of the peak.
const NEEDS: u128 = 32;

/// How many moves that do not help by themselves are followed by a second one, and by how many.
const FIRST_OF_TWO: usize = 3;
const SECOND_OF_TWO: usize = 16;

/// How many new fused chains are tried around an op, again and again more.
const WIDTHS: [usize; 4] = [24, 72, 216, 648];

/// What time weighs at first, and once nothing helps any more: as long as it is allowed, memory is what counts.
const WEIGHTS_OF_TIME: [f64; 2] = [0.35, 0.04];

pub(super) fn run(graph: &Graph, options: &SearchOptions<'_>) -> Result<SearchReport, FissionError> {
    let mut options = options.clone();
    options.tiles.retain(|&tiles| tiles > 1);
    let mut search = Search::new(graph, &options);
    let mut is_finished = true;
    // What others are held against is evaluated first.
    let (always, streamed) = (search.norms_in_two_passes(), search.streamed());
    let in_two_passes = streamed != always;
    if let Some(start) = search.start(always)? {
        if in_two_passes && let Some(start) = search.start(streamed)? {
            search.within(SHARE_IN_TWO_PASSES, |search| search.from(start));
            is_finished = !search.is_over();
        }
        search.from(start);
        is_finished &= !search.is_over();
    }
    Ok(search.report(is_finished))
}

impl Search<'_> {
    /// The state without fused chains in which these normalizations run in two passes.
    fn start(&mut self, streamed: Vec<String>) -> Result<Option<State>, FissionError> {
        let changes = Tiling {
            streamed,
            ..Tiling::default()
        };
        let basis = Rc::new(Basis::new(self.graph, changes)?);
        let courses = Rc::new(RefCell::new(Courses::of(&basis, self.options.exactness)?));
        let score = self.evaluate(&courses, &[]);
        Ok(score.map(|score| State {
            basis,
            courses,
            spans: Vec::new(),
            score,
        }))
    }

    /// Bytes from which on an operand is large.
    fn large(&self) -> u64 {
        let storages = self.graph.storages.iter();
        let made = storages.filter(|storage| storage.class == StorageClass::Intermediate);
        made.filter_map(|storage| storage.bytes).max().unwrap_or(0) / LARGE
    }

    /// The normalizations that have to run in two passes.
    fn norms_in_two_passes(&self) -> Vec<String> {
        match self.options.two_passes {
            true => streamable(self.graph, self.large()),
            false => Vec::new(),
        }
    }

    /// The normalizations and softmaxes whose operands are large, where sums may be split, and searches for the best, where bits of ONNX Runtime
    /// stay.
    fn streamed(&self) -> Vec<String> {
        if self.options.exactness == Exactness::WholeSums || !self.options.may_stream {
            return self.norms_in_two_passes();
        }
        let large = self.large();
        let mut names = Vec::new();
        if self.options.exactness == Exactness::Close {
            names.extend(streamable(self.graph, large));
            names.extend(softened::worthwhile(self.graph, large));
        }
        names.extend(best::worthwhile(self.graph, large));
        names
    }

    /// Looks for fused chains from a state without any.
    fn from(&mut self, start: State) {
        self.weight = WEIGHTS_OF_TIME[0];
        let sets = along_sums(&start.basis, &mut start.courses.borrow_mut(), &self.axes, self.options);
        let found = self.all_of(&start, sets);
        let along_sums = self.least(found);
        if self.options.exactness != Exactness::Close {
            self.in_turns(&start);
        }
        let start = self.along_paths(start);
        let better = along_sums.filter(|state| self.gains(&state.score, &start.score));
        self.everything(better.unwrap_or(start));
    }

    /// The best of a state without fused chains and those of paths of fused chains, for every bound on the level that leads to another one.
    fn along_paths(&mut self, start: State) -> State {
        let (options, axes) = (self.options, self.axes.clone());
        let (basis, levels) = (Rc::clone(&start.basis), start.score.levels.clone());
        let mut paths = Paths::new(&basis, &levels, &axes, options);
        let now = Instant::now();
        let (deadline, most) = self.limits;
        let until = deadline.map(|deadline| now + deadline.saturating_duration_since(now) / SHARE_OF_PATHS);
        let most_estimates =
            most.map(|most| self.evaluations + most.saturating_sub(self.evaluations) / u64::from(SHARE_OF_PATHS));
        let mut best = start;
        let mut most = u64::MAX;
        loop {
            let evaluated = self.evaluations;
            let is_over = |estimates: u64| {
                most_estimates.is_some_and(|most| evaluated + estimates >= most)
                    || until.is_some_and(|until| Instant::now() >= until)
                    || options.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
            };
            let Some(path) = paths.shortest(most, &mut self.costs, is_over) else {
                break;
            };
            let score = self.evaluate(&best.courses, &path.spans);
            if let Some(score) =
                score.filter(|score| self.is_fast(score) && self.objective(score) < self.objective(&best.score))
            {
                best = State {
                    spans: path.spans,
                    score,
                    ..best
                };
            }
            let Some(lower) = path.level.checked_sub(1) else {
                break;
            };
            most = lower;
        }
        self.evaluations += paths.estimates;
        best
    }

    /// Looks for sets of fused chains that go along two axes in turns. The one of which every op needs least is noted for plans, which lower what stands
    /// in pieces. What lowers the peak in reference order, clones above all, follows the best one.
    fn in_turns(&mut self, start: &State) {
        let axes = self.axes.clone();
        let found = self.within(SHARE_IN_TURNS, |search| {
            let (mut courses, is_over) = (start.courses.borrow_mut(), || search.is_over());
            let around = (start.score.levels.as_slice(), axes.as_slice());
            let sets = in_turns(&start.basis, &mut courses, around, search.options, &is_over);
            drop(courses);
            search.all_of(start, sets)
        });
        let need = |state: &State| u128::from(state.score.need) * NEEDS / u128::from(start.score.peak.max(1));
        let objective = |state: &State| self.objective(&state.score);
        let in_pieces = found
            .iter()
            .min_by(|a, b| need(a).cmp(&need(b)).then(objective(a).total_cmp(&objective(b))))
            .cloned();
        if let Some(mut state) = in_pieces {
            for place in (0..state.spans.len()).rev() {
                if self.is_over() {
                    break;
                }
                let fewer = self.without(&state, place);
                let is_as_good = |fewer: &State| need(fewer) <= need(&state) && fewer.score.peak <= state.score.peak;
                if let Some(fewer) = fewer.filter(is_as_good) {
                    state = fewer;
                }
            }
            self.forbidden = None;
            let found = Candidate {
                tiling: state.basis.tiling(&state.spans, self.options.two_passes),
                peak: state.score.peak,
                time_ppm: self.time_ppm(&state.score),
            };
            self.in_pieces = (need(&state) < need(start)).then_some(found);
        }
        if let Some(best) = self.least(found) {
            self.within(SHARE_IN_TURNS, |search| search.descend(best));
        }
    }

    /// The state with the least objective.
    fn least(&self, states: Vec<State>) -> Option<State> {
        let objective = |state: &State| self.objective(&state.score);
        states.into_iter().min_by(|a, b| objective(a).total_cmp(&objective(b)))
    }

    /// The states with these sets of fused chains that are possible and take no longer than is asked for.
    fn all_of(&mut self, start: &State, sets: Vec<Vec<Span>>) -> Vec<State> {
        let mut found = Vec::new();
        for spans in sets {
            if self.is_over() {
                break;
            }
            let score = self.evaluate(&start.courses, &spans);
            if let Some(score) = score.filter(|score| self.is_fast(score)) {
                found.push(State {
                    spans,
                    score,
                    ..start.clone()
                });
            }
        }
        found
    }

    /// Goes down, and from where that ends again without one fused chain after the other; then looks wider.
    fn everything(&mut self, start: State) {
        let mut best = start;
        for width in WIDTHS {
            self.width = width;
            for weight in WEIGHTS_OF_TIME {
                self.weight = weight;
                best = self.descend(best);
            }
            best = self.shake(best);
        }
    }

    /// The best of where going down ends from a state without one of its fused chains.
    fn shake(&mut self, mut best: State) -> State {
        let mut place = 0;
        while place < best.spans.len() && !self.is_over() {
            let shaken = self.without(&best, place);
            place += 1;
            if let Some(shaken) = shaken {
                let ended = self.descend(shaken);
                if self.is_fast(&ended.score) && self.gains(&ended.score, &best.score) {
                    best = ended;
                    place = 0;
                }
            }
            self.forbidden = None;
        }
        best
    }

    /// A state without one of its fused chains, which is forbidden from now on.
    fn without(&mut self, state: &State, place: usize) -> Option<State> {
        let mut next = state.clone();
        let span = next.spans.remove(place);
        let name = |op: OpId| state.basis.graph.ops[op].name.clone();
        self.forbidden = Some((name(span.first), name(span.last), span.axis));
        next.score = self.evaluate(&state.courses, &next.spans)?;
        Some(next)
    }

    /// Goes from state to state until nothing helps.
    fn descend(&mut self, mut state: State) -> State {
        let mut stuck = 0;
        let mut given_up: FxHashSet<OpId> = FxHashSet::default();
        while stuck < STUCK && !self.is_over() {
            let Some(peak) = highest(&state.score, &given_up) else {
                break;
            };
            match self.round(&state, peak) {
                Some(next) => {
                    if !Rc::ptr_eq(&next.basis, &state.basis) {
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
        state
    }

    /// The best state after one move, or two at once, if it is better.
    fn round(&mut self, state: &State, peak: OpId) -> Option<State> {
        let candidates = self.around(state, peak);
        let mut tried = FxHashSet::default();
        let mut moves = self.attempt(state, &candidates, &mut tried);
        self.sort(&mut moves);
        let best: Vec<Span> = moves.iter().take(BEST).map(|next| next.span).collect();
        let again: Vec<Span> = if best.is_empty() {
            let fewest = self.options.tiles.first().copied();
            let coarse = |span: &Span| Span {
                tiles: fewest.unwrap_or(span.tiles),
                ..*span
            };
            candidates.iter().map(coarse).collect()
        } else {
            finer(&best, self.options)
        };
        moves.extend(self.attempt(state, &again, &mut tried));
        self.sort(&mut moves);
        let best: Vec<Span> = moves.iter().take(BEST).map(|next| next.span).collect();
        let mut tried = FxHashSet::default();
        for span in best {
            moves.extend(self.attempt_everywhere(state, span, &mut tried));
        }
        let mut next = self.best(state, moves.iter());
        if next.is_none() && self.options.again {
            let clones = self.attempt_clones(state, peak);
            next = self.best(state, clones.iter());
        }
        if next.is_none() {
            let earlier = self.attempt_earlier(state, peak);
            next = self.best(state, earlier.iter());
        }
        if next.is_none() {
            let fewer = self.attempt_fewer(state);
            next = self.best(state, fewer.iter());
        }
        if next.is_none() {
            let pairs = self.attempt_pairs(state, peak, moves);
            next = self.best(state, pairs.iter());
        }
        next
    }

    fn around(&self, state: &State, peak: OpId) -> Vec<Span> {
        let mut courses = state.courses.borrow_mut();
        let levels = (peak, state.score.levels.as_slice());
        around(
            &state.basis,
            &mut courses,
            levels,
            &state.spans,
            (&self.axes, self.width),
            self.options,
        )
    }

    /// States after one of `moves` that lowers the level of `peak`, and another one at the peak of that.
    fn attempt_pairs(&mut self, state: &State, peak: OpId, mut moves: Vec<Move>) -> Vec<Move> {
        let level = |score: &Score| score.levels[peak.index()];
        moves.retain(|next| level(&next.state.score) < level(&state.score));
        self.sort(&mut moves);
        let mut found = Vec::new();
        for first in moves.into_iter().take(FIRST_OF_TWO) {
            let Some(second) = highest(&first.state.score, &FxHashSet::default()) else {
                continue;
            };
            if second == peak {
                continue;
            }
            let is_apart = |span: &Span| span.last < first.span.first || span.first > first.span.last;
            let mut candidates = self.around(&first.state, second);
            candidates.retain(is_apart);
            candidates.truncate(SECOND_OF_TWO);
            found.extend(self.attempt(&first.state, &candidates, &mut FxHashSet::default()));
        }
        found
    }

    fn sort(&self, moves: &mut [Move]) {
        let objective = |next: &Move| self.objective(&next.state.score);
        moves.sort_by(|a, b| objective(a).total_cmp(&objective(b)));
    }

    /// The best of some moves, if it is better than `state`.
    fn best<'m>(&self, state: &State, moves: impl Iterator<Item = &'m Move>) -> Option<State> {
        let objective = |next: &&Move| self.objective(&next.state.score);
        let moves = moves.filter(|next| self.is_fast(&next.state.score));
        let best = moves.min_by(|a, b| objective(a).total_cmp(&objective(b)))?;
        self.gains(&best.state.score, &state.score).then(|| best.state.clone())
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
