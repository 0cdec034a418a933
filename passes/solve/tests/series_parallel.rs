//! The order of least peak of series-parallel problems, held against all orders.

use proptest::prelude::*;
use remat_plan::{AntiDependence, OpId, Problem, StorageRole, Structure, TensorId, lower_sequence};
use remat_solve::{OnceOrder, SolveControl, once_order};
use remat_testing::net::{Net, in_free_order, kept, paper, step, transient};
use remat_testing::random::{Features, problems};
use remat_verify::replay;

fn found(problem: &Problem) -> Option<OnceOrder> {
    once_order(problem, &SolveControl::new())
}

fn peak_of(problem: &Problem, ops: &[OpId]) -> u64 {
    let plan = lower_sequence(problem, &Structure::of(problem), ops.iter().copied()).expect("an order");
    replay(problem, &plan).expect("a valid plan").peak
}

/// The least peak of all orders in which every op runs once.
fn least_of_all(problem: &Problem) -> u64 {
    let structure = Structure::of(problem);
    let ops: Vec<OpId> = structure.scheduled().collect();
    let mut best = u64::MAX;
    extend(problem, &structure, &ops, &mut Vec::new(), &mut best);
    best
}

fn extend(problem: &Problem, structure: &Structure, ops: &[OpId], order: &mut Vec<OpId>, best: &mut u64) {
    if order.len() == ops.len() {
        let plan = lower_sequence(problem, structure, order.iter().copied()).expect("an order");
        *best = (*best).min(replay(problem, &plan).expect("a valid plan").peak);
        return;
    }
    for &op in ops {
        let is_bound = |pair: &AntiDependence| pair.after == op && !order.contains(&pair.before);
        if order.contains(&op) || problem.anti_dependences.iter().any(is_bound) {
            continue;
        }
        order.push(op);
        if lower_sequence(problem, structure, order.iter().copied()).is_ok() {
            extend(problem, structure, ops, order, best);
        }
        order.pop();
    }
}

/// Networks of ops in series and in parallel, as a recipe.
#[derive(Clone, Debug)]
enum Recipe {
    Op(Draw),
    Series(Vec<Recipe>),
    Parallel(Vec<Recipe>),
}

/// An op: bytes of its results, of its workspace, and whether a result is live-out; whether it reads all results that it follows at once.
#[derive(Clone, Debug)]
struct Draw {
    bytes: u64,
    second: Option<u64>,
    workspace: u64,
    live_out: Option<u64>,
    /// A result of an op further back that it reads besides.
    skip: Option<prop::sample::Index>,
}

fn recipes(most: u32) -> impl Strategy<Value = Recipe> {
    let bytes = 0u64..30;
    let maybe = |weight: f64| prop::option::weighted(weight, 0u64..30);
    let workspace = prop_oneof![2 => Just(0), 1 => 0u64..30];
    let skip = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let draw = (bytes, maybe(0.2), workspace, maybe(0.15), skip);
    let draw = draw.prop_map(|(bytes, second, workspace, live_out, skip)| Draw {
        bytes,
        second,
        workspace,
        live_out,
        skip,
    });
    draw.prop_map(Recipe::Op).prop_recursive(4, most, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Recipe::Series),
            prop::collection::vec(inner, 1..4).prop_map(Recipe::Parallel),
        ]
    })
}

/// What is known of an op of a network: the results it made.
struct Built {
    net: Net,
    results: Vec<Vec<TensorId>>,
    /// The ops that stand before each op in every order.
    before: Vec<Vec<usize>>,
    /// Whether forks hand their value to one branch only, so that its last reader is the same in all orders.
    apart: bool,
}

impl Built {
    fn of(recipe: &Recipe, apart: bool) -> Self {
        let mut built = Self {
            net: Net::new(),
            results: Vec::new(),
            before: Vec::new(),
            apart,
        };
        built.add(recipe, &[]);
        built
    }

    /// Adds a part behind these ops, which it follows at once; returns those that follow it at once come behind.
    fn add(&mut self, recipe: &Recipe, behind: &[usize]) -> Vec<usize> {
        match recipe {
            Recipe::Op(draw) => vec![self.op(draw, behind)],
            Recipe::Series(parts) => parts.iter().fold(behind.to_vec(), |behind, part| self.add(part, &behind)),
            Recipe::Parallel(parts) => parts.iter().flat_map(|part| self.add(part, behind)).collect(),
        }
    }

    fn op(&mut self, draw: &Draw, behind: &[usize]) -> usize {
        let number = self.results.len();
        let mut before: Vec<usize> = behind.iter().flat_map(|&op| self.before[op].clone()).chain(behind.iter().copied()).collect();
        before.sort_unstable();
        before.dedup();
        let mut places = vec![transient(draw.bytes)];
        places.extend(draw.second.map(transient));
        places.extend(draw.live_out.map(kept));
        // The first result is what the next ops read; where nothing is to be shared, each of them reads another one's.
        let mut reads: Vec<TensorId> = Vec::new();
        let mut bound = Vec::new();
        for &op in behind {
            if self.apart {
                bound.push(op);
            } else {
                reads.push(self.results[op][0]);
            }
        }
        if let (Some(skip), false) = (draw.skip, before.is_empty()) {
            let far = before[skip.index(before.len())];
            reads.extend(self.results[far].iter().filter(|_| !self.apart));
        }
        reads.sort_unstable();
        reads.dedup();
        let name = format!("op{number}");
        let mut entry = step(&name, 1, reads);
        entry.workspace = draw.workspace;
        let first = self.net.0.tensors.len();
        self.net.add(entry, places.clone());
        self.results.push((first..first + places.len()).map(TensorId::new).collect());
        for op in bound {
            let (before, after) = (OpId::new(op), OpId::new(number));
            self.net.0.anti_dependences.push(AntiDependence { before, after });
        }
        self.before.push(before);
        number
    }
}

fn size(recipe: &Recipe) -> usize {
    match recipe {
        Recipe::Op(_) => 1,
        Recipe::Series(parts) | Recipe::Parallel(parts) => parts.iter().map(size).sum(),
    }
}

/// Networks of up to so many ops.
fn networks(most: usize) -> impl Strategy<Value = Problem> {
    let recipes = recipes(most as u32).prop_filter("small", move |recipe| size(recipe) <= most);
    recipes.prop_map(|recipe| Built::of(&recipe, false).net.done())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_made_in_series_and_in_parallel_is_recognized(problem in networks(60)) {
        prop_assert!(found(&problem).is_some());
    }

    #[test]
    fn no_order_is_below_the_bound_and_the_peak_is_that_of_the_order(problem in networks(8)) {
        let found = found(&problem).expect("series-parallel");
        let least = least_of_all(&problem);
        prop_assert_eq!(peak_of(&problem, &found.ops), found.peak);
        let bound = found.bound.expect("no views");
        prop_assert!(bound <= least && least <= found.peak, "{bound} {least} {}", found.peak);
    }
}
