//! One buffer after the other.

use super::node::{Node, Open};
use super::{Answer, Search};
use crate::control::Meter;
use crate::instance::{Item, Span};

impl Search<'_> {
    /// Places a part whose buffers are connected in time, and which takes all of these sections.
    pub(super) fn place_part(&mut self, mut part: Vec<Item>, sections: Span, meter: &mut Meter<'_>) -> Answer {
        self.preference
            .sort(&mut part, self.instance, &self.load, &self.weights);
        let mut node = self.empty_node();
        for (position, item) in part.into_iter().enumerate() {
            let lowest = self.lowest[item];
            node.open.push(Open { lowest, position, item });
            node.tops.push((lowest + self.instance.size[item], item));
        }
        node.open.sort_unstable();
        node.tops.sort_unstable();
        self.choose(node, sections, None, meter)
    }

    /// Goes on in the same part after a buffer was placed; what that raised stands in the trail from `mark` on.
    pub(super) fn descend(
        &mut self,
        before: &Node,
        placed: Open,
        mark: usize,
        sections: Span,
        meter: &mut Meter<'_>,
    ) -> Answer {
        let mut node = self.empty_node();
        // What was not raised keeps its order.
        for open in before.open.iter().filter(|open| open.item != placed.item) {
            if self.lowest[open.item] == open.lowest {
                node.open.push(*open);
            }
        }
        for &(top, item) in before.tops.iter().filter(|(_, item)| *item != placed.item) {
            if self.lowest[item] + self.instance.size[item] == top {
                node.tops.push((top, item));
            }
        }
        if self.trail.len() > mark {
            for open in &before.open {
                let lowest = self.lowest[open.item];
                if lowest != open.lowest {
                    node.open.push(Open { lowest, ..*open });
                    node.tops.push((lowest + self.instance.size[open.item], open.item));
                }
            }
            // Both are two ascending runs, which a stable sort merges.
            node.open.sort();
            node.tops.sort();
        }
        self.choose(node, sections, Some(placed), meter)
    }

    fn empty_node(&mut self) -> Node {
        let mut node = self.nodes.pop().unwrap_or_default();
        node.open.clear();
        node.tops.clear();
        node
    }

    /// Places what is open in the node, in ascending order of offset and position, none before `after`.
    fn choose(&mut self, mut node: Node, sections: Span, after: Option<Open>, meter: &mut Meter<'_>) -> Answer {
        node.supports.clear();
        node.supports.resize(node.open.len(), None);
        let answer = self.try_each(&mut node, sections, after, meter);
        self.nodes.push(node);
        answer
    }

    fn try_each(&mut self, node: &mut Node, sections: Span, after: Option<Open>, meter: &mut Meter<'_>) -> Answer {
        let Some(&(lowest_top, _)) = node.tops.first() else {
            return Answer::Placed;
        };
        let fullest = self.load[sections.clone()].iter().max().copied().unwrap_or(0);
        for at in 0..node.open.len() {
            let candidate = node.open[at];
            if candidate.lowest >= lowest_top {
                // Another buffer would fit below.
                break;
            }
            if after.is_some_and(|after| candidate < after) {
                if self.instance.pinned[candidate.item].is_some() {
                    break;
                }
                continue;
            }
            if self.left == 0 || meter.is_over() {
                return Answer::Stopped;
            }
            self.left -= 1;
            meter.tick(1);
            if candidate.lowest + fullest > self.capacity {
                // Whatever comes now lies at least as high as this one, too high for the fullest section.
                self.blame(candidate.lowest, sections);
                break;
            }
            let mark = self.trail.len();
            let (is_allowed, has_neighbours) = self.put(candidate);
            let mut answer = Answer::Impossible;
            if is_allowed && self.may_fit(node, at, mark, &sections) {
                answer = self.go_on(node, candidate, mark, sections.clone(), meter);
            }
            if answer == Answer::Placed {
                return answer;
            }
            self.take_back(candidate.item, mark);
            if answer == Answer::Stopped {
                return answer;
            }
            // One that is in nobody's way changes nothing for the others; a pinned one cannot come later.
            if !has_neighbours || self.instance.pinned[candidate.item].is_some() {
                break;
            }
        }
        Answer::Impossible
    }

    /// Gives weight to the sections that are too full for a floor.
    fn blame(&mut self, floor: i64, sections: Span) {
        for section in sections {
            if floor + self.load[section] > self.capacity {
                self.weights.add(section);
            }
        }
    }

    /// Places a buffer as low as it may lie; whether it leaves pinned ones their place, and whether any open one meets it in time.
    fn put(&mut self, candidate: Open) -> (bool, bool) {
        let Open {
            lowest: offset, item, ..
        } = candidate;
        let size = self.instance.size[item];
        self.offset[item] = Some(offset);
        for span in &self.instance.spans[item] {
            self.load[span.clone()].iter_mut().for_each(|load| *load -= size);
        }
        let mut has_neighbours = false;
        let mut is_allowed = true;
        for &other in &self.neighbours[item] {
            if self.offset[other].is_some() {
                continue;
            }
            has_neighbours = true;
            let lowest = self.lowest[other];
            if lowest < offset + size {
                is_allowed &= self.instance.pinned[other].is_none();
                self.trail.push((other, lowest));
                self.lowest[other] = self.instance.aligned(other, offset + size);
            }
        }
        (is_allowed, has_neighbours)
    }

    /// Takes back a buffer, and what its neighbours know of it.
    fn take_back(&mut self, item: Item, mark: usize) {
        for (other, lowest) in self.trail.drain(mark..).rev() {
            self.lowest[other] = lowest;
        }
        self.reopen(item);
    }
}
