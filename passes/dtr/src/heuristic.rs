//! What to evict: the scores of the DTR paper.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// How the storage to evict is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// The full heuristic of the paper, `h_DTR`: evicted neighbourhood, size and staleness.
    Dtr,
    /// Its approximation by classes, `h_DTR_eq`.
    DtrEq,
    /// Own cost, size and staleness.
    DtrLocal,
    /// Staleness alone.
    Lru,
    /// Size alone.
    Size,
    /// Evicted ancestors and size (Peng et al., 2020).
    Msps,
    /// Any storage, with equal chances.
    Random,
}

/// A score `cost / (size * staleness)`; of equal ones, the storage that became evictable last goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Score {
    /// What bringing the storage back costs.
    pub(crate) cost: CostTerm,
    /// Whether the cost is divided by the size.
    pub(crate) size: bool,
    /// Whether the cost is divided by the time since the last access.
    pub(crate) staleness: bool,
}

/// What counts as the cost of bringing a storage back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CostTerm {
    /// Its own ops, those of the evicted storages it descends from, and those of the evicted storages that descend from it: `e*`.
    Neighbourhood,
    /// Its own ops and those of the evicted storages it descends from.
    Ancestors,
    /// Its own ops, and the cost of the classes of evicted storages next to it, which union-find keeps: `eq`.
    Classes,
    /// Its own ops.
    Local,
    /// Nothing: the cost is 1.
    None,
}

impl Heuristic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Dtr,
        Self::DtrEq,
        Self::DtrLocal,
        Self::Lru,
        Self::Size,
        Self::Msps,
        Self::Random,
    ];
    /// Their names.
    pub const NAMES: [&str; 7] = ["dtr", "dtr-eq", "dtr-local", "lru", "size", "msps", "random"];

    /// The storage of lowest score goes; `None` where chance decides.
    pub(crate) fn score(self) -> Option<Score> {
        let (cost, size, staleness) = match self {
            Self::Dtr => (CostTerm::Neighbourhood, true, true),
            Self::DtrEq => (CostTerm::Classes, true, true),
            Self::DtrLocal => (CostTerm::Local, true, true),
            Self::Lru => (CostTerm::None, false, true),
            Self::Size => (CostTerm::None, true, false),
            Self::Msps => (CostTerm::Ancestors, true, false),
            Self::Random => return None,
        };
        Some(Score { cost, size, staleness })
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// There is no heuristic of this name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("there is no heuristic `{0}`; known are `{known}`", known = Heuristic::NAMES.join("`, `"))]
pub struct UnknownHeuristic(pub String);

impl FromStr for Heuristic {
    type Err = UnknownHeuristic;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().zip(Self::NAMES).find(|&(_, name)| name == text);
        known
            .map(|(heuristic, _)| heuristic)
            .ok_or_else(|| UnknownHeuristic(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heuristic_is_found_by_the_name_it_prints_and_others_are_refused() {
        for heuristic in Heuristic::ALL {
            assert_eq!(heuristic.to_string().parse(), Ok(heuristic));
        }
        assert!(
            ["", "DTR", "eq/stale"]
                .iter()
                .all(|name| name.parse::<Heuristic>().is_err())
        );
    }
}
