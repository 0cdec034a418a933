//! Draws a graph in the language of Graphviz.

use std::fmt::{self, Write};

use bytesize::ByteSize;

use crate::text::Name;
use crate::{Graph, Op, OpId, OpKind, Part, StorageClass, TensorId};

impl Graph {
    /// The graph as a `digraph` of Graphviz; equal graphs give equal text.
    ///
    /// Boxes are ops with their place in the reference order, ellipses are graph inputs, constants and outputs, arrows are
    /// tensors with the sizes of their storages. Ops that fission made say which part of a tensor they compute. Recompute ops are filled orange and point to what they repeat, `dealloc`
    /// ops are red octagons, `page_out` and `page_in` ops blue houses, ops that may not be recomputed have a thick frame; arrows of views are dashed.
    ///
    /// # Panics
    /// If an id of the graph points outside of its table.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = String::new();
        draw(self, &mut text).expect("writing to a string does not fail");
        text
    }
}

fn draw(graph: &Graph, out: &mut String) -> fmt::Result {
    writeln!(out, "digraph {} {{", quoted(&[&Name(&graph.name).to_string()]))?;
    writeln!(out, "  node [shape=box, fontname=\"Helvetica\", fontsize=10];")?;
    writeln!(out, "  edge [fontname=\"Helvetica\", fontsize=9];")?;
    for (id, tensor) in graph.tensors.iter_enumerated().filter(|(_, t)| t.producer.is_none()) {
        let colour = match graph.storages[tensor.storage].class {
            StorageClass::Input => "lightblue",
            StorageClass::Constant | StorageClass::Intermediate => "lightgrey",
        };
        let label = quoted(&[&Name(&tensor.name).to_string()]);
        let id = id.index();
        writeln!(
            out,
            "  t{id} [label={label}, shape=ellipse, style=filled, fillcolor={colour}];"
        )?;
    }
    for (id, op) in graph.ops.iter_enumerated() {
        draw_op(graph, out, id, op)?;
    }
    for (i, &tensor) in graph.outputs.iter().enumerate() {
        writeln!(out, "  out{i} [label=\"output {i}\", shape=ellipse, style=bold];")?;
        draw_arrow(graph, out, tensor, &format!("out{i}"))?;
    }
    writeln!(out, "}}")
}

fn draw_op(graph: &Graph, out: &mut String, id: OpId, op: &Op) -> fmt::Result {
    let at = id.index();
    let (what, style) = match op.kind {
        OpKind::Dealloc => ("dealloc".to_owned(), ", shape=octagon, color=red, fontcolor=red"),
        OpKind::PageOut => ("page_out".to_owned(), ", shape=invhouse, color=blue, fontcolor=blue"),
        OpKind::PageIn => ("page_in".to_owned(), ", shape=house, color=blue, fontcolor=blue"),
        OpKind::Recompute { .. } => (
            format!("recompute {}", Name(&op.op_type)),
            ", style=filled, fillcolor=orange",
        ),
        OpKind::Compute if op.effects.recomputable() => (Name(&op.op_type).to_string(), ""),
        OpKind::Compute => (Name(&op.op_type).to_string(), ", penwidth=3"),
    };
    let subject = match op.kind {
        kind if kind.is_run() => op.name.as_str(),
        _ => op.reads().next().map_or("", |id| graph.tensors[id].name.as_str()),
    };
    let mut lines = vec![format!("{at}: {what}"), Name(subject).to_string()];
    lines.extend(op.parts.iter().flatten().map(Part::to_string));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let label = quoted(&lines);
    writeln!(out, "  op{at} [label={label}{style}];")?;
    for tensor in op.reads() {
        draw_arrow(graph, out, tensor, &format!("op{at}"))?;
    }
    if let OpKind::Recompute { of } = op.kind {
        let of = of.index();
        writeln!(
            out,
            "  op{at} -> op{of} [label=\"repeats\", style=dotted, color=orange, constraint=false];"
        )?;
    }
    Ok(())
}

/// An arrow from where `tensor` comes from; its size stands beside its name.
fn draw_arrow(graph: &Graph, out: &mut String, id: TensorId, to: &str) -> fmt::Result {
    let tensor = &graph.tensors[id];
    let from = match tensor.producer {
        Some(op) => format!("op{}", op.index()),
        None => format!("t{}", id.index()),
    };
    let bytes = graph.storages[tensor.storage].bytes;
    let size = bytes.map_or_else(|| "? B".to_owned(), |bytes| ByteSize(bytes).display().iec().to_string());
    let label = quoted(&[&Name(&tensor.name).to_string(), &size]);
    let style = if graph.is_view(id) { ", style=dashed" } else { "" };
    writeln!(out, "  {from} -> {to} [label={label}{style}];")
}

/// Lines of text as one string of Graphviz, in which only quotes and backslashes are special.
fn quoted(lines: &[&str]) -> String {
    let escape = |line: &&str| line.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines.iter().map(escape).collect();
    format!("\"{}\"", lines.join("\\n"))
}
