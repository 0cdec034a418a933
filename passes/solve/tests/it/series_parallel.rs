//! The order of least peak of series-parallel problems, held against all orders.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use remat_plan::{AntiDependence, OpId, Problem, Status, Structure, TensorId, lower_sequence};
use remat_solve::{OnceOrder, Search, SolveControl, Solver, least_peak, once_order};
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

/// A network while it is built.
struct Built {
    net: Net,
    /// The results of each op.
    results: Vec<Vec<TensorId>>,
    /// The ops that stand before each op in every order.
    before: Vec<Vec<usize>>,
    /// Who reads results of each op.
    readers: Vec<Vec<usize>>,
    /// Whether an op reads results only of ops all of whose readers stand before it, so that the last reader is the same in every order.
    apart: bool,
}

impl Built {
    fn of(recipe: &Recipe, apart: bool) -> Problem {
        let mut built = Self {
            net: Net::new(),
            results: Vec::new(),
            before: Vec::new(),
            readers: Vec::new(),
            apart,
        };
        built.add(recipe, &[]);
        built.net.done()
    }

    /// Adds a part that follows these ops at once. Returns those that are followed at once by what comes next.
    fn add(&mut self, recipe: &Recipe, behind: &[usize]) -> Vec<usize> {
        match recipe {
            Recipe::Op(draw) => vec![self.op(draw, behind)],
            Recipe::Series(parts) => parts
                .iter()
                .fold(behind.to_vec(), |behind, part| self.add(part, &behind)),
            Recipe::Parallel(parts) => parts.iter().flat_map(|part| self.add(part, behind)).collect(),
        }
    }

    fn op(&mut self, draw: &Draw, behind: &[usize]) -> usize {
        let number = self.results.len();
        let further = behind.iter().flat_map(|&op| self.before[op].iter().copied());
        let mut before: Vec<usize> = further.chain(behind.iter().copied()).collect();
        before.sort_unstable();
        before.dedup();
        let skipped = draw
            .skip
            .filter(|_| !before.is_empty())
            .map(|skip| before[skip.index(before.len())]);
        let mut sources: Vec<usize> = behind.iter().copied().chain(skipped).collect();
        sources.sort_unstable();
        sources.dedup();
        let may_read = |&op: &usize| !self.apart || self.readers[op].iter().all(|reader| before.contains(reader));
        let (sources, others): (Vec<usize>, Vec<usize>) = sources.into_iter().partition(may_read);
        let mut entry = step(&format!("op{number}"), 1, Vec::new());
        entry.workspace = draw.workspace;
        for op in sources {
            self.readers[op].push(number);
            let several = self.results[op].iter().copied();
            entry.reads.extend(if skipped == Some(op) {
                several.take(9)
            } else {
                several.take(1)
            });
        }
        let first = self.net.0.tensors.len();
        let second = draw.second.map(transient);
        let live_out = draw.live_out.map(kept);
        self.net
            .add(entry, [transient(draw.bytes)].into_iter().chain(second).chain(live_out));
        self.results
            .push((first..self.net.0.tensors.len()).map(TensorId::new).collect());
        for op in others {
            let (before, after) = (OpId::new(op), OpId::new(number));
            self.net.0.anti_dependences.push(AntiDependence { before, after });
        }
        self.before.push(before);
        self.readers.push(Vec::new());
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
fn networks(most: usize, apart: bool) -> impl Strategy<Value = Problem> {
    let recipes = recipes(most as u32).prop_filter("small", move |recipe| size(recipe) <= most);
    recipes.prop_map(move |recipe| Built::of(&recipe, apart))
}

proptest! {
    #![proptest_config(remat_testing::cases(1_000))]

    #[test]
    fn what_is_made_in_series_and_in_parallel_is_recognized(problem in networks(60, false)) {
        prop_assert!(found(&problem).is_some());
    }

    #[test]
    fn no_order_is_below_the_bound_and_the_peak_is_that_of_the_order(problem in networks(8, false)) {
        let found = found(&problem).expect("series-parallel");
        let least = least_of_all(&problem);
        prop_assert_eq!(peak_of(&problem, &found.ops), found.peak);
        let bound = found.bound.expect("no views");
        prop_assert!(bound <= least && least <= found.peak, "{bound} {least} {}", found.peak);
    }

    #[test]
    fn where_the_last_reader_is_the_same_in_every_order_the_peak_is_the_least(problem in networks(8, true)) {
        let found = found(&problem).expect("series-parallel");
        prop_assert_eq!(found.peak, least_of_all(&problem));
        prop_assert!(found.is_least());
    }

    #[test]
    fn no_random_problem_has_an_order_below_the_bound(problem in problems(1..8, Features::RULES)) {
        let problem = in_free_order(problem);
        if let Some(found) = found(&problem) {
            let least = least_of_all(&problem);
            prop_assert_eq!(peak_of(&problem, &found.ops), found.peak);
            prop_assert!(found.bound.is_none_or(|bound| bound <= least), "{:?} {least}", found.bound);
            prop_assert!(least <= found.peak);
        }
    }
}

#[test]
fn where_branches_share_values_nearly_all_orders_are_the_least_and_most_are_proved() {
    let mut runner = TestRunner::deterministic();
    let strategy = networks(8, false);
    let draw = || strategy.new_tree(&mut runner).expect("few are too large").current();
    let problems = std::iter::repeat_with(draw).filter(|problem| problem.ops.len() >= 6);
    let (mut all, mut least, mut proved) = (0, 0, 0);
    for problem in problems.take(500) {
        let found = found(&problem).expect("series-parallel");
        all += 1;
        least += usize::from(found.peak == least_of_all(&problem));
        proved += usize::from(found.is_least());
    }
    assert!(least * 100 >= all * 99, "{least} of {all}");
    assert!(proved * 100 >= all * 94, "{proved} of {all}");
}

#[test]
fn where_no_op_may_run_again_it_is_the_floor() {
    // The first result is read at the end, and meanwhile an op with a large workspace runs.
    let ops: &[(u64, u64, &[usize])] = &[(1, 10, &[]), (1, 1, &[0]), (1, 1, &[1]), (1, 1, &[2, 0])];
    let mut problem = in_free_order(paper(ops));
    problem.ops[OpId::new(2)].workspace = 50;
    let floor = |problem: &Problem| least_peak(problem, &SolveControl::new());
    assert_eq!((floor(&problem).bytes, floor(&problem).is_of_orders), (52, false));
    problem.max_computes = Some(1);
    assert_eq!((floor(&problem).bytes, floor(&problem).is_of_orders), (62, true));
    assert_eq!(found(&problem).map(|found| found.is_least()), Some(true));
}

#[test]
fn the_search_answers_at_once_where_an_order_keeps_the_budget() {
    let ops: &[(u64, u64, &[usize])] = &[(1, 20, &[]), (1, 2, &[0]), (1, 30, &[]), (1, 3, &[2]), (1, 1, &[1, 3])];
    let mut problem = in_free_order(paper(ops));
    problem.budget = Some(33);
    let outcome = Search.solve(&problem, &SolveControl::new().step_limit(0));
    assert_eq!(outcome.certificate.status, Status::Optimal);
    assert_eq!(outcome.lowest_peak, Some(33));
}
