//! The policy of Capuchin (Peng et al., "Capuchin: Tensor-based GPU Memory Management for Deep Learning", ASPLOS 2020).
//!
//! Swapping comes first. Of the values that cross a place with too much memory, each with the time until it is needed again, the one
//! moves out whose transfers fit that time best (its *free time* is largest). Where no transfer fits, whatever saves most
//! memory per second of what it adds is taken (*memory saving per second*): a transfer adds what does not fit, a recomputation
//! its runs, those of lost operands included.

use super::candidates::{Allowed, Gap, fillings, gaps};
use super::evaluate::Figures;
use super::model::Model;
use super::repair::Budgeted;
use super::sequence::{Instances, Item};

/// Applies the policy to every node once; `None` if it does not reach the budget.
pub(super) fn capuchin(search: &mut Budgeted<'_, '_>, allowed: Allowed) -> Option<Vec<Item>> {
    let mut items = super::sequence::every_node_once(search.model);
    let mut figures = search.evaluate(&items)?;
    let mut trial = Vec::new();
    while figures.excess > 0 {
        if search.is_over() {
            return None;
        }
        let instances = Instances::of(search.model, &items);
        let passed = elapsed(search.model, &items);
        let mut choices: Vec<(Rank, super::candidates::Addition)> = Vec::new();
        for gap in gaps(&instances, figures.peak_at) {
            fillings(search.model, &instances, allowed, gap, &mut |addition| {
                if let Some(rank) = rank(search.model, &passed, gap, &addition.items) {
                    choices.push((rank, addition));
                }
            });
        }
        choices.sort_by(|(a, _), (b, _)| b.order(a));
        let (addition, after) = choices.iter().find_map(|(_, addition)| {
            addition.apply(&items, &mut trial);
            let after: Figures = search.evaluate(&trial)?;
            (after.excess < figures.excess).then_some((addition, after))
        })?;
        addition.apply(&items, &mut trial);
        std::mem::swap(&mut items, &mut trial);
        figures = after;
    }
    Some(items)
}

/// What the policy prefers.
#[derive(Clone, Copy, Debug)]
enum Rank {
    /// A transfer that is hidden, with so much time to spare.
    Hidden(u64),
    /// Bytes for each second that is added.
    Saving(f64),
}

impl Rank {
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Hidden(a), Self::Hidden(b)) => a.cmp(b),
            (Self::Hidden(_), Self::Saving(_)) => std::cmp::Ordering::Greater,
            (Self::Saving(_), Self::Hidden(_)) => std::cmp::Ordering::Less,
            (Self::Saving(a), Self::Saving(b)) => a.total_cmp(b),
        }
    }
}

/// Time of the runs before each position.
fn elapsed(model: &Model<'_>, items: &[Item]) -> Vec<u64> {
    let time = |item: &Item| match *item {
        Item::Run(node) => model.run(node).time,
        Item::Fetch(_) => 0,
    };
    let sums = items.iter().scan(0u64, |sum, item| {
        let before = *sum;
        *sum = sum.saturating_add(time(item));
        Some(before)
    });
    sums.collect()
}

/// `None` for what Capuchin does not do: to fetch the operands of a recomputation.
fn rank(model: &Model<'_>, passed: &[u64], gap: Gap, items: &[Item]) -> Option<Rank> {
    let bytes = f64::from(model.dag.bytes(gap.value));
    if let [Item::Fetch(value)] = items {
        let moving = model.out(*value).time.saturating_add(model.back(*value).time);
        // The run of the last use has ended where the next position begins.
        let until = passed[gap.to].saturating_sub(passed[gap.from + 1]);
        let hidden = if model.is_dma() { until } else { 0 };
        return Some(match hidden.checked_sub(moving) {
            Some(spare) => Rank::Hidden(spare),
            None => Rank::Saving(bytes / (moving - hidden).max(1) as f64),
        });
    }
    let mut time = 0u64;
    for item in items {
        let Item::Run(node) = *item else { return None };
        time = time.saturating_add(model.run(node).time);
    }
    Some(Rank::Saving(bytes / time.max(1) as f64))
}
