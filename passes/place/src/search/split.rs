//! What does not meet in time any more is placed apart.

use super::node::{Node, Open};
use super::{Answer, Search};
use crate::control::Meter;
use crate::instance::{Item, Span};

/// Open buffers that are connected in time.
struct Part {
    sections: Span,
    items: Vec<Item>,
    /// What the fullest section has left.
    slack: i64,
}

impl Search<'_> {
    /// Goes on after a buffer was placed; what that raised stands in the trail from `mark` on.
    pub(super) fn go_on(
        &mut self,
        node: &Node,
        placed: Open,
        mark: usize,
        sections: Span,
        meter: &mut Meter<'_>,
    ) -> Answer {
        let hull = self.instance.hull(placed.item);
        let mut borders = Vec::new();
        for section in hull.start..hull.end - 1 {
            self.crossing[section] -= 1;
            if self.crossing[section] == 0 {
                borders.push(section + 1);
            }
        }
        let answer = if borders.is_empty() {
            self.descend(node, placed, mark, sections, meter)
        } else {
            borders.push(sections.end);
            let parts = self.parts(node, placed, sections.start, &borders);
            let answer = self.place_parts(parts, meter);
            if answer != Answer::Placed {
                // What the parts before had placed is of no use.
                for open in node.open.iter().filter(|open| open.item != placed.item) {
                    self.reopen(open.item);
                }
            }
            answer
        };
        for section in hull.start..hull.end - 1 {
            self.crossing[section] += 1;
        }
        answer
    }

    /// The parts between the borders, the one with least room first.
    fn parts(&self, node: &Node, placed: Open, start: usize, borders: &[usize]) -> Vec<Part> {
        let starts = std::iter::once(start).chain(borders.iter().copied());
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

    fn place_parts(&mut self, parts: Vec<Part>, meter: &mut Meter<'_>) -> Answer {
        for part in parts {
            let key = self.memo.key(part.items.iter().map(|&item| (item, self.lowest[item])));
            if self.memo.is_impossible(key) {
                return Answer::Impossible;
            }
            match self.place_part(part.items, part.sections, meter) {
                Answer::Placed => {}
                Answer::Impossible => {
                    self.memo.add(key);
                    return Answer::Impossible;
                }
                Answer::Stopped => return Answer::Stopped,
            }
        }
        Answer::Placed
    }
}
