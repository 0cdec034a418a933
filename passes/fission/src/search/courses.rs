//! Fused chains of a basis, worked out and estimated.

use std::rc::Rc;

use remat_ir::{OpId, TensorId};
use rustc_hash::FxHashMap;

use super::basis::Basis;
use super::evaluate::{Score, score};
use super::stretches::{Means, Stretches};
use crate::apply::write;
use crate::course::{Course, Span, course};
use crate::forms::Forms;
use crate::layout::{Layout, Tables};
use crate::{Exactness, FissionError};

/// So many levels of ops are kept of what was estimated.
const MOST_LEVELS: usize = 1 << 22;

/// So many levels take the memory of an op that was written.
const LEVELS_OF_AN_OP: usize = 16;

/// Fused chains of a basis, each worked out once.
pub(super) struct Courses {
    pub(super) basis: Rc<Basis>,
    exactness: Exactness,
    tables: Rc<Tables>,
    known: FxHashMap<Span, Option<Rc<Course>>>,
    stretches: Stretches,
    /// What was estimated, as far as it is kept, and how many levels that has.
    scores: FxHashMap<Vec<Span>, Option<Score>>,
    levels: usize,
}

impl Courses {
    pub(super) fn of(basis: &Rc<Basis>, exactness: Exactness) -> Result<Self, FissionError> {
        Ok(Self {
            tables: Rc::new(Tables::of(&basis.graph, exactness)?),
            basis: Rc::clone(basis),
            exactness,
            known: FxHashMap::default(),
            stretches: Stretches::default(),
            scores: FxHashMap::default(),
            levels: 0,
        })
    }

    pub(super) fn layout(&self) -> Layout<'_> {
        Layout::with(&self.basis.graph, Rc::clone(&self.tables))
    }

    /// Estimates fused chains, which are in order; `None` if the graph cannot be written, an op would have another form, or a size is not known.
    pub(super) fn score(&mut self, courses: &[Rc<Course>], means: &mut Means<'_, '_>) -> Option<Score> {
        let spans: Vec<Span> = courses.iter().map(|course| course.span).collect();
        if let Some(known) = self.scores.get(&spans) {
            return known.clone();
        }
        let score = match courses.iter().any(|course| course.span.within.is_some()) {
            true => self.score_of_written(courses, means),
            false => self.score_of_stretches(courses, means),
        };
        if self.levels > MOST_LEVELS {
            self.scores.clear();
            self.levels = 0;
        }
        self.levels += 1 + score.as_ref().map_or(0, |score| score.levels.len());
        self.scores.insert(spans, score.clone());
        score
    }

    fn score_of_stretches(&mut self, courses: &[Rc<Course>], means: &mut Means<'_, '_>) -> Option<Score> {
        let layout = Layout::with(&self.basis.graph, Rc::clone(&self.tables));
        let whole = self.stretches.whole(&layout, courses, means)?;
        let is_other = |forms: &&Forms<'_>| {
            let differing = forms.first_differing(&whole.placed(), whole.tensors(), &whole.outputs);
            differing.is_some()
        };
        match means.forms.filter(is_other) {
            Some(_) => None,
            None => whole.score(self.basis.graph.ops.len(), means.costs.op_bytes),
        }
    }

    /// The same from the graph with all its ops.
    pub(super) fn score_of_written(&self, courses: &[Rc<Course>], means: &mut Means<'_, '_>) -> Option<Score> {
        let courses: Vec<&Course> = courses.iter().map(Rc::as_ref).collect();
        let (graph, origin) = write(&self.layout(), &courses).ok()?;
        match means.forms.filter(|forms| forms.differing(&graph).is_some()) {
            Some(_) => None,
            None => score(&graph, &origin, self.basis.graph.ops.len(), means.costs),
        }
    }

    /// How much is kept, in ops that were written.
    pub(super) fn kept(&self) -> usize {
        self.stretches.kept() + self.levels / LEVELS_OF_AN_OP
    }

    pub(super) fn readers(&self, tensor: TensorId) -> &[OpId] {
        self.tables.readers(tensor)
    }

    /// The fused chain worked out; `None` if it is not possible.
    pub(super) fn get(&mut self, span: Span) -> Option<Rc<Course>> {
        if let Some(known) = self.known.get(&span) {
            return known.clone();
        }
        let course = course(&self.layout(), span, self.exactness).ok().map(Rc::new);
        self.known.insert(span, course.clone());
        course
    }
}
