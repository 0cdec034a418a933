//! Buffers with names, and what is claimed about their placement.

use remat_files::shown;
use remat_plan::{
    Blocks, Buffer, BufferError, BufferId, Placement, PlacementCertificate, PlacementProof, Status, StopReason,
    validate_buffers,
};
use remat_planner::place as planner;
use remat_solve::{Packer, SolveControl};
use thiserror::Error;
use typed_index_collections::TiSlice;

use crate::control::Control;
use crate::nameless::{given, nameless, of_planner, places};
use crate::second::Asked;

/// Why buffers are not placed at all.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// A buffer contradicts itself, or all are too large.
    #[error(transparent)]
    Buffers(#[from] BufferError),
    /// Two pinned buffers need the same bytes at the same time.
    #[error("buffers `{}` and `{}` are pinned to the same bytes at the same time", shown(.0), shown(.1))]
    PinnedTogether(String, String),
    /// There is no block.
    #[error("there is no block to place buffers in")]
    NoBlock,
    /// Several blocks are given, and no address suits all alignments.
    #[error("sizes of blocks and alignments are too large to place buffers in several blocks")]
    Alignments,
    /// There are more buffers than can be counted.
    #[error("there are more than 2^31 buffers and gaps")]
    TooMany,
}

/// What came of placing buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The best placement; `None` where none was found that the given blocks hold.
    pub placement: Option<Placement>,
    /// What is claimed about it.
    pub certificate: PlacementCertificate,
}

/// Places buffers as low as possible, or in blocks of given sizes, where the first placement that fits is taken. It starts from `warm_start`,
/// if that is valid. Of `control` count the deadline, the seed, the flag to cancel, and the limit of steps: how often a buffer is tried at an
/// offset. Without a deadline, the result depends on nothing but the buffers, the seed, that limit and the warm start.
///
/// # Errors
/// [`PlaceError`] for buffers that cannot be placed anywhere. That given blocks do not hold them is an [`Outcome`].
pub fn place(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    warm_start: Option<&Placement>,
    control: &SolveControl<'_>,
) -> Result<Outcome, PlaceError> {
    place_with(buffers, blocks, warm_start, None, control)
}

/// Places buffers as [`place`] does, and asks another method where the search gets no further: once for buffers that are connected in time,
/// for half of the time that is left, with the threads and the limit of memory of `control`. What it places is checked, what it proves is
/// believed, and the certificate says so.
///
/// # Errors
/// Those of [`place`].
pub fn place_with(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    warm_start: Option<&Placement>,
    packer: Option<&dyn Packer>,
    control: &SolveControl<'_>,
) -> Result<Outcome, PlaceError> {
    validate_buffers(buffers)?;
    let asked = &mut packer.map(|packer| Asked { packer, control });
    let warm_start = warm_start.map(|placement| places(buffers, placement));
    let options = planner::Options {
        seed: control.seed,
        warm_start: warm_start.as_deref(),
        second: asked.as_mut().map(|asked| asked as &mut dyn planner::Second),
    };
    let mut limits = Control::new(control);
    let placed = planner::place(&nameless(buffers), &given(blocks), options, &mut limits);
    let placed = placed.map_err(|error| PlaceError::of(error, buffers))?;
    Ok(Outcome::of(placed, packer, &limits, control.seed))
}

impl PlaceError {
    /// The error with the names of these buffers.
    fn of(error: planner::PlaceError, buffers: &TiSlice<BufferId, Buffer>) -> Self {
        let name = |at: usize| buffers.raw[at].name.clone();
        match error {
            planner::PlaceError::PinnedTogether(first, second) => Self::PinnedTogether(name(first), name(second)),
            planner::PlaceError::NoBlock => Self::NoBlock,
            planner::PlaceError::Alignments => Self::Alignments,
            planner::PlaceError::TooMany => Self::TooMany,
            planner::PlaceError::Buffer(at, planner::Fault::TooLarge) => Self::Buffers(BufferError::TooLarge(name(at))),
            planner::PlaceError::Buffer(at, fault) => Self::Buffers(BufferError::Malformed {
                buffer: name(at),
                why: fault.to_string(),
            }),
        }
    }
}

impl Outcome {
    fn of(placed: planner::Placement, packer: Option<&dyn Packer>, limits: &Control<'_>, seed: u64) -> Self {
        let places = placed.places.map(|places| Placement {
            places: places.into_iter().map(|place| Some(of_planner(place))).collect(),
        });
        let status = match placed.status {
            planner::Status::Optimal => Status::Optimal,
            planner::Status::Feasible => Status::Feasible,
            planner::Status::Infeasible => Status::Infeasible,
            planner::Status::Unknown => Status::Unknown,
        };
        let proof = match (placed.proof, packer) {
            (planner::Proof::Load, _) => PlacementProof::Load,
            (planner::Proof::Second, Some(packer)) => packer.proof(),
            (planner::Proof::Refutation | planner::Proof::Second, _) => PlacementProof::Refutation,
        };
        let is_proved = matches!(status, Status::Optimal | Status::Infeasible);
        Self {
            placement: places,
            certificate: PlacementCertificate {
                status,
                height: placed.height,
                bound: placed.bound,
                proof,
                stop: if is_proved { StopReason::Proved } else { limits.reason() },
                seed,
                tries: placed.tries,
            },
        }
    }
}

/// The largest sum of sizes that are taken at one time.
#[must_use]
pub fn load(buffers: &TiSlice<BufferId, Buffer>) -> u64 {
    planner::load(&nameless(buffers))
}
