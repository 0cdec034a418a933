//! One small program per rule.

use remat_ir::{Dim, ElementType, GraphBuilder, OpSpec, Placement, ResultSpec, ValueType};
use remat_onnxruntime_sim::{
    Allocation, ArenaSettings, Growth, Home, Node, NodeIndex, Program, Settings, Shape, Value, ValueClass, ValueId,
    ValueKind, allocate, arena, default_order, heap, heap_bytes, priority_order,
};

/// Builds a program from lines `op: operands -> results`; values get the shape of `sizes` or `[1000]`.
fn program(lines: &[&str], outputs: &[&str]) -> Program {
    let mut program = Program::default();
    for line in lines {
        let (op, rest) = line.split_once(": ").unwrap();
        let (operands, results) = rest.split_once(" -> ").unwrap();
        let inputs = names(operands)
            .map(|name| Some(find(&mut program, name, ValueClass::Input)))
            .collect();
        let made = names(results)
            .map(|name| Some(find(&mut program, name, ValueClass::Intermediate)))
            .collect();
        program.nodes.push(Node {
            name: (*line).to_owned(),
            domain: String::new(),
            op_type: op.to_owned(),
            inputs,
            captures: Vec::new(),
            outputs: made,
            workspace: 0,
            control: None,
        });
    }
    for &name in outputs {
        let output = id(&program, name);
        program.outputs.push(output);
    }
    program
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|name| !name.is_empty())
}

fn find(program: &mut Program, name: &str, class: ValueClass) -> ValueId {
    if let Some((found, _)) = program.values.iter_enumerated().find(|(_, value)| value.name == name) {
        return found;
    }
    program.values.push_and_get_key(Value {
        name: name.to_owned(),
        class,
        kind: ValueKind::Tensor,
        element: Some(ElementType::Float32),
        bytes: Some(4000),
        visible: Shape::Known(vec![Dim::Known(1000)]),
    })
}

fn id(program: &Program, name: &str) -> ValueId {
    program
        .values
        .iter_enumerated()
        .find(|(_, value)| value.name == name)
        .unwrap()
        .0
}

fn in_file_order(program: &Program) -> Allocation {
    let order: Vec<NodeIndex> = program.nodes.keys().collect();
    allocate(program, &order, &Settings::default())
}

fn home(program: &Program, name: &str) -> Home {
    in_file_order(program).home[id(program, name)]
}

/// `a` is dead when `c` is made.
const CHAIN: [&str; 4] = ["Add: x x -> a", "Add: a a -> b", "Add: b b -> c", "Add: c c -> y"];

#[test]
fn a_dead_buffer_of_the_same_shape_is_taken_over() {
    let program = program(&CHAIN, &["y"]);
    assert_eq!(home(&program, "a"), Home::Own);
    assert_eq!(home(&program, "b"), Home::Own);
    assert_eq!(home(&program, "c"), Home::Reuse(id(&program, "a")));
    assert_eq!(home(&program, "y"), Home::Output);
    assert_eq!(home(&program, "x"), Home::External);
    let order: Vec<NodeIndex> = program.nodes.keys().collect();
    let off = allocate(&program, &order, &Settings { reuse: false });
    assert_eq!(off.home[id(&program, "c")], Home::Own);
}

#[test]
fn the_latest_dead_buffer_is_taken_first() {
    let lines = [
        "Add: x x -> a",
        "Add: x x -> b",
        "Add: b x -> t",
        "Add: a t -> u",
        "Add: u u -> v",
        "Add: v v -> y",
    ];
    let program = program(&lines, &["y"]);
    // `u` finds `b`; when `v` is made, `a` and then `t` have died.
    assert_eq!(home(&program, "u"), Home::Reuse(id(&program, "b")));
    assert_eq!(home(&program, "v"), Home::Reuse(id(&program, "t")));
}

#[test]
fn only_what_the_runtime_knows_to_be_equal_is_taken_over() {
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut program = program(&CHAIN, &["y"]);
        let value = id(&program, name);
        change(&mut program.values[value]);
        home(&program, "c")
    };
    let reused = Home::Reuse(ValueId::new(1));
    assert_eq!(with("a", &|_| {}), reused);
    assert_eq!(with("a", &|v| v.visible = Shape::Hidden), Home::Own);
    assert_eq!(with("c", &|v| v.visible = Shape::Known(vec![Dim::Unknown])), Home::Own);
    assert_eq!(
        with("c", &|v| v.visible = Shape::Known(vec![Dim::Known(999)])),
        Home::Own
    );
    assert_eq!(with("c", &|v| v.element = Some(ElementType::Int64)), Home::Own);
    // Elements of one size will do.
    assert_eq!(with("c", &|v| v.element = Some(ElementType::Int32)), reused);
    assert_eq!(with("a", &|v| v.kind = ValueKind::Optional), Home::Own);
}

#[test]
fn equal_names_of_dimensions_match_and_nameless_ones_do_not() {
    let named = |name: &str| {
        let mut program = program(&CHAIN, &["y"]);
        for value in &mut program.values {
            value.visible = Shape::Known(vec![Dim::Symbol(name.to_owned())]);
        }
        home(&program, "c")
    };
    assert_eq!(named("N"), Home::Reuse(ValueId::new(1)));
    assert_eq!(named(""), Home::Own);
}

#[test]
fn scalars_and_strings_take_nothing_over() {
    let mut scalars = program(&CHAIN, &["y"]);
    for value in &mut scalars.values {
        value.visible = Shape::Known(Vec::new());
    }
    assert_eq!(home(&scalars, "c"), Home::Own);
    let mut strings = program(&CHAIN, &["y"]);
    for value in &mut strings.values {
        value.element = Some(ElementType::String);
    }
    assert_eq!(home(&strings, "c"), Home::Own);
}

#[test]
fn an_operand_is_overwritten_by_its_last_reader_only() {
    let last = program(&["Add: x x -> a", "Relu: a -> b", "Add: b b -> y"], &["y"]);
    assert_eq!(home(&last, "b"), Home::InPlace(id(&last, "a")));
    let read_later = program(&["Add: x x -> a", "Relu: a -> b", "Add: a b -> y"], &["y"]);
    assert_eq!(home(&read_later, "b"), Home::Own);
    let of_the_caller = program(&["Relu: x -> b", "Add: b b -> y"], &["y"]);
    assert_eq!(home(&of_the_caller, "b"), Home::Own);
    let not_this_op = program(&["Add: x x -> a", "Exp: a -> b", "Add: b b -> y"], &["y"]);
    assert_eq!(home(&not_this_op, "b"), Home::Own);
}

#[test]
fn a_view_keeps_what_it_looks_at_and_a_graph_output_is_never_one() {
    let lines = [
        "Add: x x -> a",
        "Reshape: a -> v",
        "Add: x x -> b",
        "Add: b b -> c",
        "Add: c v -> y",
    ];
    let program = program(&lines, &["y"]);
    assert_eq!(home(&program, "v"), Home::Alias(id(&program, "a")));
    let allocation = in_file_order(&program);
    assert!(
        program
            .values
            .keys()
            .all(|v| allocation.home[v] != Home::Reuse(id(&program, "a")))
    );
    let returned = self::program(&["Add: x x -> a", "Reshape: a -> y"], &["y"]);
    assert_eq!(home(&returned, "y"), Home::Output);
}

#[test]
fn a_result_that_nobody_reads_stays_and_an_empty_one_takes_nothing() {
    let mut program = program(&["Add: x x -> a", "Add: x x -> b", "Add: b b -> y"], &["y"]);
    let order: Vec<NodeIndex> = program.nodes.keys().collect();
    let after = |program: &Program| {
        let allocation = allocate(program, &order, &Settings { reuse: false });
        *heap(program, &order, &allocation).after.last().unwrap()
    };
    let all = after(&program);
    let unread = id(&program, "a");
    program.values[unread].bytes = Some(0);
    assert_eq!(all - after(&program), heap_bytes(4000));
    program.values[unread].bytes = None;
    let allocation = allocate(&program, &order, &Settings::default());
    assert_eq!(heap(&program, &order, &allocation).unsized_values, [unread]);
}

#[test]
fn the_peak_names_what_is_live_and_where() {
    let mut program = program(&["Add: x x -> a", "Add: a x -> b", "Add: b b -> y"], &["y"]);
    program.nodes[NodeIndex::new(1)].workspace = 100_000;
    let order: Vec<NodeIndex> = program.nodes.keys().collect();
    let trace = heap(&program, &order, &in_file_order(&program));
    assert_eq!(trace.peak_at, Some(1));
    assert_eq!(trace.live_at_peak, [id(&program, "a"), id(&program, "b")]);
    assert_eq!(trace.peak, trace.during[1]);
    assert!(trace.during[1] >= trace.during[0] + 100_000);
}

#[test]
fn orders_differ_in_where_they_start() {
    // Two independent chains, the second one behind the first in the file.
    let program = program(
        &[
            "Add: x x -> a",
            "Add: a a -> y",
            "Add: x x -> b",
            "Add: b b -> z",
            "Shape: z -> s",
        ],
        &["y", "s"],
    );
    let places = |order: Vec<NodeIndex>| order.into_iter().map(NodeIndex::index).collect::<Vec<_>>();
    assert_eq!(places(default_order(&program)), [2, 3, 4, 0, 1]);
    assert_eq!(places(priority_order(&program)), [0, 1, 2, 3, 4]);
    let early = self::program(&["Add: x x -> a", "Add: a a -> y", "Shape: x -> s"], &["y", "s"]);
    assert_eq!(places(priority_order(&early)), [2, 0, 1]);
}

#[test]
fn an_empty_program_takes_nothing() {
    let program = Program::default();
    let allocation = allocate(&program, &[], &Settings::default());
    let trace = heap(&program, &[], &allocation);
    assert_eq!((trace.peak, trace.peak_at), (0, None));
    assert_eq!(arena(&program, &[], &allocation, &ArenaSettings::default()).steady, 0);
}

#[test]
fn the_pattern_is_a_second_copy_unless_the_arena_has_room() {
    let program = program(&CHAIN, &["y"]);
    let order: Vec<NodeIndex> = program.nodes.keys().collect();
    let allocation = allocate(&program, &order, &Settings::default());
    let settings = ArenaSettings {
        growth: Growth::SameAsRequested,
        ..ArenaSettings::default()
    };
    let tight = arena(&program, &order, &allocation, &settings);
    assert_eq!(tight.pattern_block, 2 * 4032);
    assert!(tight.steady > tight.first_run);
    let off = arena(
        &program,
        &order,
        &allocation,
        &ArenaSettings {
            pattern: false,
            ..settings
        },
    );
    assert_eq!((off.first_run, off.pattern_block), (tight.first_run, 0));
    assert_eq!(off.steady, off.first_run);
    let roomy = arena(&program, &order, &allocation, &ArenaSettings::default());
    assert_eq!(roomy.steady, roomy.first_run);
}

#[test]
fn graphs_lose_their_constants_and_deallocs_on_the_way() {
    let ty = || ValueType::tensor(ElementType::Float32, &[1000]);
    let mut builder = GraphBuilder::new("g");
    let x = builder.input("x", ty()).unwrap();
    let mut constant = OpSpec::new("constant", "Constant");
    constant.results.push(Some(ResultSpec {
        name: "c".into(),
        ty: ty(),
        placement: Placement::Constant,
    }));
    let (_, made) = builder.op(constant).unwrap();
    let c = made[0].unwrap();
    let (_, made) = builder
        .op(OpSpec::new("view", "Reshape").reads(c).views("v", ty(), c))
        .unwrap();
    let v = made[0].unwrap();
    let (_, made) = builder
        .op(OpSpec::new("add", "Add").reads(x).reads(v).defines("a", ty()))
        .unwrap();
    let a = made[0].unwrap();
    let (_, made) = builder
        .op(OpSpec::new("neg", "Neg").reads(a).defines("y", ty()))
        .unwrap();
    builder.dealloc(a);
    builder.output(made[0].unwrap());
    let program = Program::from_graph(&builder.finish(), &|_, op| u64::try_from(op.index()).unwrap());
    let nodes: Vec<_> = program.nodes.iter().map(|n| (n.name.as_str(), n.workspace)).collect();
    assert_eq!(nodes, [("view", 1), ("add", 2), ("neg", 3)]);
    assert_eq!(program.values[id(&program, "c")].class, ValueClass::Initializer);
    // A view of a weight is made by the run and lives in memory of the session.
    assert_eq!(program.values[id(&program, "v")].class, ValueClass::Intermediate);
    let allocation = in_file_order(&program);
    assert_eq!(allocation.home[allocation.buffer[id(&program, "v")]], Home::External);
    assert_eq!(home(&program, "a"), Home::Own);
}

#[test]
fn a_kernel_may_ask_for_its_workspace_before_its_result() {
    const MIB: u64 = 1 << 20;
    let regions = |line: &str| {
        let mut program = program(&[line], &["y"]);
        let result = id(&program, "y");
        program.values[result].bytes = Some(4 * MIB);
        program.nodes[NodeIndex::from(0)].workspace = 1_200_000;
        let order: Vec<NodeIndex> = program.nodes.keys().collect();
        let trace = arena(&program, &order, &in_file_order(&program), &ArenaSettings::default());
        trace.first_run / MIB
    };
    // Two pieces in regions of 1 and 2 MiB, then the result in one of 4.
    assert_eq!(regions("Where: c x x -> y"), 7);
    // The result fills the first region, of 4 MiB, and its workspace needs another one.
    assert_eq!(regions("Conv: x w -> y"), 8);
}
