//! A problem as the integer program takes it, and what of it is refused.

use remat_plan::{BoundCovers, NodeId};
use remat_solve::stages::{Node, StageGraph};

use super::layout::Freeing;
use super::pages::Pages;
use super::size;
use remat_ortools::ModelSize;
use remat_ortools::Refusal;
use remat_ortools::run::{Run, bytes_of};
use remat_ortools::scaled::Scaled;

/// A problem as the program sees it.
pub struct Setting {
    /// Its nodes and values in units.
    pub instance: Scaled,
    /// What its stages are about.
    pub graph: StageGraph,
    /// The program of POET, which is that of Checkmate with a second memory and prices of its own.
    pub pages: Option<Pages>,
}

impl Setting {
    /// The problem of a run, without a second memory.
    ///
    /// # Errors
    /// [`Refusal`] if the program cannot express it.
    pub fn of(run: &Run<'_>) -> Result<Self, Refusal> {
        let instance = Scaled::of(run.problem, &run.structure, None)?;
        let graph = StageGraph::of(run.problem, &run.structure)?;
        Ok(Self {
            instance,
            graph,
            pages: None,
        })
    }

    /// The size of the program, without building it.
    pub(super) fn size(&self, freeing: Freeing) -> ModelSize {
        let size = size::estimate(&self.instance, &self.graph, freeing);
        self.pages
            .as_ref()
            .map_or(size, |pages| pages.enlarge(size, self.instance.len()))
    }

    /// Refuses a program that is too large for the caller, or for anybody.
    ///
    /// # Errors
    /// [`Refusal::Memory`] or [`Refusal::TooLarge`].
    pub fn allow(&self, run: &Run<'_>, freeing: Freeing) -> Result<(), Refusal> {
        let size = self.size(freeing);
        let terms = u64::try_from(size.terms).unwrap_or(u64::MAX);
        tracing::info!(?size, bytes = bytes_of(terms), "stages");
        run.allow(terms)?;
        if terms > size::MAX_TERMS {
            return Err(Refusal::TooLarge {
                terms,
                limit: size::MAX_TERMS,
            });
        }
        Ok(())
    }

    /// What a bound over the solutions of the program covers.
    pub(super) fn covers(&self) -> BoundCovers {
        // Every node that needs one needs its only result that takes memory.
        let is_one = |node: NodeId| {
            let mut values = self.instance.values(node);
            let users = values.next().map(|value| self.instance.users(value).len());
            values.len() == 0 && users.is_none_or(|users| users == self.graph.children(node.index()).len())
        };
        if self.instance.nodes().all(is_one) {
            self.instance.stage_form()
        } else {
            BoundCovers::CandidateSet
        }
    }

    /// The time, in units, that the objective of the program leaves out: that of first runs. What a
    /// solver in floating point may be off by is a share of its objective, so a small one is proved better.
    #[must_use]
    pub(super) fn left_out(&self) -> i64 {
        match &self.pages {
            Some(pages) => pages.price.run.iter().sum(),
            None => self.instance.total_duration(),
        }
    }

    /// What the largest op takes alone, in units; no plan takes less.
    pub(super) fn largest(&self, run: &Run<'_>) -> i64 {
        let bottleneck = run.problem.bottleneck(&run.structure);
        bottleneck.map_or(0, |bottleneck| self.instance.scaled_budget(Some(bottleneck.bytes)))
    }

    /// Bytes of the results of a node that may be freed, in units.
    pub(super) fn bytes(&self, node: Node) -> i64 {
        let values = self.instance.values(NodeId::new(node));
        values.map(|value| self.instance.bytes(value)).sum()
    }
}
