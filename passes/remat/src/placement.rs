//! Buffers are placed, and the checker judges what comes of it.

use remat_place::{BufferFile, CsvError, Outcome, PlaceError, place_with};
use remat_plan::{Blocks, StopReason};
use remat_solve::SolveControl;
use remat_verify::{PlacementFigures, Rejection, check_placement_certificate};
use thiserror::Error;

use crate::error::exact;
use crate::{Error, ErrorKind};

/// Why buffers are not placed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// The file is no list of buffers.
    #[error("not a list of buffers: {0}")]
    Csv(#[from] CsvError),
    /// The buffers contradict themselves or each other.
    #[error(transparent)]
    Buffers(#[from] PlaceError),
    /// The given blocks do not hold the buffers.
    #[error("the buffers do not fit: they need at least {}, the capacity is {}", exact(*.bound), exact(*.capacity))]
    TooSmall {
        /// No placement is lower.
        bound: u64,
        /// What the blocks hold together.
        capacity: u64,
    },
    /// The given blocks would hold the buffers, if it were not for where one of them ends.
    #[error("the buffers do not fit into the blocks, which hold {} together", exact(*.capacity))]
    Indivisible {
        /// What the blocks hold together.
        capacity: u64,
    },
    /// A limit was reached before a placement or a proof was found.
    #[error("no placement within {} was found, and no proof that none exists", exact(*.capacity))]
    NotFound {
        /// What the blocks hold together.
        capacity: u64,
        /// Why the search stopped.
        stop: StopReason,
    },
    /// A limit was reached before a plan was found whose block keeps the budget.
    #[error(
        "no plan was found whose block keeps the budget of {}: the smallest block that was found takes {}, {} of them are needed at once",
        exact(*.budget), exact(*.block), exact(*.load)
    )]
    NoBlock {
        /// The budget.
        budget: u64,
        /// The smallest block that was found.
        block: u64,
        /// The largest sum of bytes at one step of its plan.
        load: u64,
    },
    /// The checker rejected our placement, or what we claim about it: a bug of ours.
    #[error("the checker rejected our own placement: {0}")]
    Rejected(Rejection),
}

impl PlacementError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Csv(_) | Self::Buffers(_) => ErrorKind::Input,
            Self::TooSmall { .. } | Self::Indivisible { .. } => ErrorKind::Negative,
            Self::NotFound { .. } | Self::NoBlock { .. } => ErrorKind::Limit,
            Self::Rejected(_) => ErrorKind::Internal,
        }
    }
}

/// What came of placing buffers; the checker has accepted it.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Placement and certificate.
    pub outcome: Outcome,
    /// The figures of the placement, where there is one.
    pub figures: Option<PlacementFigures>,
}

impl Placed {
    /// Why there is no placement; `None` where there is one.
    #[must_use]
    pub fn failure(&self, blocks: &Blocks) -> Option<Error> {
        let Blocks::Given(sizes) = blocks else { return None };
        let (capacity, bound) = (
            sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size)),
            self.outcome.certificate.bound,
        );
        let stop = self.outcome.certificate.stop;
        let failure = match &self.outcome.placement {
            Some(_) => return None,
            None if stop != StopReason::Proved => PlacementError::NotFound { capacity, stop },
            None if bound > capacity => PlacementError::TooSmall { bound, capacity },
            None => PlacementError::Indivisible { capacity },
        };
        Some(failure.into())
    }
}

/// Places the buffers of a file, from its hints where it has some; where the search gets no further, CP-SAT is asked, if it is there. That given
/// blocks do not hold them is no error here.
///
/// # Errors
/// [`PlacementError`], where the buffers cannot be placed at all, or the checker rejects the answer.
pub fn place_buffers(file: &BufferFile, blocks: &Blocks, control: &SolveControl<'_>) -> Result<Placed, Error> {
    let (hints, packer) = (file.hints.as_ref(), remat_ortools::packer());
    let outcome = place_with(&file.buffers, blocks, hints, packer, control).map_err(PlacementError::from)?;
    let placement = outcome.placement.as_ref();
    let judged = check_placement_certificate(&file.buffers, blocks, placement, &outcome.certificate);
    let figures = judged.map_err(PlacementError::Rejected)?;
    Ok(Placed { outcome, figures })
}

#[cfg(test)]
mod tests {
    use remat_place::read_csv;

    use super::*;

    fn placed(text: &str, blocks: &Blocks) -> Placed {
        let file = read_csv(text).expect("it is well formed");
        place_buffers(&file, blocks, &SolveControl::new()).expect("it can be placed")
    }

    #[test]
    fn what_does_not_fit_is_told_apart() {
        let text = "id,lower,upper,size\na,0,2,60\nb,0,2,60\nc,0,2,60\n";
        let failure = |blocks: Vec<u64>| {
            let blocks = Blocks::Given(blocks);
            placed(text, &blocks)
                .failure(&blocks)
                .map(|error| (error.kind(), error.to_string()))
        };
        assert_eq!(failure(vec![180]), None);
        let (kind, message) = failure(vec![179]).unwrap();
        assert_eq!(kind, ErrorKind::Negative);
        assert_eq!(
            message,
            "the buffers do not fit: they need at least 180 bytes, the capacity is 179 bytes"
        );
        let (kind, message) = failure(vec![100, 100]).unwrap();
        assert_eq!(kind, ErrorKind::Negative);
        assert_eq!(
            message,
            "the buffers do not fit into the blocks, which hold 200 bytes together"
        );
        assert_eq!(placed(text, &Blocks::Lowest).figures.unwrap().height(), 180);
    }

    #[test]
    fn hints_are_a_warm_start_and_no_demand() {
        let text = "id,lower,upper,size,hint\na,0,2,60,100\nb,0,2,60,\n";
        assert_eq!(placed(text, &Blocks::Lowest).figures.unwrap().height(), 120);
    }
}
