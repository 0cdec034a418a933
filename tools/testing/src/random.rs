//! Random problems with everything that a solver and the checker have to cope with.

use proptest::prelude::*;
use proptest::sample::{Index, SizeRange};
use remat_plan::{
    AntiDependence, OpId, OrderMode, Paging, PagingMode, Problem, ProblemOp, StorageRole, TensorId, Transfer,
};

use crate::net::{Net, Place, in_free_order, step, transient, with_budget};

/// What may occur in a problem.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// A tensor from outside, several results, graph outputs, workspace, ops that may run only once.
    pub models: bool,
    /// The most results of an op, in models.
    pub results: usize,
    /// Which views there are.
    pub views: Views,
    /// How far back operands are.
    pub reach: usize,
    /// Sizes are below that.
    pub bytes: u64,
    /// Whether some ops never run after others.
    pub anti_dependences: bool,
}

/// Results that lie in the storage of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Views {
    /// None.
    Absent,
    /// Each from an op of its own, which reads nothing else, takes no time and may run again.
    Free,
    /// Each from an op of its own: lazy ones, and such that may not run again.
    Apart,
    /// Also beside other results of an op, as are results outside of the budget; and there are ops without operands.
    Mixed,
}

impl Features {
    /// What models have.
    pub const ALL: Self = Self {
        models: true,
        results: 3,
        views: Views::Apart,
        reach: 8,
        bytes: 9,
        anti_dependences: true,
    };
    /// All but what an exhaustive search over scheduled ops does not see.
    pub const EXACT: Self = Self {
        views: Views::Free,
        ..Self::ALL
    };
    /// The setting of the papers: one result per op, nothing else.
    pub const PAPER: Self = Self {
        models: false,
        views: Views::Absent,
        anti_dependences: false,
        ..Self::ALL
    };
    /// Whatever a valid problem may have.
    pub const RULES: Self = Self {
        views: Views::Mixed,
        reach: usize::MAX,
        bytes: 50,
        ..Self::ALL
    };
}

/// What an op is, before its operands are chosen among the tensors that exist by then.
#[derive(Clone, Debug)]
struct Draw {
    op: ProblemOp,
    /// The op that never runs after this one.
    overwritten: Option<Index>,
    reads: Vec<Index>,
    /// Views are of one of the operands.
    results: Vec<Place<Index>>,
}

fn results(features: Features) -> BoxedStrategy<Vec<Place<Index>>> {
    let (bytes, most) = (0..features.bytes, features.results);
    if !features.models {
        return (1..features.bytes).prop_map(|bytes| vec![transient(bytes)]).boxed();
    }
    let outside = u32::from(features.views == Views::Mixed);
    let role = prop_oneof![
        12 => Just(StorageRole::Transient),
        2 => Just(StorageRole::LiveOut),
        outside => Just(StorageRole::External),
    ];
    let new = (role, bytes).prop_map(|(role, bytes)| Place::New(role, bytes));
    let view = any::<Index>().prop_map(Place::View);
    match features.views {
        Views::Absent => prop::collection::vec(new, 1..=most).boxed(),
        Views::Free | Views::Apart => {
            prop_oneof![5 => prop::collection::vec(new, 1..=most), 1 => view.prop_map(|view| vec![view])].boxed()
        }
        Views::Mixed => prop::collection::vec(prop_oneof![2 => new, 1 => view], 1..=most).boxed(),
    }
}

fn draw(features: Features) -> impl Strategy<Value = Draw> {
    let workspace = prop_oneof![3 => Just(0), u32::from(features.models) => 0..features.bytes];
    let recomputable = prop::bool::weighted(if features.models { 0.85 } else { 1.0 });
    let fewest = usize::from(features.views != Views::Mixed);
    let reads = prop::collection::vec(any::<Index>(), fewest..4);
    let op = (0u64..20, 0u64..20, workspace, recomputable);
    let overwritten = prop::option::weighted(0.2, any::<Index>());
    (op, reads, results(features), overwritten).prop_map(
        move |((duration, energy_pj, workspace, recomputable), reads, results, overwritten)| {
            let is_free = features.views == Views::Free && matches!(results[..], [Place::View(_)]);
            let op = ProblemOp {
                energy_pj,
                workspace: if is_free { 0 } else { workspace },
                recomputable: is_free || recomputable,
                ..step("", if is_free { 0 } else { duration }, Vec::new())
            };
            Draw {
                op,
                overwritten,
                reads,
                results,
            }
        },
    )
}

/// Valid problems in fixed order, without a budget.
pub fn problems(ops: impl Into<SizeRange>, features: Features) -> impl Strategy<Value = Problem> {
    prop::collection::vec(draw(features), ops).prop_map(move |draws| build(draws, features))
}

fn build(draws: Vec<Draw>, features: Features) -> Problem {
    let mut net = Net::new().with(|problem| problem.order = OrderMode::Fixed);
    if features.models {
        net = net.input("input");
    }
    let mut bindable: Vec<OpId> = Vec::new();
    for (number, draw) in draws.into_iter().enumerate() {
        // Recent tensors are read more often, so that chains arise.
        let count = net.0.tensors.len();
        let near = |index: &Index| TensorId::new(count - 1 - index.index(count.min(features.reach)));
        let mut reads: Vec<TensorId> = draw.reads.iter().filter(|_| count > 0).map(near).collect();
        reads.sort_unstable();
        reads.dedup();
        let place = |place: Place<Index>| match place {
            Place::View(_) if reads.is_empty() => transient(features.bytes),
            Place::View(base) => Place::View(reads[base.index(reads.len())]),
            Place::New(role, bytes) => Place::New(role, bytes),
        };
        let results: Vec<Place<TensorId>> = draw.results.into_iter().map(place).collect();
        if let (Views::Free, [Place::View(base)]) = (features.views, &results[..]) {
            reads = vec![*base];
        }
        let name = format!("op{number}");
        let is_view = matches!(results[..], [Place::View(_)]);
        let after = net.add(ProblemOp { name, reads, ..draw.op }, results);
        // Views that have a part in an anti-dependence are not free any more.
        if !features.anti_dependences || features.views == Views::Free && is_view {
            continue;
        }
        if let Some(index) = draw.overwritten.filter(|_| !bindable.is_empty()) {
            let before = bindable[index.index(bindable.len())];
            net.0.anti_dependences.push(AntiDependence { before, after });
        }
        bindable.push(after);
    }
    net.done()
}

/// Problems with a budget between what one op needs and the peak of the reference order.
pub fn budgeted(ops: impl Into<SizeRange>, features: Features) -> impl Strategy<Value = Problem> {
    (problems(ops, features), 0u64..100).prop_map(|(problem, hundredths)| with_budget(problem, hundredths))
}

/// The same problems, each in fixed or in free order.
pub fn in_either_order(problems: impl Strategy<Value = Problem>) -> impl Strategy<Value = Problem> {
    (problems, any::<bool>()).prop_map(|(problem, free)| if free { in_free_order(problem) } else { problem })
}

/// Second memories about as expensive as the runs of the problems; a byte takes up to some nanoseconds, not always a whole number of them.
pub fn second_memory(features: Features) -> impl Strategy<Value = Paging> {
    let speed = prop_oneof![Just(1_000_000_000u64), 100_000_000u64..4_000_000_000];
    let way = (0u64..4, speed, 0u64..4, 0u64..3);
    let way = way.prop_map(|(latency_ns, bytes_per_s, energy_pj, energy_pj_per_byte)| Transfer {
        latency_ns,
        bytes_per_s,
        energy_pj,
        energy_pj_per_byte,
    });
    let mode = prop_oneof![Just(PagingMode::Sync), Just(PagingMode::Dma)];
    let capacity = prop::option::weighted(0.3, 0..2 * features.bytes);
    (mode, capacity, way.clone(), way).prop_map(|(mode, capacity, page_out, page_in)| Paging {
        mode,
        capacity,
        page_out,
        page_in,
    })
}
