//! Random layered graphs, for measurements of any size.
//!
//! They follow the graphs RL of the Moccasin paper (Bartan et al., ICML 2023), which are those of Gagrani et al., "Neural
//! Topological Ordering for Computation Graphs" (NeurIPS 2022), in what can be measured on the published files:
//!
//! - one node without operands in the first level, one node that nobody reads in the last, both of duration 0;
//! - levels in between of a quarter to seven quarters of the mean width;
//! - every node reads at least one node of the level before, and each other one of them with probability 0.2 (`density`); every node
//!   has a reader in the next level;
//! - 14 % of all edges (`skip_share`) skip levels, between inner levels, over any distance;
//! - durations uniform in 1 to 1,000; sizes multiples of 10 up to about 8,000, mean 2,000: a mixture of four normal distributions;
//! - the order of the file is a random topological order.

mod random;
mod write;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use anyhow::ensure;

use random::Random;

/// How far the edges that skip levels reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Skips {
    /// Every distance from 2 to the end is as likely as any other.
    Uniform,
    /// 2 and a geometric number beyond it, of this mean.
    Geometric(f64),
}

impl FromStr for Skips {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let mean = text.strip_prefix("geometric:").and_then(|mean| mean.parse().ok());
        mean.filter(|mean: &f64| mean.is_finite() && *mean >= 0.0)
            .map(Self::Geometric)
            .ok_or_else(|| format!("`{text}` is not a distribution: write `uniform` or `geometric:MEAN`"))
    }
}

impl fmt::Display for Skips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Geometric(mean) => write!(f, "geometric:{mean}"),
        }
    }
}

/// The shape of a random layered graph.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Layered {
    /// Number of nodes, first and last included.
    pub(crate) nodes: usize,
    /// Number of levels, first and last included.
    pub(crate) levels: usize,
    /// Most nodes in a level.
    pub(crate) width: usize,
    /// Probability that a node reads a given node of the level before, beyond the one it reads anyway.
    pub(crate) density: f64,
    /// Share of the edges that skip levels.
    pub(crate) skip_share: f64,
    /// How far they reach.
    pub(crate) skips: Skips,
    /// Seed of the random choices: the same shape and seed give the same graph.
    pub(crate) seed: u64,
}

/// Mean width of the inner levels by default: as in the published graphs up to 1,000 nodes, and no wider beyond, so that the number of
/// edges stays at about 6 per node.
fn usual_width(nodes: usize) -> f64 {
    (0.62 * (nodes as f64).sqrt()).clamp(1.0, 20.0)
}

impl Layered {
    /// A shape with the levels or the width that are given; what is not given follows from the other. With neither, a shape like
    /// that of the published graphs of this size.
    pub(crate) fn new(nodes: usize, levels: Option<usize>, width: Option<usize>, seed: u64) -> Self {
        let inner = nodes.saturating_sub(2).max(1);
        let usual = width.map_or_else(|| usual_width(nodes), |width| (width as f64 / 1.75).max(1.0));
        let levels = levels.unwrap_or_else(|| 2 + ((inner as f64 / usual).round() as usize).clamp(1, inner));
        let mean = inner as f64 / levels.saturating_sub(2).max(1) as f64;
        Self {
            nodes,
            levels,
            width: width.unwrap_or((1.75 * mean).ceil() as usize),
            density: 0.2,
            skip_share: 0.14,
            skips: Skips::Uniform,
            seed,
        }
    }

    /// Makes the graph, in time that grows with nodes and edges.
    ///
    /// # Errors
    /// If no graph has that many nodes in levels of that width, or a probability is none.
    pub(crate) fn generate(&self) -> anyhow::Result<LayeredGraph> {
        ensure!(
            self.nodes >= 3 && self.levels >= 3,
            "{} nodes in {} levels are too few: a first and a last node need at least one between them",
            self.nodes,
            self.levels
        );
        let (inner, levels) = (self.nodes - 2, self.levels - 2);
        ensure!(
            levels <= inner && inner <= levels.saturating_mul(self.width),
            "{inner} inner nodes do not fit {levels} inner levels of 1 to {} nodes",
            self.width
        );
        ensure!(
            (0.0..=1.0).contains(&self.density),
            "density {} is not within 0 and 1",
            self.density
        );
        ensure!(
            (0.0..=0.9).contains(&self.skip_share),
            "share of skips {} is not within 0 and 0.9",
            self.skip_share
        );
        let mut random = Random::new(self.seed);
        let levels = self.draw_levels(&mut random);
        let mut reads = self.draw_neighbours(&levels, &mut random);
        self.draw_skips(&levels, &mut reads, &mut random);
        let outer = |node: usize| node == 0 || node == self.nodes - 1;
        let mut duration = |node| if outer(node) { 0 } else { 1 + random.below(1000) as u64 };
        let durations = (0..self.nodes).map(&mut duration).collect();
        let sizes = (0..self.nodes).map(|_| size(&mut random)).collect();
        let order = topological(&reads, &mut random);
        Ok(LayeredGraph {
            name: format!(
                "layered_n{}_l{}_w{}_d{}_s{}",
                self.nodes, self.levels, self.width, self.density, self.seed
            ),
            levels,
            reads,
            durations,
            sizes,
            order,
        })
    }

    /// Nodes of each level, in order: widths uniform around the mean, then evened out to the number that is asked for.
    fn draw_levels(&self, random: &mut Random) -> Vec<Range<usize>> {
        let (inner, count) = (self.nodes - 2, self.levels - 2);
        let mean = inner as f64 / count as f64;
        let (low, high) = ((0.25 * mean).max(1.0), (1.75 * mean).min(self.width as f64));
        let draw = |_| ((low + (high - low) * random.unit()).round() as usize).clamp(1, self.width);
        let mut widths: Vec<usize> = (0..count).map(draw).collect();
        let mut sum: usize = widths.iter().sum();
        while sum != inner {
            let width = &mut widths[random.below(count)];
            if sum < inner && *width < self.width {
                *width += 1;
                sum += 1;
            } else if sum > inner && *width > 1 {
                *width -= 1;
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
    fn draw_neighbours(&self, levels: &[Range<usize>], random: &mut Random) -> Vec<Vec<usize>> {
        let mut reads = vec![Vec::new(); self.nodes];
        let mut is_read = vec![false; self.nodes];
        for pair in levels.windows(2) {
            let (before, level) = (&pair[0], &pair[1]);
            for node in level.clone() {
                let first = before.start + random.below(before.len());
                let mut chosen = vec![first];
                let others = random
                    .thinned(before.len(), self.density)
                    .map(|offset| before.start + offset);
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
    fn draw_skips(&self, levels: &[Range<usize>], reads: &mut [Vec<usize>], random: &mut Random) {
        let last = levels.len() - 2;
        if last < 3 {
            return;
        }
        let neighbours: usize = reads.iter().map(Vec::len).sum();
        let mut missing = (neighbours as f64 * self.skip_share / (1.0 - self.skip_share)).round() as usize;
        let mut level_of = vec![0; self.nodes];
        for (level, nodes) in levels.iter().enumerate() {
            level_of[nodes.clone()].fill(level);
        }
        let sources = levels[1].start..levels[last - 2].end;
        let mut attempts = 20 * missing;
        while missing > 0 && attempts > 0 {
            attempts -= 1;
            let source = sources.start + random.below(sources.len());
            let farthest = last - level_of[source];
            let distance = match self.skips {
                Skips::Uniform => 2 + random.below(farthest - 1),
                Skips::Geometric(mean) => 2 + random.geometric(mean),
            };
            if distance > farthest {
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
}

/// Sizes: weight, mean and deviation 1, in thousands; folded to positive numbers.
const SIZES: [(f64, f64); 4] = [(0.3, 0.5), (0.3, 1.0), (0.3, 3.0), (0.1, 5.0)];

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

/// A random layered graph. Nodes are numbered level by level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LayeredGraph {
    /// Name that says the shape and the seed.
    pub(crate) name: String,
    /// Nodes of each level.
    pub(crate) levels: Vec<Range<usize>>,
    /// Nodes that each node reads, each once.
    pub(crate) reads: Vec<Vec<usize>>,
    /// Time of each node.
    pub(crate) durations: Vec<u64>,
    /// Size of each node's result.
    pub(crate) sizes: Vec<u64>,
    /// A topological order.
    pub(crate) order: Vec<usize>,
}

impl LayeredGraph {
    /// Number of edges.
    pub(crate) fn edges(&self) -> usize {
        self.reads.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests;
