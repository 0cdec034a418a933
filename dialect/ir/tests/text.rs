//! The textual form and the drawing as a person reads them.

mod common;

use common::rich_graph;
use remat_ir::{ElementType, Graph, GraphBuilder, OpSpec, ParseErrorKind, ValueType, text::MAX_TYPE_DEPTH};

#[test]
fn a_rich_graph_prints_readably_and_parses_back() {
    let graph = rich_graph();
    assert_eq!(graph.validate(), Ok(()));
    let text = graph.to_string();
    insta::assert_snapshot!(text);
    assert_eq!(text.parse::<Graph>().unwrap(), graph);
}

#[test]
fn a_rich_graph_draws_itself() {
    insta::assert_snapshot!(rich_graph().to_dot());
}

#[test]
fn a_drawing_escapes_what_would_end_a_label() {
    let mut builder = GraphBuilder::new("q\"");
    builder.constant("\\\"] ; x\n", ValueType::Unknown).unwrap();
    insta::assert_snapshot!(builder.finish().to_dot(), @r#"
    digraph "\"q\\\"\"" {
      node [shape=box, fontname="Helvetica", fontsize=10];
      edge [fontname="Helvetica", fontsize=9];
      t0 [label="\"\\\\\\\"] ; x\\n\"", shape=ellipse, style=filled, fillcolor=lightgrey];
    }
    "#);
}

#[test]
fn inputs_keep_the_order_of_the_signature_even_if_ids_do_not() {
    let mut builder = GraphBuilder::new("swapped");
    let ty = || ValueType::tensor(ElementType::Float32, &[2]);
    let first = builder.input("second", ty()).unwrap();
    builder.constant("w", ty()).unwrap();
    let second = builder.input("first", ty()).unwrap();
    builder
        .op(OpSpec::new("add", "Add")
            .reads(first)
            .reads(second)
            .defines("sum", ty()))
        .unwrap();
    let mut graph = builder.finish();
    graph.inputs.reverse();
    let parsed = Graph::parse(&graph.to_string()).unwrap();
    let names: Vec<&str> = parsed.inputs.iter().map(|&t| parsed.tensors[t].name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(parsed.to_string(), graph.to_string());
}

#[test]
fn a_constant_numbered_after_its_reader_is_printed_before_it() {
    let mut builder = GraphBuilder::new("late");
    let ty = || ValueType::tensor(ElementType::Float32, &[2]);
    let (op, _) = builder.op(OpSpec::new("relu", "Relu").defines("y", ty())).unwrap();
    let late = builder.constant("late", ty()).unwrap();
    let mut graph = builder.finish();
    graph.ops[op].inputs.push(Some(late));
    let parsed = Graph::parse(&graph.to_string()).unwrap();
    insta::assert_snapshot!(parsed.to_string(), @r#"
    graph "late" {
      const %late : f32[2]
      %y : f32[2] = compute @relu Relu(%late)
    }
    "#);
}

#[test]
fn types_nest_as_deep_as_the_limit_and_no_deeper() {
    let text = |depth: usize| {
        let ty = format!("{}f32[]{}", "sequence<".repeat(depth), ">".repeat(depth));
        format!("graph \"deep\" {{ input %x : {ty} }}")
    };
    assert!(Graph::parse(&text(MAX_TYPE_DEPTH)).is_ok());
    for depth in [MAX_TYPE_DEPTH + 1, 1_000_000] {
        let error = Graph::parse(&text(depth)).unwrap_err();
        assert_eq!(error.kind, ParseErrorKind::TooDeep(MAX_TYPE_DEPTH));
    }
}

#[test]
fn an_error_gives_line_column_expectation_and_finding() {
    let error = |text: &str| Graph::parse(text).unwrap_err().to_string();
    let text = "graph \"é\" {\n  input %x : f32[8]\n  /* ü */ %y = compute @a Relu(%x)\n}";
    insta::assert_snapshot!(error(text), @"line 3, column 3: expected a statement or `}`, found `/`");
    insta::assert_snapshot!(error("graph \"é\" { input %\"é\" f32[8] }"), @"line 1, column 24: expected `:`, found `f32`");
    insta::assert_snapshot!(error("graph \"g\" {"), @"line 1, column 12: expected a statement or `}`, found the end of the text");
    insta::assert_snapshot!(error(""), @"line 1, column 1: expected `graph`, found the end of the text");
    insta::assert_snapshot!(error("graph g {}"), @"line 1, column 7: expected the name of the graph in quotes, found `g`");
    insta::assert_snapshot!(error(&format!("graph \"g\" {{ {} }}", "x".repeat(100))), @"line 1, column 13: expected a statement or `}`, found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`");
}
