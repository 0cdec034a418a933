use proptest::prelude::*;
use remat::{LoadOptions, Model};

use super::*;

/// Shapes that have a graph.
fn shapes() -> impl Strategy<Value = Layered> {
    let skips = prop_oneof![Just(Skips::Uniform), (0.0..20.0).prop_map(Skips::Geometric)];
    let numbers = (1usize..40, 1usize..12, 0.0..1.0, 0.0..0.5, any::<u64>());
    (numbers, skips, 0.0..1.0).prop_map(|((levels, width, density, skip_share, seed), skips, filled)| {
        let inner = levels + (filled * (levels * (width - 1)) as f64) as usize;
        Layered {
            nodes: inner + 2,
            levels: levels + 2,
            width,
            density,
            skip_share,
            skips,
            seed,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..remat_testing::cases(64) })]

    #[test]
    fn nodes_levels_and_width_are_as_asked(shape in shapes()) {
        let graph = shape.generate().unwrap();
        prop_assert_eq!(graph.reads.len(), shape.nodes);
        prop_assert_eq!(graph.levels.len(), shape.levels);
        prop_assert_eq!(graph.levels.last().unwrap().end, shape.nodes);
        prop_assert!(graph.levels.iter().all(|level| (1..=shape.width).contains(&level.len())));
    }

    #[test]
    fn edges_lead_to_higher_levels_and_every_inner_node_reads_and_is_read(shape in shapes()) {
        let graph = shape.generate().unwrap();
        let level = |node: usize| graph.levels.iter().position(|level| level.contains(&node)).unwrap();
        let mut is_read = vec![false; shape.nodes];
        for (node, reads) in graph.reads.iter().enumerate() {
            let mut once = reads.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), reads.len());
            prop_assert!(reads.iter().all(|&read| level(read) < level(node)));
            prop_assert_eq!(reads.iter().any(|&read| level(read) + 1 == level(node)), node > 0);
            for &read in reads {
                is_read[read] = true;
            }
        }
        prop_assert!(is_read[..shape.nodes - 1].iter().all(|&read| read));
    }

    #[test]
    fn the_order_is_topological_and_complete(shape in shapes()) {
        let graph = shape.generate().unwrap();
        let mut place = vec![usize::MAX; shape.nodes];
        for (at, &node) in graph.order.iter().enumerate() {
            place[node] = at;
        }
        prop_assert_eq!(graph.order.len(), shape.nodes);
        for (node, reads) in graph.reads.iter().enumerate() {
            prop_assert!(reads.iter().all(|&read| place[read] < place[node]));
        }
    }

    #[test]
    fn the_seed_alone_decides(shape in shapes()) {
        prop_assert_eq!(shape.generate().unwrap(), shape.generate().unwrap());
    }

    #[test]
    fn what_is_written_is_read_back(shape in shapes()) {
        let graph = shape.generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.json");
        graph.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
        let model = Model::open(&path, &LoadOptions::default()).unwrap();
        let problem = model.problem();
        prop_assert_eq!(problem.ops.len(), shape.nodes);
        let edges: usize = problem.ops.iter().map(|op| op.reads.len()).sum();
        prop_assert_eq!(edges, graph.edges());
        let order: Vec<_> = problem.ops.iter().map(|op| op.name.clone()).collect();
        prop_assert_eq!(order, graph.order.iter().map(ToString::to_string).collect::<Vec<_>>());
        prop_assert_eq!(problem.total_duration(), graph.durations.iter().sum::<u64>());
    }
}

/// Edges to the level before, and how many pairs of such nodes there are.
fn neighbours(graph: &LayeredGraph) -> (usize, usize) {
    let pairs = graph.levels.windows(2);
    pairs.fold((0, 0), |(edges, all), pair| {
        let reads = pair[1].clone().flat_map(|node| &graph.reads[node]);
        let near = reads.filter(|read| pair[0].contains(read)).count();
        (edges + near, all + pair[0].len() * pair[1].len())
    })
}

#[test]
fn density_and_share_of_skips_are_met() {
    for (density, skip_share) in [(0.05, 0.0), (0.2, 0.14), (0.5, 0.3)] {
        let shape = Layered {
            density,
            skip_share,
            ..Layered::new(20_000, None, Some(70), 3)
        };
        let graph = shape.generate().unwrap();
        let (near, pairs) = neighbours(&graph);
        // One read of each node is certain, and so is one reader: what a level cannot do without.
        let certain = 2 * shape.nodes;
        let least = density * (pairs - shape.nodes) as f64;
        let most = density * pairs as f64 + certain as f64;
        assert!((least..most).contains(&(near as f64)), "{near} not in {least}..{most}");
        let share = (graph.edges() - near) as f64 / graph.edges() as f64;
        assert!((share - skip_share).abs() < 0.001, "{share}");
    }
}

#[test]
fn usual_graphs_look_like_the_published_ones() {
    let graph = Layered::new(1000, None, None, 0).generate().unwrap();
    assert!((45..57).contains(&graph.levels.len()), "published: 51");
    assert!(
        (5_000..7_000).contains(&graph.edges()),
        "published: 5875, made: {}",
        graph.edges()
    );
    let mean = graph.sizes.iter().sum::<u64>() / 1000;
    assert!((1_800..2_200).contains(&mean), "published: 1954, made: {mean}");
    assert!(graph.sizes.iter().all(|size| size % 10 == 0 && *size > 0));
    let zero: Vec<_> = (0..1000).filter(|&node| graph.durations[node] == 0).collect();
    assert_eq!(zero, [0, 999]);
}

#[test]
fn other_seeds_give_other_graphs() {
    let [one, two] = [1, 2].map(|seed| Layered::new(100, None, None, seed).generate().unwrap());
    assert_ne!(one.reads, two.reads);
}

#[test]
fn shapes_without_a_graph_are_refused() {
    let usual = Layered::new(100, None, None, 0);
    for shape in [
        Layered { nodes: 2, ..usual },
        Layered { levels: 2, ..usual },
        Layered { levels: 101, ..usual },
        Layered { width: 1, ..usual },
        Layered { density: 1.1, ..usual },
        Layered {
            density: f64::NAN,
            ..usual
        },
        Layered {
            skip_share: 1.0,
            ..usual
        },
    ] {
        assert!(shape.generate().is_err(), "{shape:?}");
    }
}

#[test]
fn distributions_are_read_as_they_are_written() {
    for skips in [Skips::Uniform, Skips::Geometric(2.5)] {
        assert_eq!(skips.to_string().parse(), Ok(skips));
    }
    for text in ["", "normal", "geometric", "geometric:", "geometric:-1", "geometric:NaN"] {
        assert!(text.parse::<Skips>().is_err(), "{text}");
    }
}
