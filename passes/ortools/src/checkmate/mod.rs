//! The Checkmate paper (Jain et al., `MLSys` 2020): its integer program, and rounding its linear relaxation.
//!
//! # The program
//! `T` nodes in reference order and as many stages; the symbols are the paper's, sections 4.3 to 4.8:
//!
//! | symbol | value | meaning |
//! |---|---|---|
//! | `R[t,i]` | 0/1 | node `i` runs in stage `t` |
//! | `S[t,i]` | 0/1 | the results of `i` are held from stage `t - 1` into stage `t` |
//! | `FREE[t,i,k]` | 0/1 | in stage `t` the results of `i` are freed right after `k`, a node that needs them |
//! | `U[t,k]` | `0..=budget` | memory while `k` runs in stage `t`: its operands and its results both counted |
//!
//! Minimize the sum of `R[t,i]` times the duration of `i`, such that
//!
//! 1. what runs finds its operands: `R[t,v] <= R[t,u] + S[t,u]` for each edge from `u` to `v`;
//! 2. what is held was held or made: `S[t+1,i] <= S[t,i] + R[t,i]`;
//! 3. every node is computed ([`Partition`]);
//! 4. `U[t,0] = R[t,0] m[0] + sum of S[t,i] m[i]`, and `U[t,k+1] = U[t,k] + R[t,k+1] m[k+1] -` the sum of `m[i] FREE[t,i,k]`;
//! 5. `FREE[t,i,k]` is 1 exactly if `k` runs in `t`, `i` is not held into `t + 1`, and nothing after `k` in `t` needs `i`
//!    ([`Freeing`]).
//!
//! First runs are left out of the objective where stages advance the frontier: they take the same time in every plan. Equalities in 4 are inequalities here, since memory only has to be large enough. Rows fix what an op may not do: run again
//! (not recomputable), or run more often than the problem allows. Graph outputs are added to `U` of the stages after their own,
//! workspace and the twin of an output that is made again to `U[t,k]` of a run.
//!
//! With [`pages`] the program is that of the POET paper.
//!
//! A node with several results holds all of them or none, as in the paper; then the program does not cover all stage forms.

mod ilp;
mod layout;
mod lp;
pub(crate) mod model;
pub(crate) mod pages;
mod round;
mod size;
pub(crate) mod start;

pub use ilp::CheckmateIlp;
pub(crate) use layout::Layout;
pub use layout::Partition;
pub use lp::{CheckmateLp, LpReport};
pub use model::Freeing;
pub use round::Rounding;

use pages::Pages;
use remat_plan::{BoundCovers, NodeId};
use remat_solve::stages::{Node, StageGraph};

use crate::ModelSize;
use crate::run::Run;
use crate::scaled::{Refusal, Scaled};

/// A problem as the program sees it, and what of it is refused.
pub(crate) struct Setting {
    pub(crate) instance: Scaled,
    pub(crate) graph: StageGraph,
    partition: Partition,
    /// The program of POET, which is that of Checkmate with a second memory and prices of its own.
    pub(crate) pages: Option<Pages>,
}

impl Setting {
    fn of(run: &Run<'_>, partition: Partition) -> Result<Self, Refusal> {
        let instance = Scaled::of(run.problem, &run.structure, None)?;
        let graph = StageGraph::of(run.problem, &run.structure)?;
        partition.check(run.problem, &instance, &graph)?;
        Ok(Self {
            instance,
            graph,
            partition,
            pages: None,
        })
    }

    /// The same with advancing frontier, a second memory and prices of its own.
    pub(crate) fn with_pages(run: &Run<'_>, pages: impl FnOnce(&Scaled) -> Pages) -> Result<Self, Refusal> {
        let setting = Self::of(run, Partition::Frontier)?;
        let pages = Some(pages(&setting.instance));
        Ok(Self { pages, ..setting })
    }

    /// The size of the program, without building it.
    fn size(&self, freeing: Freeing) -> ModelSize {
        let size = size::estimate(&self.instance, &self.graph, self.partition, freeing);
        self.pages
            .as_ref()
            .map_or(size, |pages| pages.enlarge(size, self.instance.len()))
    }

    /// Refuses a program that is too large for the caller, or for anybody.
    pub(crate) fn allow(&self, run: &Run<'_>, freeing: Freeing) -> Result<(), Refusal> {
        let size = self.size(freeing);
        let terms = u64::try_from(size.terms).unwrap_or(u64::MAX);
        tracing::info!(?size, bytes = size::bytes(terms), "stages");
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
    fn covers(&self) -> BoundCovers {
        // Whoever needs a node needs its only result that takes memory.
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

    /// The time, in units, that the objective of the program leaves out: that of first runs, where it is known when they happen. What a
    /// solver in floating point may be off by is a share of its objective, so a small one is proved better.
    pub(crate) fn left_out(&self) -> i64 {
        if let Some(pages) = &self.pages {
            return pages.price.run.iter().sum();
        }
        match self.partition {
            Partition::Frontier => self.instance.total_duration(),
            Partition::EveryNode | Partition::LastNode => 0,
        }
    }

    /// What the largest op takes alone, in units; no plan takes less.
    fn largest(&self, run: &Run<'_>) -> i64 {
        let bottleneck = run.problem.bottleneck(&run.structure);
        bottleneck.map_or(0, |bottleneck| self.instance.scaled_budget(Some(bottleneck.bytes)))
    }

    /// Bytes of the results of a node that may be given up, in units.
    fn bytes(&self, node: Node) -> i64 {
        let values = self.instance.values(NodeId::new(node));
        values.map(|value| self.instance.bytes(value)).sum()
    }
}
