//! Random layered graphs, for measurements of any size.
//!
//! They follow the graphs RL of the Moccasin paper (Bartan et al., ICML 2023), which are those of Gagrani et al., "Neural
//! Topological Ordering for Computation Graphs" (NeurIPS 2022), in what can be measured on the published files:
//!
//! - one node without operands in the first level, one node that nobody reads in the last, both of duration 0;
//! - levels in between of a quarter to seven quarters of the mean width;
//! - every node reads at least one node of the level before, and each other one of them with probability 0.2; every node has a reader in
//!   the next level;
//! - 14 % of all edges skip levels, between inner levels. They reach as far, in the mean, as in the published graph of 1,000 nodes: were it any
//!   distance, as there, more and more values would have to stay as graphs grow;
//! - durations uniform in 1 to 1,000; sizes multiples of 10 up to about 8,000, mean 2,000: a mixture of four normal distributions;
//! - the order of the file is a random topological order.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::ensure;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde_json::json;

/// Probability that a node reads a given node of the level before, beyond the one it reads anyway.
const DENSITY: f64 = 0.2;
/// Share of the edges that skip levels.
const SKIP_SHARE: f64 = 0.14;
/// Levels that they skip beyond the first one, in the mean of a geometric distribution.
pub(crate) const SKIPPED: f64 = 11.0;
/// Sizes: weight, mean and deviation 1, in thousands; folded to positive numbers.
const SIZES: [(f64, f64); 4] = [(0.3, 0.5), (0.3, 1.0), (0.3, 3.0), (0.1, 5.0)];

/// A random layered graph. Nodes are numbered level by level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LayeredGraph {
    /// Name that says the shape and the seed.
    name: String,
    /// Nodes of each level.
    levels: Vec<Range<usize>>,
    /// Nodes that each node reads, each once.
    reads: Vec<Vec<usize>>,
    /// Time of each node.
    durations: Vec<u64>,
    /// Size of each node's result.
    sizes: Vec<u64>,
    /// A topological order.
    order: Vec<usize>,
}

impl LayeredGraph {
    /// A graph of that many nodes, in time that grows with nodes and edges. The same seed gives the same graph.
    ///
    /// # Errors
    /// If these are fewer than three nodes.
    pub(crate) fn new(nodes: usize, seed: u64) -> anyhow::Result<Self> {
        ensure!(
            nodes >= 3,
            "{nodes} nodes are too few: a first and a last node need at least one between them"
        );
        let random = &mut Random(SplitMix64::seed_from_u64(seed));
        let inner = nodes - 2;
        // As in the published graphs up to 1,000 nodes, and no wider beyond, so that the number of edges stays at about 6 per node.
        let usual = (0.62 * (nodes as f64).sqrt()).clamp(1.0, 20.0);
        let count = ((inner as f64 / usual).round() as usize).clamp(1, inner);
        let mean = inner as f64 / count as f64;
        let width = (1.75 * mean).ceil() as usize;
        let levels = draw_levels(inner, count, width, random);
        let mut reads = draw_neighbours(nodes, &levels, random);
        draw_skips(&levels, &mut reads, random);
        let outer = |node: usize| node == 0 || node == nodes - 1;
        let mut duration = |node| if outer(node) { 0 } else { 1 + random.below(1000) as u64 };
        let durations = (0..nodes).map(&mut duration).collect();
        let sizes = (0..nodes).map(|_| size(random)).collect();
        let order = topological(&reads, random);
        Ok(Self {
            name: format!("layered_n{nodes}_l{}_w{width}_d{DENSITY}_s{seed}", levels.len()),
            levels,
            reads,
            durations,
            sizes,
            order,
        })
    }

    /// Writes networkx node-link JSON with the keys that the published graphs have, one node and one edge a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let header = json!({ "name": self.name, "order": self.order });
        write!(
            out,
            "{{\"directed\": true, \"multigraph\": false, \"graph\": {header},\n\"nodes\": ["
        )?;
        let levels = self.levels.iter().enumerate();
        let nodes = levels.flat_map(|(level, nodes)| nodes.clone().map(move |node| (node, level)));
        let mut separator = "\n";
        for (node, level) in nodes {
            let (size, duration) = (self.sizes[node], self.durations[node]);
            write!(
                out,
                "{separator}{{\"id\": {node}, \"out_cost\": {size}, \"duration\": {duration}, \"level\": {level}}}"
            )?;
            separator = ",\n";
        }
        write!(out, "],\n\"links\": [")?;
        separator = "\n";
        for (target, sources) in self.reads.iter().enumerate() {
            for source in sources {
                write!(out, "{separator}{{\"source\": {source}, \"target\": {target}}}")?;
                separator = ",\n";
            }
        }
        writeln!(out, "]}}")
    }
}

/// Nodes of each level, in order: widths uniform around the mean, then evened out to the number that is asked for.
fn draw_levels(inner: usize, count: usize, width: usize, random: &mut Random) -> Vec<Range<usize>> {
    let mean = inner as f64 / count as f64;
    let (low, high) = ((0.25 * mean).max(1.0), 1.75 * mean);
    let draw = |_| ((low + (high - low) * random.unit()).round() as usize).clamp(1, width);
    let mut widths: Vec<usize> = (0..count).map(draw).collect();
    let mut sum: usize = widths.iter().sum();
    while sum != inner {
        let chosen = &mut widths[random.below(count)];
        if sum < inner && *chosen < width {
            *chosen += 1;
            sum += 1;
        } else if sum > inner && *chosen > 1 {
            *chosen -= 1;
            sum -= 1;
        }
    }
    let mut next = 0;
    let all = std::iter::once(1).chain(widths).chain(std::iter::once(1));
    all.map(|width| {
        next += width;
        next - width..next
    })
    .collect()
}

/// What each node reads of the level before.
fn draw_neighbours(nodes: usize, levels: &[Range<usize>], random: &mut Random) -> Vec<Vec<usize>> {
    let mut reads = vec![Vec::new(); nodes];
    let mut is_read = vec![false; nodes];
    for pair in levels.windows(2) {
        let (before, level) = (&pair[0], &pair[1]);
        for node in level.clone() {
            let first = before.start + random.below(before.len());
            let mut chosen = vec![first];
            let others = random.thinned(before.len()).map(|offset| before.start + offset);
            chosen.extend(others.filter(|&other| other != first));
            for &read in &chosen {
                is_read[read] = true;
            }
            reads[node] = chosen;
        }
        for unread in before.clone().filter(|&node| !is_read[node]) {
            reads[level.start + random.below(level.len())].push(unread);
        }
    }
    reads
}

/// Edges between inner levels that are not neighbours. Where there are too few such pairs, fewer edges are made.
fn draw_skips(levels: &[Range<usize>], reads: &mut [Vec<usize>], random: &mut Random) {
    let last = levels.len() - 2;
    if last < 3 {
        return;
    }
    let neighbours: usize = reads.iter().map(Vec::len).sum();
    let mut missing = (neighbours as f64 * SKIP_SHARE / (1.0 - SKIP_SHARE)).round() as usize;
    let mut level_of = vec![0; reads.len()];
    for (level, nodes) in levels.iter().enumerate() {
        level_of[nodes.clone()].fill(level);
    }
    let sources = levels[1].start..levels[last - 2].end;
    let mut attempts = 20 * missing;
    while missing > 0 && attempts > 0 {
        attempts -= 1;
        let source = sources.start + random.below(sources.len());
        let distance = 2 + failures(1.0 / (1.0 + SKIPPED), random.unit());
        if distance > last - level_of[source] {
            continue;
        }
        let target = levels[level_of[source] + distance].clone();
        let target = target.start + random.below(target.len());
        if !reads[target].contains(&source) {
            reads[target].push(source);
            missing -= 1;
        }
    }
}

fn size(random: &mut Random) -> u64 {
    let mut left = random.unit();
    let mean = SIZES.iter().find(|&&(weight, _)| {
        left -= weight;
        left < 0.0
    });
    let mean = mean.map_or(SIZES[3].1, |&(_, mean)| mean);
    let thousands = (mean + random.normal()).abs();
    10 * ((100.0 * thousands).round() as u64).max(1)
}

/// A random topological order: of the nodes whose operands are there, any is next.
fn topological(reads: &[Vec<usize>], random: &mut Random) -> Vec<usize> {
    let mut readers = vec![Vec::new(); reads.len()];
    for (node, operands) in reads.iter().enumerate() {
        for &operand in operands {
            readers[operand].push(node);
        }
    }
    let mut missing: Vec<usize> = reads.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..reads.len()).filter(|&node| missing[node] == 0).collect();
    let mut order = Vec::with_capacity(reads.len());
    while !ready.is_empty() {
        let node = ready.swap_remove(random.below(ready.len()));
        order.push(node);
        for &reader in &readers[node] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    order
}

/// Random numbers that are the same on every machine and in every version.
struct Random(SplitMix64);

impl Random {
    /// A number in `[0, 1)`.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..count`; 0 if there is none.
    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// A number from the standard normal distribution, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// The numbers below `count` of which each is taken with the probability `DENSITY`; takes time for those that are taken only.
    fn thinned(&mut self, count: usize) -> impl Iterator<Item = usize> {
        let mut next = 0usize;
        std::iter::from_fn(move || {
            next += failures(DENSITY, self.unit()) + 1;
            (next <= count).then(|| next - 1)
        })
        .take(count)
    }
}

/// Failures before the first success of this probability, for a uniform number in `[0, 1)`.
fn failures(probability: f64, uniform: f64) -> usize {
    ((1.0 - uniform).ln() / (1.0 - probability).ln()) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remat::{LoadOptions, Model};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..remat_testing::cases(64) })]

        #[test]
        fn edges_lead_to_higher_levels_and_every_inner_node_reads_and_is_read(nodes in 3usize..400, seed: u64) {
            let graph = LayeredGraph::new(nodes, seed).unwrap();
            prop_assert_eq!(&graph, &LayeredGraph::new(nodes, seed).unwrap());
            prop_assert_eq!(graph.levels.last().unwrap().end, nodes);
            let level = |node: usize| graph.levels.iter().position(|level| level.contains(&node)).unwrap();
            let mut is_read = vec![false; nodes];
            for (node, reads) in graph.reads.iter().enumerate() {
                let once: std::collections::BTreeSet<_> = reads.iter().collect();
                prop_assert_eq!(once.len(), reads.len());
                prop_assert!(reads.iter().all(|&read| level(read) < level(node)));
                prop_assert_eq!(reads.iter().any(|&read| level(read) + 1 == level(node)), node > 0);
                reads.iter().for_each(|&read| is_read[read] = true);
            }
            prop_assert!(is_read[..nodes - 1].iter().all(|&read| read));
        }

        #[test]
        fn what_is_written_is_read_back_in_its_order(nodes in 3usize..400, seed: u64) {
            let graph = LayeredGraph::new(nodes, seed).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("graph.json");
            graph.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
            let model = Model::open(&path, &LoadOptions::default()).unwrap();
            let problem = model.problem();
            let edges = |reads: &mut dyn Iterator<Item = usize>| reads.sum::<usize>();
            let expected = edges(&mut graph.reads.iter().map(Vec::len));
            prop_assert_eq!(edges(&mut problem.ops.iter().map(|op| op.reads.len())), expected);
            let order: Vec<_> = problem.ops.iter().map(|op| op.name.clone()).collect();
            prop_assert_eq!(order, graph.order.iter().map(ToString::to_string).collect::<Vec<_>>());
            prop_assert_eq!(problem.total_duration(), graph.durations.iter().sum::<u64>());
        }
    }

    #[test]
    fn graphs_look_like_the_published_ones() {
        let graph = LayeredGraph::new(1000, 0).unwrap();
        assert!((45..57).contains(&graph.levels.len()), "published: 51");
        let edges: usize = graph.reads.iter().map(Vec::len).sum();
        assert_eq!(
            edges, 5373,
            "published: 5875; made for the table of the documentation: 5373"
        );
        let mean = graph.sizes.iter().sum::<u64>() / 1000;
        assert!((1_800..2_200).contains(&mean), "published: 1954, made: {mean}");
        assert!(graph.sizes.iter().all(|size| size % 10 == 0 && *size > 0));
        let zero: Vec<_> = (0..1000).filter(|&node| graph.durations[node] == 0).collect();
        assert_eq!(zero, [0, 999]);
    }

    #[test]
    fn a_graph_needs_three_nodes_and_other_seeds_give_other_ones() {
        assert!(LayeredGraph::new(2, 0).is_err());
        let [one, two] = [1, 2].map(|seed| LayeredGraph::new(100, seed).unwrap());
        assert_ne!(one.reads, two.reads);
    }
}
