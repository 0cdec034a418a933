use super::*;

/// Two runs, the first one cold, with a loop of two rounds.
fn profile_text() -> String {
    let mut lines = vec![session("session_initialization", 0, 50)];
    for (start, factor) in [(100, 3), (200, 1)] {
        lines.extend([
            node("first", 0, start, 2 * factor),
            node("Mul_0", 0, start + 11, 1),
            session("SequentialExecutor::Execute", start + 10, 5),
            node("Mul_0", 0, start + 16, 1),
            session("SequentialExecutor::Execute", start + 16, 4),
            node("loop", 1, start + 9, 12 * factor),
            node("last", 2, start + 30, 0),
            session("SequentialExecutor::Execute", start, 40),
            session("model_run", start, 45 * factor),
        ]);
    }
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn session(name: &str, ts: u64, dur: u64) -> String {
    format!(
        r#"{{"cat" : "Session","pid" :1,"tid" :1,"dur" :{dur},"ts" :{ts},"ph" : "X","name" :"{name}","args" : {{}}}}"#
    )
}

fn node(name: &str, index: usize, ts: u64, dur: u64) -> String {
    format!(
        r#"{{"cat" : "Node","pid" :1,"tid" :1,"dur" :{dur},"ts" :{ts},"ph" : "X","name" :"{name}_kernel_time","args" : {{"op_name" : "X","provider" : "CPUExecutionProvider","node_index" : "{index}","output_size" : "24","output_type_shape" : [{{"float":[2,3]}}]}}}}"#
    )
}

#[test]
fn nodes_of_subgraphs_are_part_of_the_node_they_belong_to_and_the_first_run_does_not_count() {
    let profile = summary(&read(&profile_text()).expect("it is read"), "1.0").expect("it is a profile");
    let nodes: Vec<_> = profile
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.duration_ns))
        .collect();
    assert_eq!(nodes, [("first", 2000), ("loop", 12_000), ("last", 0)]);
    assert_eq!(profile.run_ns, 45_000);
    assert_eq!(profile.nodes[0].outputs[0].shape, [2, 3]);
    assert_eq!(profile.nodes[0].output_bytes, 24);
}

#[test]
fn a_profile_without_a_warm_run_is_refused() {
    let cold: Vec<String> = profile_text().lines().take(11).map(str::to_owned).collect();
    let events = read(&cold.join("\n")).expect("it is read");
    assert_eq!(summary(&events, "1.0"), Err("it holds 1 runs".to_owned()));
}
