//! The simulation against itself, on random graphs.

use proptest::prelude::*;
use remat_ir::{Dim, ElementType};
use remat_onnxruntime_sim::{
    Home, Node, NodeIndex, Program, Settings, Shape, Value, ValueClass, ValueId, ValueKind, allocate, default_order,
    heap, heap_bytes, priority_order, requests,
};

const OPS: [&str; 6] = ["Add", "Relu", "Reshape", "Shape", "Softmax", "Mul"];

fn value(name: String, class: ValueClass, size: u64) -> Value {
    Value {
        name,
        class,
        kind: ValueKind::Tensor,
        element: Some(ElementType::Float32),
        bytes: Some(4 * 1000 * size),
        visible: Shape::Known(vec![Dim::Known(1000 * size)]),
    }
}

/// Random programs of one graph input and up to 24 nodes whose file order is a random permutation of a topological one.
fn programs() -> impl Strategy<Value = Program> {
    let node = (
        0..OPS.len(),
        prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        1..4_u64,
        1..3_usize,
    );
    let nodes = prop::collection::vec(node, 1..24);
    (nodes, any::<prop::sample::Index>(), any::<u64>()).prop_map(|(nodes, output, seed)| {
        let mut program = Program::default();
        program.values.push(value("x".into(), ValueClass::Input, 2));
        let mut made = Vec::new();
        for (index, (op, reads, size, results)) in nodes.into_iter().enumerate() {
            let known = program.values.len();
            let inputs: Vec<_> = reads.iter().map(|r| Some(ValueId::new(r.index(known)))).collect();
            // A view is as large as what it looks at.
            let first = inputs
                .first()
                .copied()
                .flatten()
                .map_or(0, |v: ValueId| program.values[v].bytes.unwrap_or(0) / 4000);
            let (size, results) = if OPS[op] == "Reshape" {
                (first, 1)
            } else {
                (size, results)
            };
            let outputs = (0..results)
                .map(|r| {
                    let value = value(format!("v{index}_{r}"), ValueClass::Intermediate, size);
                    Some(program.values.push_and_get_key(value))
                })
                .collect();
            made.push(Node {
                name: format!("n{index}"),
                domain: String::new(),
                op_type: OPS[op].into(),
                inputs,
                captures: Vec::new(),
                outputs,
                workspace: 0,
                control: None,
            });
        }
        program.outputs = vec![ValueId::new(1 + output.index(program.values.len() - 1))];
        shuffle(&mut made, seed);
        program.nodes = made.into_iter().collect();
        program
    })
}

fn shuffle(nodes: &mut [Node], mut seed: u64) {
    for last in (1..nodes.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap() % (last + 1);
        nodes.swap(last, other);
    }
}

fn assert_topological(program: &Program, order: &[NodeIndex]) {
    let mut sorted: Vec<_> = order.to_vec();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(program.nodes.keys()), "each node once");
    let producers = program.producers();
    let mut done = vec![false; program.nodes.len()];
    for &node in order {
        for read in program.nodes[node].reads() {
            assert!(producers[read].is_none_or(|p| done[p.index()]), "reads come first");
        }
        done[node.index()] = true;
    }
}

/// Positions of creation and last read of each buffer under `order`; `None`: never read, or a graph output.
fn lives(program: &Program, order: &[NodeIndex], buffer: impl Fn(ValueId) -> ValueId) -> Vec<(usize, Option<usize>)> {
    let mut lives = vec![(usize::MAX, None); program.values.len()];
    for (position, &node) in order.iter().enumerate() {
        for value in program.nodes[node].results() {
            let life = &mut lives[buffer(value).index()];
            life.0 = life.0.min(position);
        }
        for value in program.nodes[node].reads() {
            lives[buffer(value).index()].1 = Some(position);
        }
    }
    for &output in &program.outputs {
        lives[buffer(output).index()].1 = None;
    }
    lives
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn orders_are_topological_and_hold_every_node_once(program in programs()) {
        assert_topological(&program, &default_order(&program));
        assert_topological(&program, &priority_order(&program));
    }

    #[test]
    fn a_sorted_file_keeps_its_order_by_priority(program in programs()) {
        let mut program = program;
        let order = priority_order(&program);
        program.nodes = order.iter().map(|&n| program.nodes[n].clone()).collect();
        prop_assert!(priority_order(&program).into_iter().eq(program.nodes.keys()));
    }

    #[test]
    fn reuse_never_shortens_the_life_of_a_buffer(program in programs()) {
        let order = default_order(&program);
        let without = allocate(&program, &order, &Settings { reuse: false });
        let with = allocate(&program, &order, &Settings { reuse: true });
        let short = lives(&program, &order, |v| without.buffer[v]);
        let long = lives(&program, &order, |v| with.buffer[v]);
        for value in program.values.keys().filter(|&v| with.home[v] == Home::Own && without.home[v] == Home::Own) {
            let (short, long) = (short[value.index()], long[value.index()]);
            prop_assert_eq!(short.0, long.0);
            prop_assert!(long.1.is_none() || short.1.is_some_and(|end| end <= long.1.unwrap()) || short.1.is_none());
        }
    }

    #[test]
    fn no_two_values_share_memory_while_both_are_needed(program in programs()) {
        let order = default_order(&program);
        let allocation = allocate(&program, &order, &Settings { reuse: true });
        let lives = lives(&program, &order, |v| v);
        for value in program.values.keys() {
            if let Home::Reuse(donor) = allocation.home[value] {
                // Everything that lived in the donor was read for the last time before this value appears.
                for other in program.values.keys().filter(|&o| allocation.buffer[o] == allocation.buffer[donor]) {
                    let (born, last) = lives[other.index()];
                    if born < lives[value.index()].0 {
                        prop_assert!(last.is_none_or(|last| last < lives[value.index()].0));
                    }
                }
            }
        }
    }

    #[test]
    fn the_heap_without_reuse_is_plain_liveness(program in programs()) {
        // No view and nothing overwritten: every value is a buffer of its own.
        let mut program = program;
        for node in &mut program.nodes {
            "Add".clone_into(&mut node.op_type);
        }
        let order = priority_order(&program);
        let allocation = allocate(&program, &order, &Settings { reuse: false });
        let trace = heap(&program, &order, &allocation);
        let lives = lives(&program, &order, |v| v);
        let plain = |position: usize| -> u64 {
            let held = program.values.iter_enumerated().filter(|(v, value)| {
                let (born, last) = lives[v.index()];
                value.class == ValueClass::Intermediate && born <= position && last.is_none_or(|last| last >= position)
            });
            held.map(|(_, value)| heap_bytes(value.bytes.unwrap())).sum()
        };
        for (position, &during) in trace.during.iter().enumerate() {
            // Tables and descriptors of tensors come on top: they are small beside 4 kB and more per tensor.
            let tables = 600 + 300 * u64::try_from(program.values.len()).unwrap();
            prop_assert!(plain(position) <= during && during <= plain(position) + tables);
        }
        prop_assert_eq!(trace.peak, trace.during.iter().copied().max().unwrap());
    }

    #[test]
    fn dynamic_shapes_are_never_reused(program in programs()) {
        let mut program = program;
        program.make_shapes_dynamic();
        let order = default_order(&program);
        let allocation = allocate(&program, &order, &Settings { reuse: true });
        prop_assert!(allocation.home.iter().all(|home| !matches!(home, Home::Reuse(_) | Home::InPlace(_))));
    }

    #[test]
    fn requests_are_made_one_at_a_time_and_only_outputs_outlive_the_run(program in programs(), input in 1..9_u64) {
        let order = default_order(&program);
        let allocation = allocate(&program, &order, &Settings::default());
        let found = requests(&program, &order, &allocation, &[1000 * input]);
        let mut times: Vec<u64> = found.buffers.iter().flat_map(|buffer| [Some(buffer.first), buffer.last]).flatten().collect();
        times.sort_unstable();
        prop_assert!(times.into_iter().eq(0..found.end));
        prop_assert!(found.buffers.iter().all(|buffer| buffer.last.is_none_or(|last| last > buffer.first)));
        let held: Vec<u64> = found.buffers.iter().filter(|buffer| buffer.last.is_none()).map(|buffer| buffer.bytes).collect();
        let outputs = program.outputs.iter().map(|&output| allocation.buffer[output]);
        let mut outputs: Vec<_> = outputs.filter(|&buffer| allocation.home[buffer] != Home::External).collect();
        outputs.dedup();
        let outputs: Vec<u64> = outputs.into_iter().filter_map(|output| program.values[output].bytes).collect();
        prop_assert_eq!(held, outputs);
        // The heap has them, too, and tables besides; inputs are the caller's there.
        let live = |time: u64| -> u64 {
            let is_live = |buffer: &&remat_onnxruntime_sim::BufferLife| buffer.first <= time && buffer.last.is_none_or(|last| time < last);
            found.buffers[1..].iter().filter(is_live).map(|buffer| heap_bytes(buffer.bytes)).sum()
        };
        let most = (0..found.end).map(live).max().unwrap_or(0);
        prop_assert!(most <= heap(&program, &order, &allocation).peak);
    }

}
