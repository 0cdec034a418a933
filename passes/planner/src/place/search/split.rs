//! What does not meet in time any more is placed apart.

use alloc::vec;
use alloc::vec::Vec;

use super::node::{Choice, Frame, Next, Node, Open, Part, Split};
use super::{Answer, Search};
use crate::place::instance::Item;

impl Search<'_> {
    /// The parts into which the open buffers fall once this one is placed; `None` where they stay one. [`unite`](Self::unite) undoes it.
    pub(super) fn split(&mut self, choice: &Choice, placed: Open) -> Option<Split> {
        let hull = self.instance.hull(placed.item);
        let mut borders = Vec::new();
        for section in hull.start..hull.end - 1 {
            self.crossing[section] -= 1;
            if self.crossing[section] == 0 {
                borders.push(section + 1);
            }
        }
        if borders.is_empty() {
            return None;
        }
        borders.push(choice.sections.end);
        let parts = self.parts(&choice.node, placed, choice.sections.start, &borders);
        Some(Split {
            rest: parts.into_iter(),
            key: 0,
        })
    }

    /// The sections of a buffer are connected by it again.
    pub(super) fn unite(&mut self, placed: Item) {
        let hull = self.instance.hull(placed);
        for section in hull.start..hull.end - 1 {
            self.crossing[section] += 1;
        }
    }

    /// The parts between the borders, the one with least room first.
    fn parts(&self, node: &Node, placed: Open, start: usize, borders: &[usize]) -> Vec<Part> {
        let starts = core::iter::once(start).chain(borders.iter().copied());
        let mut parts: Vec<Part> = starts
            .zip(borders)
            .map(|(start, &end)| Part {
                sections: start..end,
                items: Vec::new(),
                slack: self.capacity,
            })
            .collect();
        for open in node.open.iter().filter(|open| open.item != placed.item) {
            let start = self.instance.hull(open.item).start;
            let part = &mut parts[borders.partition_point(|&border| border <= start)];
            part.items.push(open.item);
        }
        parts.retain(|part| !part.items.is_empty());
        for part in &mut parts {
            let mut floor = vec![i64::MAX; part.sections.len()];
            for &item in &part.items {
                for section in self.instance.spans[item].iter().cloned().flatten() {
                    let floor = &mut floor[section - part.sections.start];
                    *floor = self.lowest[item].min(*floor);
                }
            }
            let filled = floor.iter().zip(&self.load[part.sections.clone()]);
            let slack = filled
                .filter(|&(_, &load)| load > 0)
                .map(|(floor, load)| self.capacity - floor - load);
            part.slack = slack.min().unwrap_or(self.capacity);
        }
        parts.sort_by_key(|part| (part.slack, part.items.len()));
        parts
    }

    /// Places the next part; `below` is what came of the one before.
    pub(super) fn next_part(&mut self, split: &mut Split, below: Option<Answer>) -> Next {
        match below {
            Some(Answer::Stopped) => return Next::Up(Answer::Stopped),
            Some(Answer::Impossible) => {
                self.memo.add(split.key);
                return Next::Up(Answer::Impossible);
            }
            Some(Answer::Placed) | None => {}
        }
        let Some(part) = split.rest.next() else {
            return Next::Up(Answer::Placed);
        };
        split.key = self.memo.key(part.items.iter().map(|&item| (item, self.lowest[item])));
        if self.memo.is_impossible(split.key) {
            return Next::Up(Answer::Impossible);
        }
        Next::Down(Frame::Choice(self.opened(part.items, part.sections)))
    }
}
