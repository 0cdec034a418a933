//! One buffer after the other.
//!
//! The way down is a list and no recursion: it is as long as there are buffers, for which a thread may have no stack.

use alloc::vec::Vec;

use super::node::{Choice, Frame, Next, Node, Open};
use super::{Answer, Search};
use crate::limits::Meter;
use crate::place::instance::{Item, Span};

impl Search<'_> {
    /// Places a part whose buffers are connected in time, and which takes all of these sections.
    pub(super) fn place_part(&mut self, part: Vec<Item>, sections: Span, meter: &mut Meter<'_>) -> Answer {
        let first = self.opened(part, sections);
        let mut way = core::mem::take(&mut self.way);
        way.push(Frame::Choice(first));
        // What came of the step below, where the search comes back from there.
        let mut below = None;
        let mut answer = Answer::Placed;
        while let Some(frame) = way.last_mut() {
            let next = match frame {
                Frame::Choice(choice) => self.choose(choice, below.take(), meter),
                Frame::Split(split) => self.next_part(split, below.take()),
            };
            match next {
                Next::Down(frame) => way.push(frame),
                Next::Up(up) => {
                    if let Some(Frame::Choice(choice)) = way.pop() {
                        self.nodes.push(choice.node);
                    }
                    (below, answer) = (Some(up), up);
                }
            }
        }
        self.way = way;
        answer
    }

    /// The first choice in a part.
    pub(super) fn opened(&mut self, mut part: Vec<Item>, sections: Span) -> Choice {
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
        self.choice(node, sections, None)
    }

    /// The next choice in the same part after a buffer was placed; what that raised stands in the trail from `mark` on.
    fn descended(&mut self, before: &Node, placed: Open, mark: usize, sections: Span) -> Choice {
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
        self.choice(node, sections, Some(placed))
    }

    fn empty_node(&mut self) -> Node {
        let mut node = self.nodes.pop().unwrap_or_default();
        node.open.clear();
        node.tops.clear();
        node.supports.clear();
        node
    }

    /// What is open in the node is to be placed, in ascending order of offset and position, none before `after`.
    fn choice(&self, mut node: Node, sections: Span, after: Option<Open>) -> Choice {
        node.supports.resize(node.open.len(), None);
        Choice {
            fullest: self.load[sections.clone()].iter().max().copied().unwrap_or(0),
            node,
            sections,
            after,
            at: 0,
            mark: 0,
            has_neighbours: false,
            is_split: false,
        }
    }

    /// Places the next buffer of a choice, or goes back; `below` is what came of the one that was placed last.
    fn choose(&mut self, choice: &mut Choice, below: Option<Answer>, meter: &mut Meter<'_>) -> Next {
        let Some(&(lowest_top, _)) = choice.node.tops.first() else {
            return Next::Up(Answer::Placed);
        };
        if let Some(answer) = below {
            self.come_back(choice, answer);
            if answer != Answer::Impossible || !self.leave(choice) {
                return Next::Up(answer);
            }
        }
        while let Some(&candidate) = choice.node.open.get(choice.at) {
            if candidate.lowest >= lowest_top {
                // Another buffer would fit below.
                break;
            }
            if choice.after.is_some_and(|after| candidate < after) {
                if self.instance.pinned[candidate.item].is_some() {
                    break;
                }
                choice.at += 1;
                continue;
            }
            if self.left == 0 || meter.is_over() {
                return Next::Up(Answer::Stopped);
            }
            self.left -= 1;
            meter.tick(1);
            if candidate.lowest + choice.fullest > self.capacity {
                // Whatever comes now lies at least as high as this one, too high for the fullest section.
                self.blame(candidate.lowest, choice.sections.clone());
                break;
            }
            choice.mark = self.trail.len();
            let (is_allowed, has_neighbours) = self.put(candidate);
            choice.has_neighbours = has_neighbours;
            if is_allowed && self.may_fit(&mut choice.node, choice.at, choice.mark, &choice.sections) {
                return Next::Down(self.go_on(choice, candidate));
            }
            if !self.leave(choice) {
                break;
            }
        }
        Next::Up(Answer::Impossible)
    }

    /// The step after a buffer was placed.
    fn go_on(&mut self, choice: &mut Choice, placed: Open) -> Frame {
        let split = self.split(choice, placed);
        choice.is_split = split.is_some();
        split.map_or_else(
            || {
                let sections = choice.sections.clone();
                Frame::Choice(self.descended(&choice.node, placed, choice.mark, sections))
            },
            Frame::Split,
        )
    }

    /// Undoes what the step below left; where it was stopped, the buffer that was placed before, too.
    fn come_back(&mut self, choice: &Choice, answer: Answer) {
        let placed = choice.node.open[choice.at].item;
        if choice.is_split && answer != Answer::Placed {
            // What the parts before had placed is of no use.
            for open in choice.node.open.iter().filter(|open| open.item != placed) {
                self.reopen(open.item);
            }
        }
        self.unite(placed);
        if answer == Answer::Stopped {
            self.take_back(placed, choice.mark);
        }
    }

    /// Takes back a buffer with which nothing fits; whether another one may be tried instead.
    fn leave(&mut self, choice: &mut Choice) -> bool {
        let placed = choice.node.open[choice.at].item;
        self.take_back(placed, choice.mark);
        choice.at += 1;
        // One that is in nobody's way changes nothing for the others; a pinned one cannot come later.
        choice.has_neighbours && self.instance.pinned[placed].is_none()
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
