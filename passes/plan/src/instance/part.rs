//! Some nodes of an instance as an instance of its own.

use typed_index_collections::TiVec;

use super::lists::Lists;
use super::{Instance, NodeId, Values};

impl Instance {
    /// The nodes `kept`, ascending. Where one reads what a node makes that is not among them, it reads the value of the same rank of the node
    /// that `stand_in` names for the reader and the maker, and nothing where there is none; stand-ins are kept nodes before the reader. Ops
    /// and storages are those of this instance.
    #[must_use]
    pub fn part(&self, kept: &[NodeId], stand_in: impl Fn(NodeId, NodeId) -> Option<NodeId>) -> Self {
        let mut new: TiVec<NodeId, Option<NodeId>> = TiVec::from(vec![None; self.len()]);
        for (index, &node) in kept.iter().enumerate() {
            new[node] = Some(NodeId::new(index));
        }
        let resolved = |reader: NodeId, made: NodeId| match new[made] {
            Some(_) => Some(made),
            None => stand_in(reader, made),
        };
        let mut node_of = TiVec::from(vec![None; self.node_of.len()]);
        let mut values = Values {
            start: vec![0],
            bytes: TiVec::new(),
            producer: TiVec::new(),
            storage: TiVec::new(),
            of_storage: TiVec::from(vec![None; self.values.of_storage.len()]),
        };
        for (index, &node) in kept.iter().enumerate() {
            node_of[self.op(node)] = Some(NodeId::new(index));
            for value in self.values(node) {
                let storage = self.storage(value);
                values.of_storage[storage] = Some(values.bytes.push_and_get_key(self.bytes(value)));
                values.producer.push(NodeId::new(index));
                values.storage.push(storage);
            }
            values.start.push(values.bytes.next_key().0);
        }
        let needs = Lists::of(kept.iter().map(|&node| {
            let read = self.needs(node).iter().filter_map(|&value| {
                let maker = resolved(node, self.producer(value))?;
                let rank = self.rank(value);
                values.made(new[maker]?).nth(rank)
            });
            sorted(read.collect())
        }));
        let predecessors = Lists::of(kept.iter().map(|&node| {
            let before = self.predecessors(node).iter();
            sorted(before.filter_map(|&other| new[resolved(node, other)?]).collect())
        }));
        let anti_predecessors = Lists::of(kept.iter().map(|&node| {
            let before = self.anti_predecessors(node).iter();
            before.filter_map(|&other| new[other]).collect::<Vec<_>>()
        }));
        Self {
            ops: kept.iter().map(|&node| self.ops[node]).collect(),
            node_of,
            duration: kept.iter().map(|&node| self.duration[node]).collect(),
            views_duration: kept.iter().map(|&node| self.views_duration[node]).collect(),
            all_views_duration: self.all_views_duration,
            workspace: kept.iter().map(|&node| self.workspace[node]).collect(),
            kept: kept.iter().map(|&node| self.kept[node]).collect(),
            max_computes: kept.iter().map(|&node| self.max_computes[node]).collect(),
            users: needs.inverted(values.bytes.len()),
            successors: predecessors.inverted(kept.len()),
            anti_successors: anti_predecessors.inverted(kept.len()),
            needs,
            predecessors,
            anti_predecessors,
            values,
            order: self.order,
        }
    }

    /// The same where first runs follow the order of the nodes.
    #[must_use]
    pub fn in_fixed_order(self) -> Self {
        Self {
            order: crate::OrderMode::Fixed,
            ..self
        }
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}
