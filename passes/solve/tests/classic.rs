//! The classic strategies: the figures of the Checkmate paper's artifact, and what holds on every training step.

mod support;

use std::path::PathBuf;

use proptest::prelude::*;
use remat_plan::{Problem, StopReason, Structure, baseline};
use remat_solve::classic::{Candidates, Point, Refusal, RolesError, Strategy as Classic, Walk, curve};
use remat_solve::stages::{StageGraph, StageMatrix, Stages};
use remat_solve::{SolveControl, by_name};
use remat_verify::replay;
use support::{Features, paper, problems};

const EVERY: [Classic; 10] = [
    Classic::All(Candidates::All),
    Classic::All(Candidates::ArticulationPoints),
    Classic::Last,
    Classic::ChenSqrt(Candidates::All),
    Classic::ChenSqrt(Candidates::ArticulationPoints),
    Classic::ChenGreedy(Candidates::All, Walk::Reference),
    Classic::ChenGreedy(Candidates::ArticulationPoints, Walk::Reference),
    Classic::ChenGreedy(Candidates::All, Walk::DepthFirst),
    Classic::ChenGreedy(Candidates::ArticulationPoints, Walk::DepthFirst),
    Classic::Griewank,
];

/// A training graph of the Checkmate paper in the order of its ids, if it is at hand.
fn graph(name: &str) -> Option<Problem> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/graphs");
    let Ok(text) = std::fs::read_to_string(folder.join(format!("cm_{name}_train.json"))) else {
        eprintln!("skipped: no graph `{name}` in {}", folder.display());
        return None;
    };
    // The ids are a topological order, and stage form depends on the order.
    let nodes = text.matches("\"cost_ram\"").count();
    let order: Vec<String> = (0..nodes).map(|id| id.to_string()).collect();
    let text = text.replacen("\"graph\": {", &format!("\"graph\": {{\"order\": [{}], ", order.join(",")), 1);
    let read = remat_nodelink::read(text.as_bytes()).unwrap();
    Some(remat_profile::paper_problem(&read.graph, &read.durations).unwrap())
}

/// Peak as the paper counts it, and the ratio of times in ten thousandths, rounded.
fn figures(problem: &Problem, point: &Point) -> (u64, u64) {
    let once = u128::from(problem.total_duration());
    let ratio = (u128::from(point.duration) * 10_000 + once / 2) / once;
    (point.schedule_peak, u64::try_from(ratio).unwrap())
}

/// The figures of all plans of a strategy; the checker accepts each plan and finds what is claimed, and no more than the paper's peak.
fn checked(problem: &Problem, strategy: Classic) -> Vec<(u64, (u64, u64))> {
    let points = curve(problem, strategy).unwrap();
    let figures = points.iter().map(|point| {
        let replayed = replay(problem, &point.plan).unwrap();
        assert_eq!((replayed.peak, replayed.duration), (point.peak, point.duration));
        assert!(point.peak <= point.schedule_peak);
        (point.parameter, figures(problem, point))
    });
    figures.collect()
}

#[test]
fn single_plans_have_the_figures_of_the_artifact() {
    use Candidates::{All, ArticulationPoints};
    for (name, all, sqrt, sqrt_ap, last_ratio) in [
        ("vgg16", 19585277952, (15315501056, 12816), (15315501056, 12816), 66155),
        ("mobilenet", 37825796096, (18044108800, 11437), (18044108800, 11437), 77088),
        ("resnet50", 40323207168, (15285616640, 17883), (30725373952, 11757), 338118),
        ("fcn8", 14804379264, (12578012160, 15076), (8664145920, 13040), 112473),
    ] {
        let Some(problem) = graph(name) else { return };
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

#[test]
fn the_greedy_sweep_has_the_points_of_the_artifact() {
    use Candidates::{All, ArticulationPoints};
    for (name, candidates, point) in [
        ("vgg16", All, (13153337344, 10784)),
        ("mobilenet", All, (12742295552, 10951)),
        ("resnet50", All, (13028818944, 12666)),
        ("resnet50", ArticulationPoints, (14107803648, 11730)),
        ("fcn8", All, (8287944704, 14152)),
        ("fcn8", All, (10359930880, 10885)),
    ] {
        let Some(problem) = graph(name) else { return };
        let points = checked(&problem, Classic::ChenGreedy(candidates, Walk::DepthFirst));
        assert!(points.iter().any(|&(_, found)| found == point), "{name}: {points:?}");
    }
}

#[test]
fn roles_do_not_depend_on_the_order_of_the_ops() {
    for name in ["resnet50", "fcn8"] {
        let Some(mut problem) = graph(name) else { return };
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/graphs");
        let bytes = std::fs::read(folder.join(format!("cm_{name}_train.json"))).unwrap();
        let read = remat_nodelink::read(&bytes).unwrap();
        problem = remat_profile::paper_problem(&read.graph, &read.durations).map(|other| {
            assert_ne!(other.ops, problem.ops);
            other
        }).unwrap();
        assert_eq!(checked(&problem, Classic::All(Candidates::All))[0].1.1, 10_000);
        let (_, (_, ratio)) = checked(&problem, Classic::ChenSqrt(Candidates::All))[0];
        assert!(ratio > 10_000 && ratio < 20_000, "{ratio}");
    }
}
