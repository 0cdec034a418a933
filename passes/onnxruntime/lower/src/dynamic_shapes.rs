//! Shapes that a runtime does not learn before it runs.
//!
//! ONNX Runtime's allocation planner hands a dead buffer to a later result of the same shape, and keeps it until then: buffers
//! outlive their tensors. A result whose shape is not known at load is left alone, it gets memory of its own and gives it back after
//! its last reader. So this makes the shape of every large result depend on a value known at run time only, with as few nodes as
//! possible: a result is unknown already where one of its operands is, with two exceptions, operands that state a shape and constants
//! as large as the result.
//!
//! What is inserted are views (no copy, no memory), and sums of a shape and zeros (a few bytes).
//!
//! A kernel that may overwrite its operand does so only where the runtime sees equal shapes on both (`in_place`): there a view states the
//! shape of the operand, and the shape of the result follows.

use remat_ir::ValueType;
use remat_onnx::proto::{GraphProto, NodeProto, TypeProto, tensor_proto, type_proto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::{constant, node, row, zero};
use crate::halves;
use crate::layout::Layout;
use crate::names::Names;
use crate::pages;
use crate::zeros::Zeros;

/// Results below this size may be known: what is lost to their reuse does not count.
const SMALL: u64 = 16 << 10;

/// From so many nodes on the runtime takes long to load results of which it knows the number of axes (`zeros`).
const MANY: usize = 1_000;

/// What the runtime can know of a value when it loads the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The value.
    Value,
    /// The shape.
    Shape,
    /// The shape, because a kernel may overwrite the operand: other nodes read a view.
    Stated,
    /// Neither.
    Nothing,
}

impl Known {
    /// What is known of a result where this is known of its operand.
    fn of_result(self) -> Self {
        if self == Self::Nothing { self } else { Self::Shape }
    }
}

/// Nodes, as they become.
pub(crate) struct Rewritten {
    /// Nodes that come before all others.
    pub(crate) first: Vec<NodeProto>,
    /// All others.
    pub(crate) nodes: Vec<NodeProto>,
    /// How many values were given a dynamic shape.
    pub(crate) views: usize,
    /// How many operands of kernels that may overwrite them were given a static shape.
    pub(crate) stated: usize,
    /// The vectors of zeros, each with its length.
    pub(crate) zeros: Vec<(String, usize)>,
}

/// Rewrites nodes as they come.
pub(crate) struct DynamicShapes<'t> {
    types: &'t FxHashMap<String, ValueType>,
    known: FxHashMap<String, Known>,
    /// Values of unknown shape whose number of axes the runtime knows all the same, because something of the shape decides over a layout.
    axes: FxHashSet<String>,
    /// Whether there are so many nodes that this is hidden from those that read a part.
    hides_axes: bool,
    /// Values that exist before any node runs.
    external: FxHashSet<String>,
    /// The value of dynamic shape that stands for another one.
    replaced: FxHashMap<String, String>,
    layout: &'t Layout,
    /// Results that products read through a view.
    factors: FxHashSet<String>,
    zeros: Zeros,
    /// Nodes on values that exist before any node runs.
    first: Vec<NodeProto>,
    views: usize,
    /// By result, the operand that a kernel may overwrite.
    overwritten: &'t FxHashMap<String, String>,
    /// The constants that state shapes.
    shapes: FxHashMap<Vec<i64>, String>,
    stated: usize,
}

impl<'t> DynamicShapes<'t> {
    /// For these nodes; `types` has the true types of all values, `overwritten` by result the operand whose shape stays static with that of the result.
    pub(crate) fn new(
        (graph, nodes): (&GraphProto, &[NodeProto]),
        types: &'t FxHashMap<String, ValueType>,
        layout: &'t Layout,
        zeros: Zeros,
        overwritten: &'t FxHashMap<String, String>,
    ) -> Self {
        let mut known = FxHashMap::default();
        for input in &graph.input {
            known.insert(input.name.clone(), Known::Shape);
        }
        let sparse = graph.sparse_initializer.iter().map(|s| &s.values.get_or_default().name);
        for name in graph.initializer.iter().map(|tensor| &tensor.name).chain(sparse) {
            known.insert(name.clone(), Known::Value);
        }
        Self {
            types,
            external: known.keys().cloned().collect(),
            known,
            axes: FxHashSet::default(),
            hides_axes: nodes.len() >= MANY,
            replaced: FxHashMap::default(),
            layout,
            factors: halves::factors_of_products(nodes, types),
            zeros,
            first: Vec::new(),
            views: 0,
            overwritten,
            shapes: FxHashMap::default(),
            stated: 0,
        }
    }

    /// `node` with operands of dynamic shape where that is needed, after the nodes that make them.
    pub(crate) fn node(&mut self, mut node: NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        if node.op_type == "Constant" {
            for output in &node.output {
                self.known.insert(output.clone(), Known::Value);
                self.external.insert(output.clone());
            }
            self.first.push(node);
            return;
        }
        if node.domain == pages::DOMAIN {
            // The runtime knows no shape of what these make.
            self.known
                .extend(node.output.iter().map(|output| (output.clone(), Known::Nothing)));
            out.push(node);
            return;
        }
        self.hide_stated(&mut node, names, out);
        self.hide_weights(&mut node, names, out);
        self.hide_factors(&mut node, names, out);
        let operands = node.input.iter().filter(|name| !name.is_empty());
        let all_values = operands.clone().all(|name| self.of(name) == Known::Value);
        let has_body = !remat_onnx::captures(&node).is_empty();
        let result = if all_values && !has_body && !node.input.is_empty() {
            Known::Value
        } else if !self.is_small(&node) && self.state_overwritten(&mut node, names, out) {
            Known::Stated
        } else if !self.shape_is_known(&node) {
            self.hide_axes(&mut node, names, out);
            Known::Nothing
        } else if self.is_small(&node) {
            Known::Shape
        } else if self.is_converted(&node) {
            self.make_images_dynamic(&mut node, names, out)
        } else {
            self.make_operands_dynamic(&mut node, names, out);
            Known::Nothing
        };
        let knows_axes = |name: &String| self.of(name) != Known::Nothing || self.axes.contains(name);
        let follow = node.input.iter().filter(|name| !name.is_empty()).all(knows_axes);
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            if result == Known::Nothing && (follow || self.layout.states(output)) {
                self.axes.insert(output.clone());
            }
            let is_stated = result == Known::Nothing
                && (self.layout.stated.contains(output)
                    || self.layout.equal.contains_key(output) && is_small(self.types, output));
            let result = if is_stated { Known::Shape } else { result };
            self.known.insert(output.clone(), result);
        }
        out.push(node);
    }

    /// Whether the runtime gives the node another layout.
    fn is_converted(&self, node: &NodeProto) -> bool {
        node.output
            .first()
            .is_some_and(|output| self.layout.converted.contains(output))
    }

    /// The same for a node that is converted. Only images that are reordered for it may be views: what it reads in blocks, or what decides over
    /// its conversion, stays as it is.
    fn make_images_dynamic(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) -> Known {
        let Some(images) = node.input.first().cloned().filter(|name| !name.is_empty()) else {
            return Known::Shape;
        };
        let may_be_view = !self.layout.blocked.contains(&images) && !self.layout.states(&images);
        match self.of(&images) {
            Known::Shape if may_be_view => {
                let view = self.view(&images, names, out);
                replace(node, &images, view);
                Known::Nothing
            }
            known => known.of_result(),
        }
    }

    /// A node that makes `bytes` bytes called `name`, of a size known at run time only.
    pub(crate) fn block(&mut self, bytes: i64, name: &str, names: &mut Names) -> NodeProto {
        let (length, late) = (
            names.fresh(&format!("{name}_bytes")),
            names.fresh(&format!("{name}_late")),
        );
        let late_zero = self.zeros.vector(1, names);
        self.first.push(constant(&[bytes], &length));
        self.first.push(node("Add", &[&length, &late_zero], &late, Vec::new()));
        node(
            "ConstantOfShape",
            &[&late],
            name,
            vec![zero(tensor_proto::DataType::UINT8, 1)],
        )
    }

    /// What became of the nodes that [`Self::node`] put into `nodes`.
    pub(crate) fn finish(self, nodes: Vec<NodeProto>) -> Rewritten {
        let zeros = self.zeros.vectors();
        let mut first = self.zeros.into_nodes();
        first.extend(self.first);
        Rewritten {
            first,
            nodes,
            views: self.views,
            stated: self.stated,
            zeros,
        }
    }

    /// Has the node read views of dynamic shape of what was overwritten, unless it is to overwrite that again.
    fn hide_stated(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        let again = node.output.first().and_then(|result| self.overwritten.get(result));
        let is_stated = |name: &&String| self.of(name) == Known::Stated && Some(*name) != again;
        let stated: Vec<String> = node.input.iter().filter(is_stated).cloned().collect();
        self.hide(stated, node, names, out);
    }

    /// Has a node read views of these operands.
    fn hide(&mut self, operands: Vec<String>, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        for operand in operands {
            let dynamic = self.view(&operand, names, out);
            replace(node, &operand, dynamic);
        }
    }

    /// Has a convolution that stays in the usual layout read a view of weights that are known when the file is loaded.
    fn hide_weights(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        if node
            .output
            .first()
            .is_none_or(|result| !self.layout.plain.contains(result))
        {
            return;
        }
        let weights = node
            .input
            .get(1)
            .cloned()
            .filter(|weights| self.of(weights) == Known::Value);
        if let Some(weights) = weights {
            let view = self.view(&weights, names, out);
            replace(node, &weights, view);
        }
    }

    /// Has a product read views of what the runtime would make part of it.
    fn hide_factors(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        if halves::is_product(node) {
            let is_factor = |name: &&String| self.factors.contains(*name);
            let factors: Vec<String> = node.input.iter().filter(is_factor).cloned().collect();
            self.hide(factors, node, names, out);
        }
    }

    /// Has a node that reads a part of something know nothing of its axes: of what follows it nothing is known either.
    fn hide_axes(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        let (Some(result), Some(operand)) = (node.output.first(), node.input.first().cloned()) else {
            return;
        };
        let is_part = self.hides_axes && node.op_type == "Slice";
        if is_part && self.axes.contains(&operand) && self.layout.allows_view(result, &operand) {
            let view = self.view(&operand, names, out);
            replace(node, &operand, view);
        }
    }

    /// Whether the node may overwrite its operand; then a view states the shape of that, if it is not known.
    fn state_overwritten(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) -> bool {
        let Some(operand) = node.output.first().and_then(|result| self.overwritten.get(result)) else {
            return false;
        };
        let Some(dims) = self.types.get(operand).and_then(ValueType::known_shape) else {
            return false;
        };
        if self.of(operand) != Known::Nothing {
            return true;
        }
        let dims: Option<Vec<i64>> = dims.into_iter().map(|dim| i64::try_from(dim).ok()).collect();
        let Some(dims) = dims.filter(|dims| !dims.contains(&0)) else {
            return false;
        };
        let shape = match self.shapes.get(&dims) {
            Some(shape) => shape.clone(),
            None => {
                let name = names.fresh(&format!("{operand}__dims"));
                self.first.push(constant(&dims, &name));
                self.known.insert(name.clone(), Known::Value);
                self.external.insert(name.clone());
                self.shapes.insert(dims, name.clone());
                name
            }
        };
        let view = names.fresh(&format!("{operand}__shape"));
        out.push(self::node("Reshape", &[operand, &shape], &view, Vec::new()));
        self.known.insert(view.clone(), Known::Shape);
        self.stated += 1;
        replace(node, operand, Some(view));
        true
    }

    fn of(&self, name: &str) -> Known {
        self.known.get(name).copied().unwrap_or(Known::Nothing)
    }

    fn rank(&self, name: &str) -> Option<usize> {
        let ValueType::Tensor { shape, .. } = self.types.get(name)? else {
            return None;
        };
        Some(shape.as_ref()?.len())
    }

    fn is_small(&self, node: &NodeProto) -> bool {
        if row(node).measures {
            return true;
        }
        let mut outputs = node.output.iter().filter(|name| !name.is_empty());
        outputs.all(|name| is_small(self.types, name))
    }

    /// Whether the shape of the node's result follows from what is known at load.
    fn shape_is_known(&self, node: &NodeProto) -> bool {
        if let Some(operand) = shape_operand(node) {
            return self.of(operand) == Known::Value;
        }
        let mut operands = node.input.iter().filter(|name| !name.is_empty());
        if operands.clone().all(|name| self.of(name) != Known::Nothing) {
            return true;
        }
        // Extents of one operand are those of the others but along the axis, where weights may say them.
        if node.op_type == "Concat" {
            return operands.any(|name| matches!(self.of(name), Known::Shape | Known::Stated));
        }
        let broadcasts = row(node).broadcasts;
        broadcasts && operands.any(|name| self.of(name) != Known::Nothing && self.fills(name, node))
    }

    /// Whether `operand` of a broadcasting node has every dimension of the result. One of extent 1 follows from it too where the runtime knows
    /// that extent of the other operands.
    fn fills(&self, operand: &str, node: &NodeProto) -> bool {
        let shape = |name: &str| self.types.get(name).and_then(ValueType::known_shape);
        let result = node.output.first().and_then(|name| shape(name));
        match (shape(operand), result) {
            (Some(operand), Some(result)) => operand == result,
            _ => true,
        }
    }

    fn make_operands_dynamic(&mut self, node: &mut NodeProto, names: &mut Names, out: &mut Vec<NodeProto>) {
        if let Some(operand) = shape_operand(node).map(str::to_owned) {
            let dynamic = self.dynamic_values(&operand, names, out);
            replace(node, &operand, dynamic);
            return;
        }
        let broadcasts = row(node).broadcasts;
        let mut operands: Vec<String> = node.input.iter().filter(|name| !name.is_empty()).cloned().collect();
        operands.dedup();
        for operand in operands {
            let wanted = match self.of(&operand) {
                Known::Nothing => false,
                Known::Shape | Known::Stated => true,
                // A weight stays what it is, so that kernels can prepare it.
                Known::Value => broadcasts && self.fills(&operand, node),
            };
            if wanted {
                let dynamic = self.view(&operand, names, out);
                replace(node, &operand, dynamic);
            }
        }
    }

    /// A view of `operand` whose shape is known at run time only; `None` for scalars.
    fn view(&mut self, operand: &str, names: &mut Names, out: &mut Vec<NodeProto>) -> Option<String> {
        if let Some(view) = self.replaced.get(operand) {
            return Some(view.clone());
        }
        let rank = self.rank(operand).filter(|&rank| rank > 0)?;
        let zeros = self.zeros.vector_of_late_length(rank, names);
        let name = names.fresh(&format!("{operand}__view"));
        self.insert(node("Reshape", &[operand, &zeros], &name, Vec::new()), operand, out);
        Some(name)
    }

    /// The same values as those of the vector `operand`, which constants make, known at run time only.
    fn dynamic_values(&mut self, operand: &str, names: &mut Names, out: &mut Vec<NodeProto>) -> Option<String> {
        if let Some(values) = self.replaced.get(operand) {
            return Some(values.clone());
        }
        let ValueType::Tensor { .. } = self.types.get(operand)? else {
            return None;
        };
        let shape = self.types.get(operand)?.known_shape()?;
        let &[length] = shape.as_slice() else { return None };
        let length = usize::try_from(length).ok().filter(|&length| length > 0)?;
        let zeros = self.zeros.vector(length, names);
        let name = names.fresh(&format!("{operand}__late"));
        self.insert(node("Add", &[operand, &zeros], &name, Vec::new()), operand, out);
        Some(name)
    }

    fn insert(&mut self, node: NodeProto, operand: &str, out: &mut Vec<NodeProto>) {
        let name = node.name.clone();
        self.views += 1;
        self.known.insert(name.clone(), Known::Nothing);
        if self.external.contains(operand) {
            self.first.push(node);
        } else {
            out.push(node);
        }
        self.replaced.insert(operand.to_owned(), name);
    }
}

/// The operand of the node that states the shape of its result.
fn shape_operand(node: &NodeProto) -> Option<&str> {
    node.input
        .get(row(node).shape_operand?)
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

fn replace(node: &mut NodeProto, operand: &str, by: Option<String>) {
    let Some(by) = by else { return };
    let operands = node.input.iter_mut().filter(|name| name.as_str() == operand);
    operands.for_each(|name| name.clone_from(&by));
}

/// Whether a value is so small that its shape stays known.
pub(crate) fn is_small(types: &FxHashMap<String, ValueType>, name: &str) -> bool {
    let bytes = types.get(name).map(ValueType::bytes);
    matches!(bytes, Some(Ok(Some(bytes))) if bytes < SMALL)
}

/// Takes the shapes off the types that the file states for intermediate values.
pub(crate) fn forget_stated_shapes(graph: &mut GraphProto) {
    for value in &mut graph.value_info {
        forget_shape(value.type_.mut_or_insert_default());
    }
}

fn forget_shape(ty: &mut TypeProto) {
    match &mut ty.value {
        Some(type_proto::Value::TensorType(tensor)) => tensor.shape = None.into(),
        Some(type_proto::Value::SequenceType(sequence)) => {
            if let Some(element) = sequence.elem_type.as_mut() {
                forget_shape(element);
            }
        }
        Some(type_proto::Value::OptionalType(optional)) => {
            if let Some(element) = optional.elem_type.as_mut() {
                forget_shape(element);
            }
        }
        _ => {}
    }
}
