//! What is moved to a second memory, in the file.

use std::collections::BTreeSet;

use remat::onnx::proto::GraphProto;
use remat::onnx::{ImportOptions, OnnxModel};
use remat::plan::{Event, Paging, PagingMode, StorageRole, Structure, Transfer, lower_events};
use remat::verify::replay;
use remat::{LoadOptions, Model, Solution};
use remat_onnxruntime_lower::{Layout, Lowered, LoweringOptions, OrderHint, lower};

use crate::listing::listing;
use crate::support::{models, paths};

const BUS: Transfer = Transfer {
    latency_ns: 0,
    bytes_per_s: 1_000_000_000,
    energy_pj: 0,
    energy_pj_per_byte: 0,
};

/// The model with all that may be moved out of memory after each use and back before the next one; nothing where the model cannot be opened without
/// further facts.
fn moved(path: &std::path::Path, options: &LoweringOptions) -> Option<(Model, Result<Lowered, String>)> {
    let model = Model::open(path, &LoadOptions::default()).ok()?;
    let mut problem = model.problem().clone();
    problem.paging = Some(Paging {
        mode: PagingMode::Sync,
        capacity: None,
        page_out: BUS,
        page_in: BUS,
    });
    let structure = Structure::of(&problem);
    let mut events = Vec::new();
    let mut made = BTreeSet::new();
    let mut used_at = None;
    for op in structure.scheduled() {
        for &read in &problem.ops[op].reads {
            let storage = problem.tensors[read].storage;
            let is_moved = problem.storages[storage].role == StorageRole::Transient && made.contains(&storage);
            if is_moved && used_at != Some(storage) {
                events.push(Event::Fetch(storage));
            }
        }
        events.push(Event::Run(op));
        let mut defined = problem.ops[op]
            .defines
            .iter()
            .map(|&tensor| problem.tensors[tensor].storage);
        made.extend(defined.clone());
        used_at = defined.next_back();
    }
    let plan = lower_events(&problem, &structure, events).expect("everything is made before it is moved");
    let found = replay(&problem, &plan).expect("it is a plan");
    let solution = Solution::of(&model, problem, plan, found, None);
    let graph = remat::rewrite(&model, &solution).expect("it can be applied")?;
    let onnx = model.onnx().expect("it is an ONNX model");
    let lowered = lower(onnx, &graph, options, &Layout::default()).map_err(|error| error.to_string());
    Some((model, lowered))
}

fn graph(lowered: &Lowered) -> &GraphProto {
    lowered.proto.graph.get_or_default()
}

#[test]
fn what_is_moved_leaves_and_comes_back_by_nodes() {
    let options = LoweringOptions {
        order: OrderHint::Priority,
        ..LoweringOptions::default()
    };
    let views = models().join("features/views.onnx");
    let (_, lowered) = moved(&views, &options).expect("the model opens");
    insta::assert_snapshot!(listing(graph(&lowered.expect("it can be written"))));
    let waits = LoweringOptions {
        waits_for_pages: true,
        ..options
    };
    let (_, lowered) = moved(&views, &waits).expect("the model opens");
    let lowered = lowered.expect("it can be written");
    let mut nodes = graph(&lowered).node.iter().peekable();
    while let Some(node) = nodes.next() {
        if node.op_type == "PageOut" {
            assert_eq!(nodes.peek().map(|next| next.op_type.as_str()), Some("PageOutEnd"));
        }
    }
}

#[test]
fn each_page_is_read_and_goes_with_its_last_reader() {
    let (mut files, mut pages, mut refused) = (0, 0, Vec::new());
    for folder in ["features", "bodies", ""] {
        for path in paths(&models().join(folder)) {
            let Some((model, lowered)) = moved(&path, &LoweringOptions::default()) else {
                continue;
            };
            let lowered = match lowered {
                Ok(lowered) => lowered,
                Err(why) => {
                    refused.push(format!("{}: {why}", path.file_stem().unwrap_or_default().display()));
                    continue;
                }
            };
            let open = ImportOptions {
                open_sizes: true,
                ..ImportOptions::default()
            };
            OnnxModel::from_proto(lowered.proto.clone(), &open).expect("every value is made before it is read");
            let count = |op_type: &str| {
                graph(&lowered)
                    .node
                    .iter()
                    .filter(|node| node.op_type == op_type)
                    .count()
            };
            let last = graph(&lowered).node.iter().filter(|node| {
                let mut attributes = node.attribute.iter();
                node.op_type == "PageIn" && attributes.any(|attribute| attribute.name == "last" && attribute.i == 1)
            });
            let name = path.display();
            assert_eq!(count("PageIn"), lowered.report.transfers, "{name}");
            assert_eq!(count("PageOut"), last.count(), "{name}");
            assert_eq!(count("PageOut"), count("PageOutEnd"), "{name}");
            assert_eq!(count("PageInBegin"), count("PageIn"), "{name}");
            let outputs =
                |graph: &GraphProto| -> Vec<String> { graph.output.iter().map(|output| output.name.clone()).collect() };
            let as_it_was = model.onnx().expect("it is an ONNX model").proto();
            assert_eq!(
                outputs(graph(&lowered)),
                outputs(as_it_was.graph.get_or_default()),
                "{name}"
            );
            files += usize::from(lowered.report.transfers > 0);
            pages += lowered.report.transfers;
        }
    }
    insta::assert_snapshot!(format!("{files} files, {pages} pages\n{}", refused.join("\n")));
}
