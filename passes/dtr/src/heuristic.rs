//! What to evict: the scores of the DTR paper, and the grid of its ablation.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// How the storage to evict is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Heuristic {
    /// The storage of lowest score.
    Score(Score),
    /// Any storage, with equal chances.
    Random,
}

/// A score `cost / (size * staleness)`; of equal ones, the storage that became evictable last goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Score {
    /// What bringing the storage back costs.
    pub cost: CostTerm,
    /// Whether the cost is divided by the size.
    pub size: bool,
    /// Whether the cost is divided by the time since the last access.
    pub staleness: bool,
}

/// What counts as the cost of bringing a storage back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum CostTerm {
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

const NAMED: [(&str, CostTerm, bool, bool); 6] = [
    ("dtr", CostTerm::Neighbourhood, true, true),
    ("dtr-eq", CostTerm::Classes, true, true),
    ("dtr-local", CostTerm::Local, true, true),
    ("lru", CostTerm::None, false, true),
    ("size", CostTerm::None, true, false),
    ("msps", CostTerm::Ancestors, true, false),
];

const COSTS: [(&str, CostTerm); 5] = [
    ("e*", CostTerm::Neighbourhood),
    ("ancestors", CostTerm::Ancestors),
    ("eq", CostTerm::Classes),
    ("local", CostTerm::Local),
    ("none", CostTerm::None),
];

impl Heuristic {
    /// The full heuristic of the paper, `h_DTR`.
    pub const DTR: Self = Self::score(CostTerm::Neighbourhood, true, true);
    /// Its approximation by classes, `h_DTR_eq`.
    pub const DTR_EQ: Self = Self::score(CostTerm::Classes, true, true);
    /// The names of the heuristics of the paper.
    pub const NAMES: [&str; 7] = ["dtr", "dtr-eq", "dtr-local", "lru", "size", "msps", "random"];

    const fn score(cost: CostTerm, size: bool, staleness: bool) -> Self {
        Self::Score(Score { cost, size, staleness })
    }

    /// The grid of the ablation study: every cost with and without size and staleness.
    #[must_use]
    pub fn ablation() -> Vec<Self> {
        let costs = [
            CostTerm::Neighbourhood,
            CostTerm::Classes,
            CostTerm::Local,
            CostTerm::None,
        ];
        let flags = [(true, true), (false, true), (true, false), (false, false)];
        let grid = costs
            .iter()
            .flat_map(|&cost| flags.map(|(size, stale)| Self::score(cost, size, stale)));
        grid.collect()
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Score(score) = *self else {
            return f.write_str("random");
        };
        let key = (score.cost, score.size, score.staleness);
        if let Some((name, ..)) = NAMED.iter().find(|&&(_, cost, size, stale)| (cost, size, stale) == key) {
            return f.write_str(name);
        }
        let cost = COSTS
            .iter()
            .find(|&&(_, cost)| cost == score.cost)
            .map_or("", |&(name, _)| name);
        let size = if score.size { "/size" } else { "" };
        let stale = if score.staleness { "/stale" } else { "" };
        write!(f, "{cost}{size}{stale}")
    }
}

/// There is no heuristic of this name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "there is no heuristic `{0}`; known are `dtr`, `dtr-eq`, `dtr-local`, `lru`, `size`, `msps`, `random`, and the ablations \
     COST[/size][/stale] with the cost `e*`, `ancestors`, `eq`, `local` or `none`"
)]
pub struct UnknownHeuristic(pub String);

impl FromStr for Heuristic {
    type Err = UnknownHeuristic;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "random" {
            return Ok(Self::Random);
        }
        if let Some(&(_, cost, size, stale)) = NAMED.iter().find(|(name, ..)| *name == text) {
            return Ok(Self::score(cost, size, stale));
        }
        let unknown = || UnknownHeuristic(text.to_owned());
        let (rest, staleness) = text.strip_suffix("/stale").map_or((text, false), |rest| (rest, true));
        let (rest, size) = rest.strip_suffix("/size").map_or((rest, false), |rest| (rest, true));
        let cost = COSTS.iter().find(|(name, _)| *name == rest).ok_or_else(unknown)?.1;
        Ok(Self::score(cost, size, staleness))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heuristic_is_found_by_the_name_it_prints() {
        let named = Heuristic::NAMES.map(|name| name.parse().unwrap());
        for heuristic in named.into_iter().chain(Heuristic::ablation()) {
            assert_eq!(heuristic.to_string().parse(), Ok(heuristic));
        }
        assert_eq!(
            Heuristic::NAMES.map(|name| name.parse::<Heuristic>().unwrap().to_string()),
            Heuristic::NAMES
        );
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "DTR", "eq/stale/size", "local/size/size", "none/"] {
            assert!(name.parse::<Heuristic>().is_err(), "{name}");
        }
    }
}
