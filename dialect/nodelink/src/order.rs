//! Reference orders: the one a file gives, checked, or the one networkx would give.

use std::collections::VecDeque;

/// Edges of a graph of dense nodes; parallel edges are merged.
pub(crate) struct Edges {
    /// Nodes that each node reads, in the order of the file.
    pub(crate) inputs: Vec<Vec<usize>>,
    /// Nodes that read each node, in the order of the file.
    pub(crate) users: Vec<Vec<usize>>,
}

impl Edges {
    /// Nodes in the order of Kahn's algorithm with a first-in, first-out queue that starts in node order: what
    /// `networkx.topological_sort` gives.
    ///
    /// # Errors
    /// The nodes of a cycle, in the direction of its edges.
    pub(crate) fn topological_order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let mut missing: Vec<usize> = self.inputs.iter().map(Vec::len).collect();
        let mut ready: VecDeque<usize> = (0..missing.len()).filter(|&node| missing[node] == 0).collect();
        let mut order = Vec::with_capacity(missing.len());
        while let Some(node) = ready.pop_front() {
            order.push(node);
            for &user in &self.users[node] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    ready.push_back(user);
                }
            }
        }
        match missing.iter().position(|&count| count > 0) {
            None => Ok(order),
            Some(start) => Err(self.cycle(start, &missing)),
        }
    }

    /// A cycle, found by walking against the edges: every node that Kahn's algorithm left has an input that it left.
    fn cycle(&self, start: usize, missing: &[usize]) -> Vec<usize> {
        let mut place = vec![None; missing.len()];
        let mut path = Vec::new();
        let mut node = start;
        loop {
            if let Some(first) = place[node] {
                let mut cycle = path.split_off(first);
                cycle.reverse();
                return cycle;
            }
            place[node] = Some(path.len());
            path.push(node);
            let left = self.inputs[node].iter().copied().find(|&input| missing[input] > 0);
            node = left.expect("a node that is not ready waits for another one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(nodes: usize, list: &[(usize, usize)]) -> Edges {
        let mut edges = Edges {
            inputs: vec![Vec::new(); nodes],
            users: vec![Vec::new(); nodes],
        };
        for &(from, to) in list {
            edges.inputs[to].push(from);
            edges.users[from].push(to);
        }
        edges
    }

    #[test]
    fn the_order_is_first_in_first_out_and_follows_the_edges_of_the_file() {
        let diamond = edges(5, &[(4, 3), (4, 1), (1, 2), (3, 2)]);
        assert_eq!(diamond.topological_order(), Ok(vec![0, 4, 3, 1, 2]));
    }

    #[test]
    fn a_cycle_is_named_without_the_nodes_before_and_behind_it() {
        let graph = edges(6, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (4, 5)]);
        let cycle = graph.topological_order().unwrap_err();
        assert_eq!(cycle.len(), 3);
        for (i, &node) in cycle.iter().enumerate() {
            assert!(graph.users[node].contains(&cycle[(i + 1) % 3]), "{cycle:?}");
        }
    }
}
