//! What has to be resident together, in exact bytes: the way back from results to what was resident before them.

use fixedbitset::FixedBitSet;
use remat_plan::{Instance, NodeId, OrderMode, Problem, StorageId, StorageRole, Structure};
use smallvec::SmallVec;
use typed_index_collections::TiVec;

/// A result, by rank: those of earlier nodes come first.
pub(super) type Item = u32;
/// Results that are resident together; ascending.
pub(super) type Set = SmallVec<[Item; 12]>;

/// The problem as bounds see it: nothing is demanded that a plan could do without.
///
/// *Items* are the storages that are counted and take memory, live-out ones among them. Nodes are those of the [`Instance`], by index.
pub(super) struct Graph {
    items: Vec<Entry>,
    nodes: Vec<Node>,
    /// The bytes of live-out items, by rank among them.
    live_out_bytes: Vec<u64>,
}

struct Entry {
    bytes: u64,
    producer: usize,
    /// Rank among the live-out items.
    live_out: Option<usize>,
}

struct Node {
    /// What is resident before each run: operands, and live-out results of nodes that have run by then.
    needs: Set,
    /// What each run takes besides: results and workspace.
    local: u64,
    /// Whether it runs once only.
    once: bool,
    /// The nodes that run before its first run.
    before: FixedBitSet,
    /// Their live-out items, by rank.
    left_behind: FixedBitSet,
}

impl Graph {
    pub(super) fn of(problem: &Problem, structure: &Structure, instance: &Instance) -> Self {
        let mut graph = Self {
            items: Vec::new(),
            nodes: Vec::with_capacity(instance.len()),
            live_out_bytes: Vec::new(),
        };
        let mut item_of: TiVec<StorageId, Option<Item>> = problem.storages.keys().map(|_| None).collect();
        for node in instance.nodes() {
            for &storage in structure.owns(instance.op(node)) {
                item_of[storage] = graph.add_item(problem, storage, node);
            }
        }
        let mut last_creating = None;
        for node in instance.nodes() {
            let creates = !structure.owns(instance.op(node)).is_empty();
            let in_order = last_creating.filter(|_| creates && instance.order() == OrderMode::Fixed);
            let earlier = instance.predecessors(node).iter().copied().chain(in_order);
            graph.add_node(problem, structure, instance, node, earlier, &item_of);
            if creates {
                last_creating = Some(node);
            }
        }
        for node in 0..graph.nodes.len() {
            let needs = std::mem::take(&mut graph.nodes[node].needs);
            graph.nodes[node].needs = graph.without_implied(needs);
        }
        graph
    }

    fn add_item(&mut self, problem: &Problem, storage: StorageId, node: NodeId) -> Option<Item> {
        let entry = &problem.storages[storage];
        if entry.role == StorageRole::External || entry.bytes == 0 {
            return None;
        }
        let live_out = (entry.role == StorageRole::LiveOut).then_some(self.live_out_bytes.len());
        if live_out.is_some() {
            self.live_out_bytes.push(entry.bytes);
        }
        self.items.push(Entry {
            bytes: entry.bytes,
            producer: node.index(),
            live_out,
        });
        Item::try_from(self.items.len() - 1).ok()
    }

    /// Adds the next node. `earlier` are nodes whose first run stands before its own.
    fn add_node(
        &mut self,
        problem: &Problem,
        structure: &Structure,
        instance: &Instance,
        node: NodeId,
        earlier: impl Iterator<Item = NodeId>,
        item_of: &TiVec<StorageId, Option<Item>>,
    ) {
        let op = instance.op(node);
        let entry = &problem.ops[op];
        let mut before = FixedBitSet::with_capacity(instance.len());
        let mut left_behind = FixedBitSet::with_capacity(self.live_out_bytes.len());
        let owned = |node: NodeId| {
            structure
                .owns(instance.op(node))
                .iter()
                .filter_map(|&storage| item_of[storage])
        };
        for other in earlier {
            let known = &self.nodes[other.index()];
            before.union_with(&known.before);
            before.insert(other.index());
            left_behind.union_with(&known.left_behind);
            left_behind.extend(owned(other).filter_map(|item| self.items[item as usize].live_out));
        }
        let operands = entry
            .reads
            .iter()
            .filter_map(|&tensor| item_of[problem.tensors[tensor].storage]);
        let is_left = |&item: &Item| {
            self.items[item as usize]
                .live_out
                .is_some_and(|rank| left_behind.contains(rank))
        };
        let mut needs: Set = operands.chain(self.live_out().into_iter().filter(is_left)).collect();
        needs.sort_unstable();
        needs.dedup();
        let made: u64 = owned(node).map(|item| self.bytes(item)).sum();
        self.nodes.push(Node {
            needs,
            local: made + entry.workspace,
            once: !entry.recomputable || problem.max_computes == Some(1) && !structure.owns(op).is_empty(),
            before,
            left_behind,
        });
    }

    /// Whether nothing stays and every node may run again.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.live_out_bytes.is_empty() && self.nodes.iter().all(|node| !node.once)
    }

    /// The live-out items: what is resident after every plan.
    pub(super) fn live_out(&self) -> Set {
        let all = self.items.iter().enumerate();
        all.filter(|(_, entry)| entry.live_out.is_some())
            .map(|(item, _)| item as Item)
            .collect()
    }

    pub(super) fn bytes(&self, item: Item) -> u64 {
        self.items[item as usize].bytes
    }

    /// The node that makes an item.
    pub(super) fn producer(&self, item: Item) -> usize {
        self.items[item as usize].producer
    }

    /// What is resident before each run of a node; ascending.
    pub(super) fn needs(&self, node: usize) -> &[Item] {
        &self.nodes[node].needs
    }

    /// The nodes that make items of a set.
    pub(super) fn makers(&self, set: &[Item]) -> SmallVec<[usize; 12]> {
        // Items of one node are neighbours.
        let mut makers: SmallVec<[usize; 12]> = set.iter().map(|&item| self.producer(item)).collect();
        makers.dedup();
        makers
    }

    /// Bytes that are resident when a set is: also the live-out items of all nodes that must have run by then.
    pub(super) fn weight(&self, set: &[Item]) -> u64 {
        if self.live_out_bytes.is_empty() {
            return set.iter().map(|&item| self.bytes(item)).sum();
        }
        let mut left = FixedBitSet::with_capacity(self.live_out_bytes.len());
        let mut bytes = 0;
        for &item in set {
            left.union_with(&self.nodes[self.producer(item)].left_behind);
            match self.items[item as usize].live_out {
                Some(rank) => left.insert(rank),
                None => bytes += self.bytes(item),
            }
        }
        bytes + left.ones().map(|rank| self.live_out_bytes[rank]).sum::<u64>()
    }

    /// Bytes at a run of a node with these items resident before.
    pub(super) fn at(&self, before: &[Item], node: usize) -> u64 {
        self.weight(before) + self.nodes[node].local
    }

    /// What is resident right before a node runs whose run made the youngest of a set.
    ///
    /// That run made all items of the node in the set. It is the first one of the node where one of them is live-out, and where the
    /// node runs once only: then nothing is resident that was made after it.
    ///
    /// # Errors
    /// Where it cannot be: items of the set that rule it out, beside any item of the node.
    pub(super) fn before(&self, set: &[Item], node: usize) -> Result<Set, Set> {
        let entry = &self.nodes[node];
        let is_own = |item: &Item| self.producer(*item) == node;
        let rest = || set.iter().copied().filter(|item| !is_own(item));
        let live_out = set
            .iter()
            .copied()
            .filter(is_own)
            .find(|&item| self.items[item as usize].live_out.is_some());
        let is_first = entry.once || live_out.is_some();
        let is_after = |item: &Item| self.nodes[self.producer(*item)].before.contains(node);
        if is_first && let Some(after) = rest().find(is_after) {
            return Err(live_out.filter(|_| !entry.once).into_iter().chain([after]).collect());
        }
        let mut before: Set = rest().chain(entry.needs.iter().copied()).collect();
        before.sort_unstable();
        before.dedup();
        Ok(self.without_implied(before))
    }

    /// A set without the live-out items that nodes left behind which ran before others in the set were made.
    pub(super) fn without_implied(&self, mut set: Set) -> Set {
        if self.live_out_bytes.is_empty() {
            return set;
        }
        let mut left = FixedBitSet::with_capacity(self.live_out_bytes.len());
        for &item in &set {
            left.union_with(&self.nodes[self.producer(item)].left_behind);
        }
        set.retain(|item| {
            self.items[*item as usize]
                .live_out
                .is_none_or(|rank| !left.contains(rank))
        });
        set
    }
}
