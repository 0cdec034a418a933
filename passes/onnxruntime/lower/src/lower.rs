//! From a rewritten graph to the file.

use std::borrow::Cow;

use remat_ir::{ElementType, Graph, ValueType};
use remat_onnx::proto::{ModelProto, NodeProto};
use remat_onnx::{Marks, OnnxError, OnnxModel};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::anchors::{self, Arrangement};
use crate::branch::Branch;
use crate::clones;
use crate::dynamic_shapes::{self, DynamicShapes, Rewritten};
use crate::in_place;
use crate::layout::Layout;
use crate::names::Names;
use crate::pages;
use crate::zeros::Zeros;

/// The execution orders for which a file is made: in them its peak is the predicted one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OrderHint {
    /// The runtime's default order, its priority-based order, and the order of the file.
    #[default]
    Any,
    /// The priority-based order and the order of the file: fewer nodes.
    Priority,
}

impl OrderHint {
    /// The hint as plans and command lines write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Priority => "priority",
        }
    }
}

/// Which shapes the runtime knows when it loads the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shapes {
    /// All that it can infer: it reuses buffers.
    Static,
    /// Those of small results: it reuses no buffer, and overwrites no operand.
    Dynamic,
    /// Those of small results, and those around kernels that may overwrite an operand.
    #[default]
    StaticInPlace,
}

/// What is done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoweringOptions {
    /// The orders that the file is made for.
    pub order: OrderHint,
    /// Which shapes stay static.
    pub shapes: Shapes,
    /// Bytes that are taken first of all and given back at once, 0 for none. The memory arena makes its first region so large that they
    /// fit, and what comes later finds room there: fewer regions, less between them. Takes dynamic shapes.
    pub reserve: u64,
    /// Whether nothing runs while a page is written to the second memory: less memory, where what leaves has no room to stay meanwhile.
    pub waits_for_pages: bool,
}

impl Default for LoweringOptions {
    fn default() -> Self {
        Self {
            order: OrderHint::Any,
            shapes: Shapes::default(),
            reserve: 0,
            waits_for_pages: false,
        }
    }
}

/// What was done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoweringReport {
    /// Clones that are marked.
    pub clones: usize,
    /// Values whose shape is made dynamic by a view.
    pub hidden: usize,
    /// Operands whose shape is stated by a view, so that a kernel may overwrite them.
    pub overwritten: usize,
    /// Which shapes were to stay static.
    pub shapes: Shapes,
    /// Whether shapes could be made dynamic; `false` also where that was not asked for. It takes an input that is a tensor of numbers.
    pub hides_shapes: bool,
    /// Order anchors: nodes that read a value to fix its place in the order.
    pub readers: usize,
    /// Bytes that are taken first of all and given back at once.
    pub reserved: u64,
    /// Whether all nodes stand in a branch, for which the runtime has no memory pattern.
    pub in_branch: bool,
    /// How often something comes back from the second memory: then the file needs the arena library.
    pub transfers: usize,
}

/// A file that runs as planned.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The model, outside of a branch.
    pub proto: ModelProto,
    /// What was done to it.
    pub report: LoweringReport,
    /// The value that takes the reserved bytes.
    pub reserve: Option<String>,
    /// Vectors of zeros that the runtime learns of when it runs, each with its length.
    pub zeros: Vec<(String, usize)>,
    /// Values that only pages are made of, or that stand for what came back, with their types.
    pub paged: Vec<(String, ValueType)>,
    /// How it would be put inside a branch, where it can be.
    branch: Option<Branch>,
}

impl Lowered {
    /// A model as it is.
    #[must_use]
    pub fn as_it_is(proto: ModelProto) -> Self {
        Self {
            proto,
            report: LoweringReport::default(),
            reserve: None,
            zeros: Vec::new(),
            paged: Vec::new(),
            branch: None,
        }
    }

    /// Bytes that weights take once more inside a branch ([`Self::put_in_branch`]); `None` where it cannot be put there.
    #[must_use]
    pub fn doubled_bytes(&self) -> Option<u64> {
        self.branch.as_ref().map(Branch::doubled_bytes)
    }

    /// Puts all nodes inside a branch: then the runtime makes no memory pattern, where that is on, and later runs take what the first one takes.
    /// Nothing happens to a model that cannot be put there.
    pub fn put_in_branch(&mut self) {
        self.report.in_branch = self.branch.is_some();
    }

    /// The model as it is written.
    #[must_use]
    pub fn written(&self) -> Cow<'_, ModelProto> {
        match self.branch.as_ref().filter(|_| self.report.in_branch) {
            Some(branch) => Cow::Owned(branch.around(self.proto.clone())),
            None => Cow::Borrowed(&self.proto),
        }
    }
}

/// Writes `rewritten`, which stems from `model`, as a file that ONNX Runtime runs in the order of its ops, without merging or fusing
/// what it recomputes and without keeping buffers longer than their tensors. What `layout` names, of values of the model, is laid out as in
/// the model. Its outputs have the bits of [`OnnxModel::export_proto`]. What `rewritten` moves to a second memory is moved by nodes of the arena
/// library.
///
/// # Errors
/// Those of [`OnnxModel::export_proto`]; [`OnnxError::Unsupported`] if what is moved is no tensor whose bits lie in its own memory, or if the
/// graph is in tiles.
pub fn lower(
    model: &OnnxModel,
    rewritten: &Graph,
    options: &LoweringOptions,
    layout: &Layout,
) -> Result<Lowered, OnnxError> {
    let mut layout = layout.of(rewritten);
    let read_in_blocks = layout.read_in_blocks(rewritten);
    let mut proto = model.export_without_readers(rewritten)?;
    let mut names = Names::new(model, &proto);
    let pages = pages::insert(&mut proto, rewritten, &mut names, options.waits_for_pages)?;
    let mut types = types(rewritten);
    types.extend(pages.values.iter().cloned());
    let opset = default_opset(&proto);
    let graph = proto.graph.mut_or_insert_default();
    let mut report = LoweringReport {
        clones: clones::mark(graph),
        shapes: options.shapes,
        transfers: pages.transfers,
        ..LoweringReport::default()
    };
    let mut activated: FxHashSet<String> = clones::read_by_marked_activations(graph).map(str::to_owned).collect();
    let mut guarded: FxHashSet<String> = anchors::with_fewer_readers(model.graph(), rewritten)
        .into_iter()
        .filter(|name| !read_in_blocks.contains(*name))
        .map(str::to_owned)
        .collect();
    layout.blocked.extend(read_in_blocks);

    let mut nodes = std::mem::take(&mut graph.node);
    let mut first = Vec::new();
    let mut reserve = None;
    let mut late = Vec::new();
    let zeros = Zeros::new(graph, opset, |name| types.get(name)).filter(|_| options.shapes != Shapes::Static);
    if let Some(zeros) = zeros {
        if options.reserve > 0 {
            let name = names.fresh("remat_reserve");
            types.insert(name.clone(), ValueType::tensor(ElementType::Uint8, &[options.reserve]));
            guarded.insert(name.clone());
            reserve = Some(name);
            report.reserved = options.reserve;
        }
        let block = reserve.as_deref().map(|name| (name, options.reserve));
        let mut overwritten = match options.shapes {
            Shapes::StaticInPlace => in_place::overwritten(graph, &nodes, &types),
            Shapes::Static | Shapes::Dynamic => FxHashMap::default(),
        };
        overwritten.retain(|result, operand| layout.allows_view(result, operand));
        let shapes = DynamicShapes::new((graph, &nodes), &types, &layout, zeros, &overwritten);
        let made = make_shapes_dynamic(shapes, nodes, block, &mut names);
        (first, nodes, late) = (made.first, made.nodes, made.zeros);
        dynamic_shapes::forget_stated_shapes(graph);
        let is_small = |name: &str| dynamic_shapes::is_small(&types, name);
        layout.state_shapes(graph, &types, &mut names, is_small);
        (report.hidden, report.overwritten) = (made.views, made.stated);
        report.hides_shapes = true;
        // A view stands between an activation that overwrites its operand and what it might be fused with.
        activated.retain(|name| overwritten.values().all(|operand| operand != name));
    }
    guarded.extend(activated);
    if opset > 0 {
        let arrangement = Arrangement {
            types: &types,
            guarded: &guarded,
            blocked: &layout.blocked,
            in_blocks: &layout.in_blocks,
            copied: &layout.copied,
        };
        (nodes, report.readers) = match options.order {
            OrderHint::Any => arrangement.arrange(nodes, &mut names),
            OrderHint::Priority => arrangement.guard(nodes, &mut names),
        };
    }
    first.append(&mut nodes);
    graph.node = first;
    // Outputs whose shapes are known at load would all be made before the branch runs.
    let branch = report
        .hides_shapes
        .then(|| Branch::new(graph, opset, |name| types.get(name), &mut names))
        .flatten();
    Marks::state(&mut proto);
    Ok(Lowered {
        proto,
        report,
        reserve,
        zeros: late,
        paged: pages.values,
        branch,
    })
}

/// Makes the shapes of large results dynamic; `block` is taken first of all.
fn make_shapes_dynamic(
    mut shapes: DynamicShapes<'_>,
    nodes: Vec<NodeProto>,
    block: Option<(&str, u64)>,
    names: &mut Names,
) -> Rewritten {
    let mut rewritten = Vec::with_capacity(nodes.len());
    if let Some((name, bytes)) = block {
        rewritten.push(shapes.block(i64::try_from(bytes).unwrap_or(i64::MAX), name, names));
    }
    for node in nodes {
        shapes.node(node, names, &mut rewritten);
    }
    shapes.finish(rewritten)
}

/// The true type of every value.
fn types(graph: &Graph) -> FxHashMap<String, ValueType> {
    let tensors = graph.tensors.iter();
    tensors.map(|tensor| (tensor.name.clone(), tensor.ty.clone())).collect()
}

/// The version of the default operator set; 0 where the model does not use it.
fn default_opset(proto: &ModelProto) -> i64 {
    let default = proto
        .opset_import
        .iter()
        .find(|set| matches!(&*set.domain, "" | "ai.onnx"));
    default.map_or(0, |set| set.version)
}
