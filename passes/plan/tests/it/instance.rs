//! What the flattened problem says of sizes, workspace, views and dependences.

use remat_plan::{Instance, NodeId, Problem, ProblemOp, StorageRole, Structure};

use remat_testing::net::{Net, Place, kept, op, storage, transient};

fn instance(problem: &Problem) -> Instance {
    Instance::of(problem, &Structure::of(problem))
}

/// The op of this name.
fn of<'a>(problem: &'a mut Problem, name: &str) -> &'a mut ProblemOp {
    let op = op(problem, name);
    &mut problem.ops[op]
}

/// The names of nodes.
fn names<'a>(problem: &'a Problem, instance: &Instance, nodes: &[NodeId]) -> Vec<&'a str> {
    let name = |&node: &NodeId| problem.ops[instance.op(node)].name.as_str();
    nodes.iter().map(name).collect()
}

/// `a` makes a value, an empty result and a graph output; a view of the value has a reader, and so has one of the graph output.
fn mixed() -> Problem {
    Net::new()
        .input("x")
        .op(
            "a",
            10,
            &["x"],
            &[("t", transient(100)), ("none", transient(0)), ("y", kept(30))],
        )
        .op("v", 2, &["t"], &[("tv", Place::View("t"))])
        .op("w", 3, &["y"], &[("yv", Place::View("y"))])
        .op(
            "b",
            7,
            &["tv", "none"],
            &[("s", transient(50)), ("outside", Place::New(StorageRole::External, 9))],
        )
        .op("c", 1, &["yv", "s"], &[("z", kept(5))])
        .with(|problem| of(problem, "v").workspace = 80)
        .with(|problem| of(problem, "w").workspace = 4)
        .done()
}

#[test]
fn values_are_what_takes_memory_and_may_be_dropped() {
    let problem = mixed();
    let instance = instance(&problem);
    assert_eq!(
        names(&problem, &instance, &instance.nodes().collect::<Vec<_>>()),
        ["a", "b", "c"]
    );
    let values: Vec<_> = instance
        .all_values()
        .map(|value| (instance.storage(value), instance.bytes(value)))
        .collect();
    assert_eq!(values, [(storage(&problem, "t"), 100), (storage(&problem, "s"), 50)]);
    let [a, b, c] = [0, 1, 2].map(NodeId::new);
    assert_eq!([a, b, c].map(|node| instance.values(node).len()), [1, 1, 0]);
    assert_eq!([a, b, c].map(|node| instance.kept(node)), [30, 0, 5]);
    let t = instance.values(a).next().unwrap();
    assert_eq!(
        (instance.producer(t), instance.rank(t), instance.users(t)),
        (a, 0, &[b][..])
    );
}

#[test]
fn workspace_of_a_view_counts_beyond_the_results_of_the_op_behind_it() {
    let problem = mixed();
    let instance = instance(&problem);
    // The view needs 80 before `b`, which makes 50; the other one 4 before `c`, which makes 5.
    let workspace: Vec<u64> = instance.nodes().map(|node| instance.workspace(node)).collect();
    assert_eq!(workspace, [0, 30, 0]);
    let own = Net(problem).with(|problem| of(problem, "b").workspace = 31).done();
    assert_eq!(Instance::of(&own, &Structure::of(&own)).workspace(NodeId::new(1)), 31);
}

#[test]
fn views_join_what_they_look_at_to_their_readers_and_add_to_its_time() {
    let problem = mixed();
    let instance = instance(&problem);
    let [a, b, c] = [0, 1, 2].map(NodeId::new);
    assert_eq!([a, b, c].map(|node| instance.views_duration(node)), [5, 0, 0]);
    assert_eq!(instance.all_views_duration(), 5);
    assert_eq!(names(&problem, &instance, instance.predecessors(c)), ["a", "b"]);
    assert_eq!(names(&problem, &instance, instance.successors(a)), ["b", "c"]);
    // A graph output has to be there, but it is no value.
    assert_eq!(
        instance
            .needs(c)
            .iter()
            .map(|&value| instance.producer(value))
            .collect::<Vec<_>>(),
        [b]
    );
    assert_eq!(instance.node_of(op(&problem, "v")), None);
    assert_eq!(instance.node_of(op(&problem, "c")), Some(c));
}

#[test]
fn another_order_numbers_the_nodes_anew() {
    let problem = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(1))])
        .op("b", 2, &["x"], &[("tb", transient(2))])
        .op("c", 3, &["ta", "tb"], &[("tc", transient(3))])
        .with(|problem| of(problem, "a").recomputable = false)
        .with(|problem| problem.max_computes = Some(4))
        .done();
    let order = ["b", "a", "c"].map(|name| op(&problem, name)).to_vec();
    let instance = Instance::in_order(&problem, &Structure::of(&problem), order);
    let each =
        |figure: fn(&Instance, NodeId) -> u64| instance.nodes().map(|node| figure(&instance, node)).collect::<Vec<_>>();
    assert_eq!(each(Instance::duration), [2, 1, 3]);
    assert_eq!(each(|instance, node| instance.max_computes(node).into()), [4, 1, 4]);
    let c = instance.node_of(op(&problem, "c")).unwrap();
    assert_eq!(names(&problem, &instance, instance.predecessors(c)), ["b", "a"]);
    // By storage.
    let needed: Vec<u64> = instance.needs(c).iter().map(|&value| instance.bytes(value)).collect();
    assert_eq!(needed, [1, 2]);
}

#[test]
fn nodes_of_anti_dependences_stand_in_order_and_their_views_are_scheduled() {
    let net = || {
        Net::new()
            .input("w")
            .op("read", 1, &["w"], &[("a", transient(1))])
            .op("view", 1, &["a"], &[("v", Place::View("a"))])
            .op("grad", 2, &["v"], &[("g", transient(2))])
            .op(
                "update",
                3,
                &["w", "g"],
                &[("none", Place::New(StorageRole::External, 0))],
            )
            .op("last", 1, &["a"], &[("y", kept(1))])
    };
    let problem = net().never_after("read", "update").done();
    let instance = instance(&problem);
    let [read, grad, update, last] = ["read", "grad", "update", "last"].map(|name| op(&problem, name));
    let [read, grad, update, last] = [read, grad, update, last].map(|op| instance.node_of(op).unwrap());
    assert_eq!(instance.anti_successors(read), [update]);
    assert_eq!(instance.anti_predecessors(update), [read]);
    assert_eq!(instance.predecessors(update), [read, grad]);
    assert_eq!(instance.successors(read), [grad, update, last]);
    assert!(
        instance.may_run_after(read, |node| node != update) && !instance.may_run_after(read, |node| node == update)
    );
    assert_eq!(
        [read, grad].map(|node| instance.max_computes_anywhere(node)),
        [1, u32::MAX]
    );
    assert_eq!(instance.node_of(op(&problem, "view")), None);
    let view = net().never_after("view", "update").done();
    let instance = Instance::of(&view, &Structure::of(&view));
    assert!(instance.node_of(op(&view, "view")).is_some());
}
