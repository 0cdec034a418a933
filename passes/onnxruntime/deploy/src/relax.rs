//! What is taken out of a file that is rejected: one table, a row for each relaxation.
//!
//! A file has several things in it that change what the runtime makes of the model, each for less memory. Where one of them costs the file its bits,
//! or memory in some setting, the same plan is written again without it. `docs/adding-relaxations.md` shows how to add a row.

use remat_onnxruntime_lower::{LoweringReport, Shapes};

use crate::candidate::Lowering;
use crate::clock::Work;
use crate::error::Rejection;
use crate::peaks::Peak;

/// A way to write the same plan with less in the file.
pub(crate) struct Relaxation {
    /// What the file is without.
    pub(crate) without: &'static str,
    /// Whether that may help.
    pub(crate) helps: fn(&Trouble<'_>) -> bool,
    /// Takes it out.
    pub(crate) relax: fn(&mut Lowering),
}

/// A file that is rejected.
pub(crate) struct Trouble<'t> {
    pub(crate) reason: &'t Rejection,
    /// What the file has in it.
    pub(crate) lowered: LoweringReport,
    /// Whether nothing was wrong with it when it ran first.
    pub(crate) ran: bool,
    /// Whether its strategy makes shapes dynamic.
    pub(crate) dynamic_shapes: bool,
    /// Whether there is time for a piece of work.
    pub(crate) has_time: &'t dyn Fn(Work) -> bool,
}

impl Trouble<'_> {
    /// Whether the runtime made something else of the file than of the model.
    fn differs_at_once(&self) -> bool {
        let is_other = matches!(
            self.reason,
            Rejection::OutputDiffers { .. } | Rejection::OutputApart { .. }
        );
        is_other && !self.ran
    }

    /// Whether it takes more than the original model where the arena is on.
    fn is_higher_with_arena(&self) -> bool {
        matches!(self.reason, Rejection::HigherPeak(higher) if higher.which != Peak::ArenaOff)
    }
}

/// All of them, in the order in which they are looked at: the first that helps is taken.
pub(crate) const RELAXATIONS: &[Relaxation] = &[
    // A reserve may be kept beside the regions that the arena makes anyway.
    Relaxation {
        without: "a reserve for the arena",
        helps: |trouble| {
            trouble.is_higher_with_arena() && trouble.lowered.reserved > 0 && (trouble.has_time)(Work::WithoutReserve)
        },
        relax: |lowering| lowering.reserve = false,
    },
    // The runtime runs the nodes of a branch as it runs a model, but not everything that it does to a model is done to a branch.
    Relaxation {
        without: "a branch",
        helps: |trouble| trouble.lowered.in_branch && !matches!(trouble.reason, Rejection::TooSlow),
        relax: |lowering| lowering.branch = false,
    },
    // What the runtime knows of a shape decides over kernels.
    Relaxation {
        without: "static shapes",
        helps: |trouble| {
            trouble.differs_at_once() && trouble.dynamic_shapes && trouble.lowered.shapes != Shapes::Dynamic
        },
        relax: |lowering| lowering.static_shapes = false,
    },
    // A reader more may keep the runtime from fusing.
    Relaxation {
        without: "order anchors",
        helps: |trouble| trouble.differs_at_once() && trouble.lowered.readers > 0,
        relax: |lowering| lowering.anchors = false,
    },
];

/// What the file may have in it that is tried after one that is rejected: less than `lowering`, by the first row of a table that helps; `None` where
/// none does.
pub(crate) fn relaxed(table: &[Relaxation], lowering: Lowering, trouble: &Trouble<'_>) -> Option<Lowering> {
    let mut helping = table.iter().filter(|row| (row.helps)(trouble));
    helping.find_map(|row| {
        let mut less = lowering;
        (row.relax)(&mut less);
        // What is out already does not help.
        let is_less = less != lowering;
        if is_less {
            tracing::info!(reason = %trouble.reason, without = row.without, "the plan is written again");
        }
        is_less.then_some(less)
    })
}
