//! Delta debugging: parts of an input are left out, and its numbers made small, as long as a command still fails on it.
//!
//! Kinds of parts are taken in turn, ops first: halves of the list, then quarters, down to single parts, from the end (Zeller and
//! Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). Then numbers go down. All of that is repeated until nothing more
//! can be left out, so that the result is small in this sense: without any single part of it the command does not fail in the same way.
//!
//! What is tried follows from the input alone. Where the command always ends the same way on the same file, so does the reduction.

mod graph;
mod nodelink;
mod onnx;
mod problem;
mod trial;

use std::ops::Range;

pub(crate) use graph::GraphSubject;
pub(crate) use nodelink::NodeLinkSubject;
pub(crate) use onnx::OnnxSubject;
pub(crate) use problem::ProblemSubject;
pub(crate) use trial::{End, Ending, Expected, Trial};

/// Something that can be made smaller.
pub(crate) trait Subject: Clone {
    /// What the lists of parts are called, in the order in which they are reduced.
    const KINDS: &'static [&'static str];

    /// How many parts of a kind there are.
    fn count(&self, kind: usize) -> usize;

    /// The same without some parts of a kind; what they defined and others read comes from outside then. `None` where that leaves nothing
    /// valid. Parts before `parts` stay, in the same places.
    fn without(&self, kind: usize, parts: Range<usize>) -> Option<Self>;

    /// All sizes, times and limits.
    fn numbers(&mut self) -> Vec<&mut u64>;

    /// Whether all rules of the format are kept, after numbers have changed.
    fn is_valid(&self) -> bool;

    /// The file.
    fn to_bytes(&self) -> anyhow::Result<Vec<u8>>;
}

/// Whether a candidate still fails; an error ends the reduction.
pub(crate) type Test<'t, S> = dyn FnMut(&S) -> anyhow::Result<Verdict> + 't;

/// What became of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It fails as the input does.
    Fails,
    /// It does not.
    Passes,
    /// There is no time left to try it.
    Over,
}

/// The smallest input that still fails.
pub(crate) fn reduce<S: Subject>(subject: S, test: &mut Test<'_, S>) -> anyhow::Result<S> {
    let mut reduction = Reduction {
        best: subject,
        test,
        over: false,
    };
    loop {
        let mut smaller = false;
        for kind in 0..S::KINDS.len() {
            smaller |= reduction.parts(kind)?;
        }
        smaller |= reduction.numbers()?;
        if !smaller || reduction.over {
            return Ok(reduction.best);
        }
    }
}

struct Reduction<'r, 't, S> {
    best: S,
    test: &'r mut Test<'t, S>,
    over: bool,
}

impl<S: Subject> Reduction<'_, '_, S> {
    /// Takes the candidate if it fails.
    fn take(&mut self, candidate: S) -> anyhow::Result<bool> {
        let verdict = (self.test)(&candidate)?;
        match verdict {
            Verdict::Fails => self.best = candidate,
            Verdict::Over => self.over = true,
            Verdict::Passes => {}
        }
        Ok(verdict == Verdict::Fails)
    }

    /// Leaves parts of a kind out; whether there were any.
    fn parts(&mut self, kind: usize) -> anyhow::Result<bool> {
        let mut smaller = false;
        let mut length = self.best.count(kind).max(1);
        loop {
            let mut end = self.best.count(kind);
            while end > 0 && !self.over {
                let start = end.saturating_sub(length);
                if let Some(candidate) = self.best.without(kind, start..end) {
                    smaller |= self.take(candidate)?;
                }
                end = start.min(self.best.count(kind));
            }
            if length == 1 || self.over {
                return Ok(smaller);
            }
            length = length.div_ceil(2);
        }
    }

    /// Makes numbers small, all of them at once where that is possible; whether one became smaller.
    fn numbers(&mut self) -> anyhow::Result<bool> {
        let mut smaller = false;
        for small in [0, 1] {
            let mut candidate = self.best.clone();
            let mut changed = false;
            for number in candidate.numbers() {
                changed |= *number > small;
                *number = small.min(*number);
            }
            if changed && candidate.is_valid() {
                smaller |= self.take(candidate)?;
            }
        }
        for at in 0..self.best.clone().numbers().len() {
            smaller |= self.number(at)?;
        }
        Ok(smaller)
    }

    /// Makes one number small: 0, 1, a half as often as possible, then a round one.
    fn number(&mut self, at: usize) -> anyhow::Result<bool> {
        let mut smaller = false;
        let now = |subject: &S| -> u64 { subject.clone().numbers().get(at).map_or(0, |number| **number) };
        for small in [0, 1] {
            if now(&self.best) > small && self.set(at, small)? {
                return Ok(true);
            }
        }
        while now(&self.best) > 3 && !self.over {
            let half = now(&self.best) / 2;
            if !self.set(at, half)? {
                break;
            }
            smaller = true;
        }
        let value = now(&self.best);
        let round = value - value % 10_u64.pow(value.checked_ilog10().unwrap_or(0));
        if round < value {
            smaller |= self.set(at, round)?;
        }
        Ok(smaller)
    }

    fn set(&mut self, at: usize, value: u64) -> anyhow::Result<bool> {
        let mut candidate = self.best.clone();
        if let Some(number) = candidate.numbers().get_mut(at) {
            **number = value;
        }
        if self.over || !candidate.is_valid() {
            return Ok(false);
        }
        self.take(candidate)
    }
}

/// The items, without those in the range.
fn outside<T: Clone>(items: &[T], parts: &Range<usize>) -> Vec<T> {
    let kept = items.iter().enumerate().filter(|(at, _)| !parts.contains(at));
    kept.map(|(_, item)| item.clone()).collect()
}
