//! Reading both dialects, and rejecting what is not a graph.

use remat_nodelink::{NodeLinkError, NodeLinkGraph, is_node_link, read};

/// The graph and its times as a person reads them.
fn shown(read: &NodeLinkGraph) -> String {
    format!("{}durations {:?}\n", read.graph, read.durations.raw)
}

fn error(text: &str) -> String {
    read(text.as_bytes()).expect_err("the text is no graph").to_string()
}

#[test]
fn a_network_keeps_its_names_and_marks_its_backward_pass() {
    let text = r#"{"directed": true, "multigraph": false, "graph": {"name": "net"}, "nodes": [
        {"name": "conv", "backward": false, "cost_cpu": 13985906688000, "cost_ram": 2071986176, "id": 0},
        {"name": "loss", "backward": false, "cost_cpu": 0, "cost_ram": 4.0, "id": 1},
        {"name": "conv_backward", "backward": true, "cost_cpu": 7, "cost_ram": 12, "id": 2}],
        "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 0, "target": 2}]}"#;
    assert!(is_node_link(text.as_bytes()));
    let graph = read(text.as_bytes()).unwrap();
    assert_eq!(graph.graph.validate(), Ok(()));
    insta::assert_snapshot!(shown(&graph), @r#"
    graph "net" {
      %conv : u8[2071986176] = compute @conv node() source 0
      %loss : u8[4] = compute @loss node(%conv) source 1
      %conv_backward : u8[12] = compute @conv_backward node(%loss, %conv) {backward = 1} source 2
    }
    durations [13985906688000, 0, 7]
    "#);
}

#[test]
fn a_random_graph_comes_in_the_order_it_gives() {
    let text = r#"{"directed": true, "multigraph": false, "graph": {"name": "rl", "pos": {"0": [0, 0]}, "order": [0, 3, 1, 2]},
        "nodes": [{"out_cost": 790, "param_cost": 0, "duration": 1, "name": 0}, {"out_cost": 20, "duration": 2, "name": 1},
        {"out_cost": 30, "duration": 3, "name": 2}, {"out_cost": 40, "duration": 4, "name": 3}],
        "edges": [{"0": 0, "1": 1}, {"0": 0, "1": 3}, {"0": 3, "1": 2}, {"0": 1, "1": 2}, {"0": 3, "1": 2}]}"#;
    insta::assert_snapshot!(shown(&read(text.as_bytes()).unwrap()), @r#"
    graph "rl" {
      %0 : u8[790] = compute @0 node() source 0
      %3 : u8[40] = compute @3 node(%0) source 3
      %1 : u8[20] = compute @1 node(%0) source 1
      %2 : u8[30] = compute @2 node(%3, %1) source 2
    }
    durations [1, 4, 2, 3]
    "#);
}

#[test]
fn without_an_order_nodes_come_first_in_first_out() {
    let text = r#"{"nodes": [{"id": "z", "out_cost": 1, "duration": 1}, {"id": "a", "out_cost": 1, "duration": 1},
        {"id": "m", "out_cost": 1, "duration": 1}, {"id": "b", "out_cost": 1, "duration": 1}],
        "links": [{"source": "m", "target": "z"}, {"source": "a", "target": "z"}, {"source": "a", "target": "b"}]}"#;
    let graph = read(text.as_bytes()).unwrap().graph;
    let names: Vec<&str> = graph.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["a", "m", "b", "z"]);
}

#[test]
fn ids_name_the_nodes_whose_names_are_shared_and_all_nodes_where_that_confuses() {
    let names = |nodes: &[(&str, &str)]| -> Result<Vec<String>, NodeLinkError> {
        let node =
            |(id, name): &(&str, &str)| format!(r#"{{"id": {id}, "name": {name}, "out_cost": 1, "duration": 1}}"#);
        let nodes: Vec<String> = nodes.iter().map(node).collect();
        let text = format!(r#"{{"nodes": [{}], "links": []}}"#, nodes.join(", "));
        Ok(read(text.as_bytes())?
            .graph
            .ops
            .iter()
            .map(|op| op.name.clone())
            .collect())
    };
    let shared = names(&[("0", r#""relu""#), ("1", r#""relu""#), ("2", r#""conv""#), ("3", "8")]);
    assert_eq!(shared.unwrap(), ["0", "1", "conv", "3"]);
    let confusing = names(&[("0", r#""relu""#), ("1", r#""relu""#), ("2", r#""1""#)]);
    assert_eq!(confusing.unwrap(), ["0", "1", "2"]);
    let hopeless = names(&[("1", r#""relu""#), (r#""1""#, r#""relu""#)]).unwrap_err();
    insta::assert_snapshot!(hopeless.to_string(), @"two nodes are called `1`: once as a number, once as a string");
}

#[test]
fn numbers_that_are_not_whole_or_do_not_fit_are_rejected_with_the_node() {
    let with = |size: &str, time: &str| {
        error(&format!(
            r#"{{"nodes": [{{"id": 5, "name": "conv", {size} {time} "x": 0}}], "links": []}}"#
        ))
    };
    insta::assert_snapshot!(with(r#""cost_ram": -1,"#, r#""cost_cpu": 1,"#), @"`cost_ram` of node `conv` is -1, expected a whole number from 0 to 2^64 - 1");
    insta::assert_snapshot!(with(r#""cost_ram": 1,"#, r#""cost_cpu": 0.5,"#), @"`cost_cpu` of node `conv` is 0.5, expected a whole number from 0 to 2^64 - 1");
    insta::assert_snapshot!(with(r#""cost_ram": 1,"#, r#""duration": 18446744073709551616,"#), @"`duration` of node `conv` is 1.8446744073709552e+19, expected a whole number from 0 to 2^64 - 1");
    insta::assert_snapshot!(with(r#""out_cost": 2305843009213693952,"#, r#""duration": 1,"#), @"`out_cost` of node `conv` is 2305843009213693952 bytes, the limit is 2305843009213693951 bytes");
    insta::assert_snapshot!(with(r#""out_cost": "1","#, r#""duration": 1,"#), @r#"`out_cost` of node `conv` is "1", expected a whole number from 0 to 2^64 - 1"#);
    insta::assert_snapshot!(with("", r#""duration": 1,"#), @"node `conv` has neither `out_cost` nor `cost_ram`");
    insta::assert_snapshot!(with(r#""out_cost": 1,"#, ""), @"node `conv` has neither `duration` nor `cost_cpu`");
}

#[test]
fn broken_nodes_edges_and_orders_are_rejected_by_name() {
    let node = |id: &str| format!(r#"{{"id": {id}, "out_cost": 1, "duration": 1}}"#);
    let graph = |ids: &[&str], edges: &[(&str, &str)], order: &str| {
        let nodes: Vec<String> = ids.iter().map(|id| node(id)).collect();
        let edge = |(from, to): &(&str, &str)| format!(r#"{{"source": {from}, "target": {to}}}"#);
        let links: Vec<String> = edges.iter().map(edge).collect();
        let (nodes, links) = (nodes.join(", "), links.join(", "));
        error(&format!(
            r#"{{"graph": {{"order": {order}}}, "nodes": [{nodes}], "links": [{links}]}}"#
        ))
    };
    insta::assert_snapshot!(graph(&["1", "1.0"], &[], "null"), @"node id `1` is given twice");
    insta::assert_snapshot!(graph(&["1.5"], &[], "null"), @"node 0 of the list: id `1.5` is neither an integer nor a string");
    insta::assert_snapshot!(graph(&["null"], &[], "null"), @"node 0 of the list has neither `id` nor `name`");
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "\"1\"")], "null"), @r#"edge 0 of the list joins `0` and `"1"`, but there is no node `"1"`"#);
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "null")], "null"), @"edge 0 of the list has neither `target` nor `1`");
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "[1]")], "null"), @"edge 0 of the list: id `[1]` is neither an integer nor a string");
    insta::assert_snapshot!(graph(&["0", "1"], &[("1", "1")], "null"), @"node `1` has an edge to itself");
    insta::assert_snapshot!(
        graph(&["0", "1", "2", "3"], &[("0", "1"), ("1", "2"), ("2", "1"), ("2", "3")], "[0, 1, 2, 3]"),
        @"the graph has a cycle of 2 nodes: `2` -> `1` -> `2`"
    );
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "1")], "[0, 2]"), @"position 1 of `graph.order` names `2`, which is not a node");
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "1")], "[0, 0]"), @"`graph.order` names node `0` twice");
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "1")], "[0]"), @"`graph.order` names 1 of 2 nodes: node `1` is left out");
    insta::assert_snapshot!(graph(&["0", "1"], &[("0", "1")], "[1, 0]"), @"`graph.order` runs node `1` at position 0 before `0` at position 1, which it reads");
}

#[test]
fn a_long_cycle_is_counted_and_named_in_part() {
    let nodes: Vec<String> = (0..20)
        .map(|i| format!(r#"{{"id": {i}, "out_cost": 1, "duration": 1}}"#))
        .collect();
    let links: Vec<String> = (0..20)
        .map(|i| format!(r#"{{"source": {i}, "target": {}}}"#, (i + 1) % 20))
        .collect();
    let text = format!(r#"{{"nodes": [{}], "links": [{}]}}"#, nodes.join(","), links.join(","));
    insta::assert_snapshot!(error(&text), @"the graph has a cycle of 20 nodes: `1` -> `2` -> `3` -> `4` -> `5` -> `6` -> `7` -> `8` -> …");
}

#[test]
fn what_is_not_a_directed_node_link_graph_is_rejected() {
    assert!(matches!(
        read(br#"{"directed": false, "nodes": [], "links": []}"#),
        Err(NodeLinkError::Undirected)
    ));
    for text in [
        "",
        "[]",
        "{}",
        r#"{"nodes": [1], "links": []}"#,
        r#"{"nodes": [], "links": []"#,
    ] {
        assert!(matches!(read(text.as_bytes()), Err(NodeLinkError::Json(_))), "{text}");
    }
    for text in [
        "",
        "[]",
        "{}",
        r#"[{"nodes": [], "links": []}]"#,
        r#"{"nodes": []}"#,
        "\u{8}\u{9}:\"nodes\"\"links\"",
    ] {
        assert!(!is_node_link(text.as_bytes()), "{text}");
    }
}

#[test]
fn an_empty_graph_is_a_graph() {
    let graph = read(br#" {"nodes": [], "links": []}"#).unwrap();
    assert!(graph.graph.ops.is_empty() && graph.durations.is_empty());
}

#[test]
fn anti_dependences_are_pairs_of_ids() {
    let text = |pairs: &str| {
        format!(
            r#"{{"graph": {{"order": ["w", "a", "b"], "anti_dependences": {pairs}}}, "links": [],
            "nodes": [{{"id": "a", "out_cost": 1, "duration": 1}}, {{"id": "b", "out_cost": 1, "duration": 1}},
            {{"id": "w", "out_cost": 1, "duration": 1}}]}}"#
        )
    };
    let read = |pairs: &str| read(text(pairs).as_bytes());
    let pairs = read(r#"[["w", "b"], ["a", "b"]]"#).unwrap().anti_dependences;
    let ids: Vec<_> = pairs.iter().map(|pair| pair.map(remat_ir::OpId::index)).collect();
    assert_eq!(ids, [[0, 2], [1, 2]]);
    insta::assert_snapshot!(read(r#"[["w", "z"]]"#).unwrap_err(), @r#"anti-dependence 0 names `"z"`, which is not a node"#);
    assert!(read(r#"[["w"]]"#).is_err());
}
