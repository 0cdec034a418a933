//! Figures of the Moccasin paper (Bartan et al., ICML 2023, Tables 2 and 3; 16 cores, 32 GB): total duration increase in per
//! cent, and seconds. The graphs are known by their numbers of nodes and edges.

/// What the paper states for one graph and budget.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Row {
    nodes: usize,
    edges: usize,
    /// Budget as a share of the baseline peak, in per cent.
    percent: u32,
    /// Name of the graph in the paper.
    pub(crate) name: &'static str,
    /// Total duration increase of Moccasin, per cent.
    pub(crate) increase: f64,
    /// Its time in seconds.
    pub(crate) seconds: f64,
}

#[rustfmt::skip]
const ROWS: [Row; 12] = [
    Row { nodes: 100, edges: 236, percent: 90, name: "RL 100", increase: 0.8, seconds: 9.3 },
    Row { nodes: 100, edges: 236, percent: 80, name: "RL 100", increase: 2.3, seconds: 9.5 },
    Row { nodes: 250, edges: 944, percent: 90, name: "RL 250", increase: 0.9, seconds: 55.0 },
    Row { nodes: 250, edges: 944, percent: 80, name: "RL 250", increase: 4.9, seconds: 639.5 },
    Row { nodes: 500, edges: 2461, percent: 90, name: "RL 500", increase: 0.7, seconds: 1803.3 },
    Row { nodes: 500, edges: 2461, percent: 80, name: "RL 500", increase: 3.4, seconds: 1804.8 },
    Row { nodes: 1000, edges: 5875, percent: 90, name: "RL 1000", increase: 0.7, seconds: 3612.9 },
    Row { nodes: 1000, edges: 5875, percent: 80, name: "RL 1000", increase: 3.4, seconds: 3611.8 },
    Row { nodes: 73, edges: 149, percent: 90, name: "CM 1 (FCN8)", increase: 0.0, seconds: 3.1 },
    Row { nodes: 73, edges: 149, percent: 80, name: "CM 1 (FCN8)", increase: 0.1, seconds: 3.1 },
    Row { nodes: 353, edges: 751, percent: 90, name: "CM 2 (ResNet50)", increase: 0.2, seconds: 65.2 },
    Row { nodes: 353, edges: 751, percent: 80, name: "CM 2 (ResNet50)", increase: 0.3, seconds: 69.3 },
];

/// The paper's row for a graph of this size, if it has one.
pub(crate) fn row(nodes: usize, edges: usize, percent: u32) -> Option<Row> {
    ROWS.into_iter()
        .find(|row| (row.nodes, row.edges, row.percent) == (nodes, edges, percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_size_and_budget() {
        assert_eq!(row(250, 944, 80).map(|row| row.name), Some("RL 250"));
        assert_eq!(row(250, 944, 70), None);
        assert_eq!(row(251, 944, 80), None);
    }
}
