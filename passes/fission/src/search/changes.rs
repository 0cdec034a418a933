//! Moves that change the graph of which chains are tiled: ops that run earlier, and ops that run again.

use std::cell::RefCell;
use std::rc::Rc;

use remat_ir::OpId;
use remat_plan::Axis;
use rustc_hash::FxHashSet;

use super::attempts::{Move, Search, State};
use super::basis::{Basis, Change};
use super::courses::Courses;
use super::moves::{clones, earlier, finer, over_clones};
use crate::Mode;
use crate::course::Span;

/// How many of the best fused chains over clones are tried in every number of tiles and mode.
const BEST_OVER_CLONES: usize = 3;

/// So many ops that were written are kept for bases that were tried.
const MOST_KEPT: usize = 1 << 18;

impl Search<'_> {
    /// The basis after one more change; `None` if it is not possible.
    fn basis(&mut self, from: &Basis, change: &Change) -> Option<(Rc<Basis>, Rc<RefCell<Courses>>)> {
        let changes = from.changes_after(change);
        if let Some(known) = self.bases.iter().find(|(basis, _)| basis.changes == changes) {
            return Some(known.clone());
        }
        let basis = Rc::new(from.after(change).ok()?);
        let courses = Rc::new(RefCell::new(Courses::of(&basis, self.options.exactness).ok()?));
        let kept: usize = self.bases.iter().map(|(_, courses)| courses.borrow().kept()).sum();
        if kept > MOST_KEPT {
            self.bases.clear();
        }
        self.bases.push((basis, courses));
        self.bases.last().cloned()
    }

    /// States in which an op runs earlier, so that a tensor that it is the last to read dies.
    pub(super) fn attempt_earlier(&mut self, state: &State, peak: OpId) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        let found = earlier(&state.basis, &state.courses.borrow(), peak);
        for (op, moved) in found {
            if self.is_over() {
                break;
            }
            // Clones are of the graph in which ops were moved.
            if !state.basis.changes.again.is_empty() {
                continue;
            }
            let Some((basis, courses)) = self.basis(&state.basis, &Change::Moved(moved)) else {
                continue;
            };
            let spans = state
                .spans
                .iter()
                .filter_map(|&span| without(span, op))
                .collect::<Vec<_>>();
            let Some(spans) = on_other(&state.basis, &basis, &spans) else {
                continue;
            };
            let Some(score) = self.evaluate(&courses, &spans) else {
                continue;
            };
            let Some(&span) = spans.first() else { continue };
            let state = State {
                basis,
                courses,
                spans,
                score,
            };
            moves.push(Move { state, span });
        }
        moves
    }

    /// States in which ops run a second time before a late reader, with tiles over both.
    pub(super) fn attempt_clones(&mut self, state: &State, peak: OpId) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        let found = clones(&state.basis, &state.courses.borrow(), peak);
        for again in found {
            if self.is_over() {
                break;
            }
            let before = again.before.clone();
            let Some((basis, courses)) = self.basis(&state.basis, &Change::Again(again)) else {
                continue;
            };
            let Some(renumbered) = renumbered(&state.basis, &basis, &state.spans, &before) else {
                continue;
            };
            let Renumbered { spans, first, reader } = renumbered;
            let Some(score) = self.evaluate(&courses, &spans) else {
                continue;
            };
            // Clones without tiles over them are worth something by themselves, and they are where others start from.
            let start = State {
                basis: Rc::clone(&basis),
                courses,
                spans,
                score,
            };
            let span = Span::new((first, reader), 1, Axis::Rows, Mode::Recompute);
            let mut tried = FxHashSet::default();
            let candidates = over_clones(&basis, first, reader, &self.axes, self.options);
            let mut found = self.attempt(&start, &candidates, &mut tried);
            found.sort_by(|a, b| {
                self.objective(&a.state.score)
                    .total_cmp(&self.objective(&b.state.score))
            });
            let best: Vec<Span> = found.iter().take(BEST_OVER_CLONES).map(|next| next.span).collect();
            found.extend(self.attempt(&start, &finer(&best, self.options), &mut tried));
            moves.push(Move { state: start, span });
            moves.extend(found);
        }
        moves
    }
}

/// A fused chain without an op at one of its ends; `None` if it has no other.
fn without(span: Span, op: OpId) -> Option<Span> {
    if span.first == span.last {
        return (span.first != op).then_some(span);
    }
    let first = if span.first == op {
        OpId::new(op.index() + 1)
    } else {
        span.first
    };
    let last = if span.last == op {
        OpId::new(op.index() - 1)
    } else {
        span.last
    };
    Some(Span { first, last, ..span })
}

/// Fused chains on another basis.
struct Renumbered {
    spans: Vec<Span>,
    /// The first clone.
    first: OpId,
    /// The op before which the clones stand.
    reader: OpId,
}

/// The same fused chains on another basis.
fn on_other(old: &Basis, new: &Basis, spans: &[Span]) -> Option<Vec<Span>> {
    let find = |name: &str| new.graph.ops.iter().position(|op| op.name == name).map(OpId::new);
    let renumber = |span: &Span| {
        Some(Span {
            first: find(&old.graph.ops[span.first].name)?,
            last: find(&old.graph.ops[span.last].name)?,
            ..*span
        })
    };
    spans.iter().map(renumber).collect()
}

fn renumbered(old: &Basis, new: &Basis, spans: &[Span], before: &str) -> Option<Renumbered> {
    let spans = on_other(old, new, spans)?;
    let reader = new.graph.ops.iter().position(|op| op.name == before).map(OpId::new)?;
    let clones = new.graph.ops.len() - old.graph.ops.len();
    let first = OpId::new(reader.index().checked_sub(clones)?);
    (clones > 0).then_some(Renumbered { spans, first, reader })
}
