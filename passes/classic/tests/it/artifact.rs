//! The figures of the Checkmate paper's artifact for the classic strategies.

use remat_classic::{Candidates, Strategy as Classic, Walk};
use remat_plan::Problem;
use remat_testing::{Need, Trial, trial, workspace};

use crate::points::checked;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(single_plans_have_the_figures_of_the_artifact, Need::Graphs),
        trial!(the_greedy_sweep_has_the_points_of_the_artifact, Need::Graphs),
        trial!(
            branching_networks_are_recognised_in_other_orders_than_that_of_their_ids,
            Need::Graphs
        ),
    ]
}

/// A training graph of the Checkmate paper as text.
fn text(name: &str) -> String {
    let path = workspace().join(format!("../shared/graphs/cm_{name}_train.json"));
    std::fs::read_to_string(path).expect("the graph can be read")
}

fn problem(text: &str) -> Problem {
    let read = remat_nodelink::read(text.as_bytes()).expect("the file is a graph in topological order");
    remat_cost::paper_problem(&read.graph, &read.durations).expect("sizes are known")
}

/// A training graph of the Checkmate paper in the order of its ids.
fn graph(name: &str) -> Problem {
    let text = text(name);
    // The ids are a topological order, and stage form depends on the order.
    let nodes = text.matches("\"cost_ram\"").count();
    let order: Vec<String> = (0..nodes).map(|id| id.to_string()).collect();
    let text = text.replacen(
        "\"graph\": {",
        &format!("\"graph\": {{\"order\": [{}], ", order.join(",")),
        1,
    );
    problem(&text)
}

fn single_plans_have_the_figures_of_the_artifact() {
    use Candidates::{All, ArticulationPoints};
    for (name, all, sqrt, sqrt_ap, last_ratio) in [
        ("vgg16", 19585277952, (15315501056, 12816), (15315501056, 12816), 66155),
        (
            "mobilenet",
            37825796096,
            (18044108800, 11437),
            (18044108800, 11437),
            77088,
        ),
        (
            "resnet50",
            40323207168,
            (15285616640, 17883),
            (30725373952, 11757),
            338118,
        ),
        ("fcn8", 14804379264, (12578012160, 15076), (8664145920, 13040), 112473),
    ] {
        let problem = graph(name);
        let single = |strategy| {
            let points = checked(&problem, strategy);
            assert_eq!(points.len(), 1, "{name}");
            points[0].1
        };
        assert_eq!(single(Classic::All(All)), (all, 10_000), "{name}");
        assert_eq!(single(Classic::ChenSqrt(All)), sqrt, "{name}");
        assert_eq!(single(Classic::ChenSqrt(ArticulationPoints)), sqrt_ap, "{name}");
        assert_eq!(single(Classic::Last).1, last_ratio, "{name}");
    }
}

fn the_greedy_sweep_has_the_points_of_the_artifact() {
    use Candidates::{All, ArticulationPoints};
    // Those of ResNet50 are the lowest in steps of 0.1 only.
    for (name, candidates, point, step) in [
        ("vgg16", All, (13153337344, 10784), 1),
        ("mobilenet", All, (12742295552, 10951), 1),
        ("resnet50", All, (13028818944, 12666), 10),
        ("resnet50", ArticulationPoints, (14107803648, 11730), 10),
        ("fcn8", All, (8287944704, 14152), 1),
    ] {
        let problem = graph(name);
        let points = checked(&problem, Classic::ChenGreedy(candidates, Walk::DepthFirst));
        let swept = points
            .iter()
            .filter(|(size, _)| size % step == 0)
            .map(|&(_, found)| found);
        assert_eq!(swept.min(), Some(point), "{name}: {points:?}");
    }
    let problem = graph("fcn8");
    let points = checked(&problem, Classic::ChenGreedy(All, Walk::DepthFirst));
    assert!(
        points.iter().any(|&(_, found)| found == (10359930880, 10885)),
        "{points:?}"
    );
}

fn branching_networks_are_recognised_in_other_orders_than_that_of_their_ids() {
    for name in ["resnet50", "fcn8"] {
        let problem = problem(&text(name));
        assert_eq!(checked(&problem, Classic::All(Candidates::All))[0].1.1, 10_000);
        let (_, (_, ratio)) = checked(&problem, Classic::ChenSqrt(Candidates::All))[0];
        assert!(ratio > 10_000 && ratio < 20_000, "{ratio}");
    }
}
