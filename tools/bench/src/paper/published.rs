//! Figures of the Moccasin paper (Bartan et al., ICML 2023, Tables 2 and 3; 16 cores, 32 GB). The graphs are known by their numbers of
//! nodes and edges.

/// What the paper states for one method: total duration increase in per cent, peak as printed, seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PublishedRun {
    /// Total duration increase, per cent.
    pub(crate) increase: f64,
    /// Peak, as it is printed.
    pub(crate) peak: &'static str,
    /// Time in seconds.
    pub(crate) seconds: f64,
}

/// What the paper states for one graph and budget; a method is absent where it found nothing within its limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Row {
    nodes: usize,
    edges: usize,
    /// Budget as a share of the baseline peak, in per cent.
    percent: u64,
    /// Name of the graph in the paper.
    pub(crate) name: &'static str,
    /// The authors' own method.
    pub(crate) moccasin: PublishedRun,
    /// Checkmate as an integer program.
    pub(crate) checkmate: Option<PublishedRun>,
    /// Checkmate as a linear program, rounded; its plans may exceed the budget.
    pub(crate) rounding: Option<PublishedRun>,
}

impl Row {
    /// The methods that have figures, by name.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (&'static str, PublishedRun)> {
        let methods = [
            ("Checkmate MILP", self.checkmate),
            ("Checkmate LP", self.rounding),
            ("Moccasin", Some(self.moccasin)),
        ];
        methods.into_iter().filter_map(|(name, figures)| Some((name, figures?)))
    }
}

const fn f(increase: f64, peak: &'static str, seconds: f64) -> PublishedRun {
    PublishedRun {
        increase,
        peak,
        seconds,
    }
}

const fn row(
    (nodes, edges, percent): (usize, usize, u64),
    name: &'static str,
    checkmate: Option<PublishedRun>,
    rounding: Option<PublishedRun>,
    moccasin: PublishedRun,
) -> Row {
    Row {
        nodes,
        edges,
        percent,
        name,
        moccasin,
        checkmate,
        rounding,
    }
}

#[rustfmt::skip]
const ROWS: [Row; 12] = [
    row((100, 236, 90), "RL 100", Some(f(0.8, "41,360", 18.5)), Some(f(0.1, "44,939", 16.0)), f(0.8, "40,820", 9.3)),
    row((100, 236, 80), "RL 100", Some(f(2.3, "36,830", 22.7)), Some(f(7.3, "43,370", 20.1)), f(2.3, "36,810", 9.5)),
    row((250, 944, 90), "RL 250", Some(f(0.9, "132,130", 685.1)), Some(f(93.0, "178,200", 401.7)), f(0.9, "131,831", 55.0)),
    row((250, 944, 80), "RL 250", None, Some(f(328.6, "181,200", 696.9)), f(4.9, "117,400", 639.5)),
    row((500, 2461, 90), "RL 500", None, None, f(0.7, "255,959", 1803.3)),
    row((500, 2461, 80), "RL 500", None, None, f(3.4, "227,429", 1804.8)),
    row((1000, 5875, 90), "RL 1000", None, None, f(0.7, "547,660", 3612.9)),
    row((1000, 5875, 80), "RL 1000", None, None, f(3.4, "486,880", 3611.8)),
    row((73, 149, 90), "CM 1 (FCN8)", Some(f(0.0, "11.1 GB", 6.3)), Some(f(0.0, "11.4 GB", 6.8)), f(0.0, "11.1 GB", 3.1)),
    row((73, 149, 80), "CM 1 (FCN8)", Some(f(0.1, "9.65 GB", 5.6)), Some(f(0.1, "10.8 GB", 6.7)), f(0.1, "9.9 GB", 3.1)),
    row((353, 751, 90), "CM 2 (ResNet50)", Some(f(0.1, "31.6 GB", 434.1)), Some(f(0.1, "31.5 GB", 505.2)), f(0.2, "31.9 GB", 65.2)),
    row((353, 751, 80), "CM 2 (ResNet50)", Some(f(0.3, "28.3 GB", 485.3)), Some(f(0.5, "27.8 GB", 1065.4)), f(0.3, "28.4 GB", 69.3)),
];

/// The paper's row for a graph of this size, if it has one.
pub(crate) fn find(nodes: usize, edges: usize, percent: u64) -> Option<Row> {
    ROWS.into_iter()
        .find(|row| (row.nodes, row.edges, row.percent) == (nodes, edges, percent))
}

/// What the paper calls a graph of this size.
pub(crate) fn name(nodes: usize, edges: usize) -> Option<&'static str> {
    let row = ROWS.iter().find(|row| (row.nodes, row.edges) == (nodes, edges));
    row.map(|row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_size_and_budget() {
        assert_eq!(find(250, 944, 80).map(|row| row.name), Some("RL 250"));
        assert_eq!(find(250, 944, 70), None);
        assert_eq!(find(251, 944, 80), None);
        assert_eq!(name(250, 944), Some("RL 250"));
    }

    #[test]
    fn methods_that_found_nothing_are_left_out() {
        let methods = |percent| find(250, 944, percent).map_or(0, |row| row.methods().count());
        assert_eq!((methods(90), methods(80)), (3, 2));
    }
}
