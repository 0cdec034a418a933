//! How high every section gets at least.

use super::Search;
use super::floor::{Bare, Estimate};
use super::node::{Node, Open};
use crate::place::instance::{Item, Span};

impl Search<'_> {
    /// Whether what is open may still fit after the candidate was placed; what that raised stands in the trail from `mark` on. Where it
    /// does not fit, the sections that are too full are given weight.
    pub(super) fn may_fit(&mut self, node: &mut Node, candidate: usize, mark: usize, sections: &Span) -> bool {
        let placed = node.open[candidate];
        let mut estimate = core::mem::take(&mut self.estimate);
        let fits = self.estimated(node, candidate, placed, mark, sections, &mut estimate);
        self.estimate = estimate;
        fits
    }

    fn estimated(
        &mut self,
        node: &mut Node,
        candidate: usize,
        placed: Open,
        mark: usize,
        sections: &Span,
        estimate: &mut Estimate,
    ) -> bool {
        let Estimate { raised, bare } = estimate;
        raised.clear();
        raised.extend(self.trail[mark..].iter().map(|&(item, _)| (self.lowest[item], item)));
        raised.sort_unstable();
        bare.reset(sections);
        // The buffers in ascending order of their offsets: the first one of a section is its floor.
        let mut others = &node.open[candidate + 1..];
        let mut holds = true;
        let lowest_top = node.tops[0].0;
        holds &= self.cover(bare, &mut others, raised, 0, lowest_top, placed.lowest).1;
        if !holds {
            return false;
        }
        let mut from = raised.partition_point(|&(lowest, _)| lowest < lowest_top);
        // What was passed over has to lie on something that is open now, or it could be let down.
        let end = raised.len();
        for at in 0..candidate {
            let open = node.open[at];
            let is_floor = || self.instance.spans[open.item].iter().any(|span| bare.any(span));
            if self.lowest[open.item] != open.lowest || !is_floor() {
                continue;
            }
            // What was placed since this was found out does not meet it in time, and what was raised makes it higher.
            let support = match node.supports[at] {
                Some(support) => support,
                None => self.support(node, open, placed),
            };
            node.supports[at] = Some(support);
            match support {
                Some(support) => raised.push((support, open.item)),
                None => return false,
            }
        }
        if raised.len() > end {
            raised.drain(..from);
            raised.sort_unstable();
            from = 0;
        }
        self.cover(bare, &mut others, raised, from, i64::MAX, placed.lowest).1
    }

    /// Gives floors to sections by the buffers below `limit`: whether each has room for what is open in it.
    fn cover(
        &mut self,
        bare: &mut Bare,
        others: &mut &[Open],
        raised: &[(i64, Item)],
        from: usize,
        limit: i64,
        least: i64,
    ) -> (usize, bool) {
        let mut holds = true;
        let mut next = from;
        while bare.left > 0 {
            let raised_next = raised.get(next).copied();
            let other = others.first().map(|open| (open.lowest, open.item));
            let (lowest, item) = match (other, raised_next) {
                (Some(other), raised) if raised.is_none_or(|raised| other <= raised) => {
                    if other.0 >= limit {
                        break;
                    }
                    *others = &others[1..];
                    if self.lowest[other.1] != other.0 {
                        continue;
                    }
                    other
                }
                (_, Some(raised)) => {
                    if raised.0 >= limit {
                        break;
                    }
                    next += 1;
                    raised
                }
                _ => break,
            };
            let room = self.capacity - lowest.max(least);
            for span in &self.instance.spans[item] {
                bare.cover(span, |section| {
                    if self.load[section] > room {
                        self.weights.add(section);
                        holds = false;
                    }
                });
            }
        }
        (next, holds)
    }

    /// The lowest offset on top of an open buffer that meets this one in time.
    fn support(&self, node: &Node, open: Open, placed: Open) -> Option<i64> {
        let top = |item: Item| self.lowest[item].max(placed.lowest) + self.instance.size[item];
        let neighbours = &self.neighbours[open.item];
        let lowest = if neighbours.len() * neighbours.len() < 2 * node.tops.len() {
            let open = neighbours.iter().filter(|&&other| self.offset[other].is_none());
            open.map(|&other| top(other)).min()
        } else {
            let mut lowest: Option<i64> = None;
            for &(top_before, item) in &node.tops {
                // By now a top may be higher than when the node began, never lower.
                if lowest.is_some_and(|lowest| lowest <= top_before) {
                    break;
                }
                if item != open.item && item != placed.item && self.instance.meet(open.item, item) {
                    lowest = Some(lowest.map_or(top(item), |lowest| lowest.min(top(item))));
                }
            }
            lowest
        };
        lowest.map(|lowest| self.instance.aligned(open.item, lowest))
    }
}
