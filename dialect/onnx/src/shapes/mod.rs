//! Shapes of all values of the main graph.
//!
//! Types stated in the file come first; what they leave open is inferred node by node in reference order. The rules of
//! single operators are those of the crate `onnx-runtime-shape-inference`; this module drives them, because that crate's
//! own driver stops at the first node a rule objects to, knows no functions, and binds symbols per graph. Here a node that
//! a rule objects to keeps its stated types, function calls are inferred through their bodies, and all scopes share one
//! set of symbols, so that a dimension keeps its name through subgraphs and calls.

mod blocked;
mod bodies;
mod budget;
mod control;
mod convert;
mod formulas;
mod free;
mod guard;
mod learning;
mod rules;
mod sequences;
mod stand_in;
mod symbols;
mod training;
mod value;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::OnceLock;

use onnx_protobuf::{FunctionProto, GraphProto, NodeProto, ValueInfoProto};
use onnx_runtime_ir::Node;
use onnx_runtime_shape_inference::{DimExpr, InferenceRegistry, MergePolicy, NodeIo};
use remat_ir::{Dim, ValueType};
use rustc_hash::FxHashMap;

use crate::OnnxError;
use crate::external::Folder;
use crate::functions::{Function, Functions};
use crate::marks::origin;
use crate::opsets::Opsets;
use crate::tensor::{dense_type, sparse_type};
use crate::types::{Dims, MAX_RANK, given_names, value_type};
use crate::values::{Follows, Operands, Tensor, evaluate};
use bodies::Bodies;
pub(crate) use bodies::BodyTypes;
use budget::Budget;
use control::ControlFlow;
use convert::Bindings;
pub(crate) use formulas::{Shape, Table};
use free::free;
use stand_in::StandIn;
use symbols::Symbols;
use value::Value;

/// Nodes and declarations inside subgraphs and functions that are visited at most, each as often as it is reached: functions that call
/// each other can unfold to exponentially many.
const MAX_INNER_VISITS: u32 = 1 << 19;

/// Subgraphs and calls are entered this deep.
const MAX_DEPTH: usize = 64;

/// What was found out.
#[derive(Default)]
pub(crate) struct Inferred {
    /// Type of every value of the main graph of which anything is known.
    pub(crate) types: HashMap<String, ValueType>,
    /// For values with open dimensions: the names that would settle them.
    pub(crate) open: HashMap<String, BTreeSet<String>>,
    /// Every dimension name a caller may set.
    pub(crate) names: BTreeSet<String>,
    /// Those of them that graph inputs leave open.
    pub(crate) inputs: BTreeSet<String>,
    /// Values of the main graph whose elements are known before the model runs.
    pub(crate) tensors: BTreeMap<String, Rc<Tensor>>,
    /// Bytes of sequences of the main graph whose elements are known one by one.
    pub(crate) contents: BTreeMap<String, u64>,
    /// Objections of the rules, by name of the node.
    pub(crate) causes: HashMap<String, String>,
    /// Types of the values of subgraphs.
    pub(crate) bodies: BodyTypes,
    /// Where formulas were asked for: the open dimensions, what follows from them, and by value of the main graph its dimensions.
    pub(crate) formulas: Option<(Table, HashMap<String, Shape>)>,
}

impl Inferred {
    /// Marks the dimensions that may have another size, which are those without a number in `open`: what was inferred without the
    /// caller's values.
    pub(crate) fn free(&mut self, open: &Self) {
        // Each type by itself: the order does not matter.
        self.types
            .iter_mut()
            .for_each(|(name, ty)| free(ty, open.types.get(name)));
        self.bodies.free(&open.bodies);
    }

    /// The dimensions to ask a caller for: those of graph inputs, or where inputs leave none open, all.
    pub(crate) fn to_ask(&self) -> BTreeSet<String> {
        if self.inputs.is_empty() {
            self.names.clone()
        } else {
            self.inputs.clone()
        }
    }
}

/// What inference needs to know of the model.
pub(crate) struct Context<'m> {
    pub(crate) graph: &'m GraphProto,
    pub(crate) functions: &'m Functions<'m>,
    pub(crate) opsets: &'m Opsets,
    pub(crate) folder: Option<&'m Folder>,
    pub(crate) given: &'m Dims,
    pub(crate) follows: Follows,
    /// Nodes of the main graph in reference order, with their names.
    pub(crate) nodes: Vec<(&'m NodeProto, &'m str)>,
    /// Whether dimensions are to have formulas of those that inputs leave open, which have these sizes.
    pub(crate) sizes: Option<&'m Dims>,
}

/// Infers the types of all values of the main graph. `names` are the dimension names of the model.
///
/// Where formulas are asked for, the types know of more dimensions which of them are equal than without, and are none to tell anybody.
///
/// # Errors
/// [`OnnxError::ShapeOverflow`], [`OnnxError::BadTensor`] and [`OnnxError::Unsupported`] for types that cannot be.
pub(crate) fn infer(context: &Context<'_>, names: BTreeSet<String>) -> Result<Inferred, OnnxError> {
    let mut inference = Inference {
        functions: context.functions,
        folder: context.folder,
        given: context.given,
        follows: context.follows,
        originals: originals(context),
        symbols: match context.sizes {
            Some(_) => Symbols::for_formulas(context.given, names),
            None => Symbols::new(context.given, names),
        },
        budget: Budget::new(),
        visits_left: MAX_INNER_VISITS,
        depth: 0,
        calls: 0,
        causes: HashMap::new(),
        bodies: Bodies::default(),
    };
    let mut scope = Scope::new(None, context.opsets, None);
    scope.main = true;
    inference.enter_graph(context.graph, &mut scope)?;
    inference.symbols.inputs_are_read();
    let given: BTreeSet<&str> = context
        .graph
        .initializer
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect();
    let asked = context
        .graph
        .input
        .iter()
        .filter(|input| !given.contains(input.name.as_str()));
    let inputs: Vec<&NodeIo> = asked
        .filter_map(|input| Some(&scope.values.get(input.name.as_str())?.io))
        .collect();
    let formulas = context
        .sizes
        .and_then(|sizes| inference.symbols.open_dims(&inputs, sizes));
    inference.symbols.formulas = formulas;
    let inputs = inputs.iter().flat_map(|io| inference.symbols.open_names(io)).collect();
    for (node, name) in &context.nodes {
        inference.node(node, name, &mut scope)?;
    }
    let mut inferred = Inferred {
        types: HashMap::with_capacity(scope.values.len()),
        inputs,
        ..Inferred::default()
    };
    // What was learned on the way holds of earlier results, too.
    if inference.symbols.has_learned() {
        for name in scope.values.keys().copied().collect::<Vec<_>>() {
            if let Some(value) = scope.values.get_mut(name) {
                inference.symbols.settle(&mut value.io, None);
            }
        }
    }
    let declared = &scope.declared;
    let mut values: Vec<&str> = scope.values.keys().chain(declared.keys()).copied().collect();
    values.sort_unstable();
    values.dedup();
    for name in values {
        let unknown = Value::default();
        let value = scope.values.get(name).unwrap_or(&unknown);
        if let Some(bytes) = inference.bytes_of_elements(value) {
            inferred.contents.insert(name.to_owned(), bytes);
        }
        if let Some(tensor) = &value.tensor {
            inferred.tensors.insert(name.to_owned(), Rc::clone(tensor));
        }
        let io = &value.io;
        inferred
            .types
            .insert(name.to_owned(), inference.symbols.value_type(io, declared.get(name)));
        let open = inference.symbols.open_names(io);
        if !open.is_empty() {
            inferred.open.insert(name.to_owned(), open);
        }
    }
    inferred.bodies = inference.bodies.types(&mut inference.symbols);
    inferred.formulas = inference.symbols.formulas.take().map(|table| {
        let typed =
            |(name, value): (&&str, &Value)| Some(((*name).to_owned(), table.shape(value.io.type_info.as_ref()?)));
        let shapes = scope.values.iter().filter_map(typed).collect();
        (table, shapes)
    });
    inferred.names = inference.symbols.names;
    inferred.causes = inference.causes;
    Ok(inferred)
}

/// The nodes of the main graph that others recompute; none for a runtime, which knows no marks.
fn originals<'m>(context: &Context<'m>) -> FxHashMap<&'m str, &'m NodeProto> {
    if context.follows == Follows::AtLoad {
        return FxHashMap::default();
    }
    let marked: BTreeSet<&str> = context.nodes.iter().filter_map(|(node, _)| origin(node)).collect();
    let nodes = context.nodes.iter().filter(|(_, name)| marked.contains(name));
    nodes.map(|&(node, name)| (name, node)).collect()
}

fn registry() -> &'static InferenceRegistry {
    static REGISTRY: OnceLock<InferenceRegistry> = OnceLock::new();
    REGISTRY.get_or_init(InferenceRegistry::default_registry)
}

/// The values visible in one graph or function body.
struct Scope<'s, 'm> {
    parent: Option<&'s Scope<'s, 'm>>,
    values: FxHashMap<&'m str, Value>,
    declared: FxHashMap<&'m str, ValueType>,
    /// Of those whose shape names dimensions that have given sizes: which of their dimensions these are.
    named: FxHashMap<&'m str, Vec<bool>>,
    opsets: &'s Opsets,
    bindings: Option<&'s Bindings<'m>>,
    /// Whether this is the main graph, whose open dimensions get names.
    main: bool,
}

impl<'s, 'm> Scope<'s, 'm> {
    fn new(parent: Option<&'s Scope<'s, 'm>>, opsets: &'s Opsets, bindings: Option<&'s Bindings<'m>>) -> Self {
        Self {
            parent,
            values: FxHashMap::default(),
            declared: FxHashMap::default(),
            named: FxHashMap::default(),
            opsets,
            bindings,
            main: false,
        }
    }

    /// A scope inside this one.
    fn inner(&'s self) -> Self {
        Self::new(Some(self), self.opsets, self.bindings)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(value) = here.values.get(name) {
                return Some(value);
            }
            scope = here.parent;
        }
        None
    }
}

struct Inference<'m> {
    functions: &'m Functions<'m>,
    folder: Option<&'m Folder>,
    given: &'m Dims,
    follows: Follows,
    /// By name, the nodes that others recompute.
    originals: FxHashMap<&'m str, &'m NodeProto>,
    symbols: Symbols<'m>,
    budget: Budget,
    visits_left: u32,
    depth: usize,
    /// How many calls of functions are entered.
    calls: usize,
    causes: HashMap<String, String>,
    bodies: Bodies<'m>,
}

impl<'m> Inference<'m> {
    /// Declares what a graph states about its values, and defines its inputs and initializers. An initializer that a
    /// caller may override counts with its default.
    fn enter_graph(&mut self, graph: &'m GraphProto, scope: &mut Scope<'_, 'm>) -> Result<(), OnnxError> {
        if !scope.main {
            // Bodies are entered again and again, so what they declare counts like what they do.
            let declared = graph.value_info.len() + graph.input.len() + graph.output.len() + graph.initializer.len();
            self.visits_left = self
                .visits_left
                .saturating_sub(u32::try_from(declared).unwrap_or(u32::MAX));
            if self.visits_left == 0 {
                return Ok(());
            }
        }
        self.declare(graph.value_info.iter().chain(&graph.output).chain(&graph.input), scope)?;
        for input in &graph.input {
            self.define(&input.name, Value::default(), scope);
        }
        for tensor in &graph.initializer {
            let ty = dense_type(tensor, "an initializer")?;
            let info = self.symbols.node_io(&ty).type_info;
            scope.declared.insert(&tensor.name, ty);
            let mut value = convert::initializer(tensor, info, self.folder);
            self.budget.admit(&mut value);
            scope.values.insert(&tensor.name, value);
        }
        for sparse in &graph.sparse_initializer {
            let ty = sparse_type(sparse, "a sparse initializer")?;
            let io = self.symbols.node_io(&ty);
            let name = sparse.values.as_ref().map_or("", |values| values.name.as_str());
            scope.declared.insert(name, ty);
            scope.values.insert(name, io.into());
        }
        Ok(())
    }

    fn declare(
        &mut self,
        values: impl Iterator<Item = &'m ValueInfoProto>,
        scope: &mut Scope<'_, 'm>,
    ) -> Result<(), OnnxError> {
        for value in values {
            let Some(ty) = value.type_.as_ref() else { continue };
            let impossible = |why| OnnxError::ShapeOverflow {
                node: "its declaration".to_owned(),
                tensor: value.name.clone(),
                why,
            };
            let names = given_names(ty, self.given);
            let ty = value_type(ty, self.given).map_err(impossible)?;
            ty.bytes().map_err(|error| impossible(error.to_string()))?;
            if names.contains(&true) {
                scope.named.insert(&value.name, names);
            }
            scope.declared.insert(&value.name, ty);
        }
        Ok(())
    }

    /// Defines a value: what was inferred, refined by what was declared.
    fn define(&mut self, name: &'m str, mut value: Value, scope: &mut Scope<'_, 'm>) {
        if name.is_empty() {
            return;
        }
        if let Some(declared) = scope.declared.get(name) {
            let named = scope.named.get(name).map_or(&[][..], Vec::as_slice);
            self.refine(&mut value.io, (declared, named), name, scope.main);
        }
        value.know_if_empty();
        self.budget.admit(&mut value);
        self.symbols.settle(&mut value.io, scope.main.then_some(name));
        scope.values.insert(name, value);
    }

    /// Puts declared types over inferred ones. A declared number wins over an inferred one: the file may know more than
    /// the rules (it may stem from a run), and a runtime that disagrees will say so at load. A name does not, even if it has a given size:
    /// exporters give the sides of a result the names of those of the image, whatever they are. `named` says which dimensions have such names.
    fn refine(&mut self, io: &mut NodeIo, (declared, named): (&ValueType, &[bool]), name: &str, learns: bool) {
        let stated = self.symbols.node_io(declared);
        match (&mut io.type_info, stated.type_info) {
            (Some(inferred), Some(stated)) if inferred.rank() == stated.rank() => {
                inferred.dtype = stated.dtype;
                let ValueType::Tensor { shape: Some(dims), .. } = declared else {
                    return;
                };
                for (axis, ((inferred, stated), dim)) in
                    inferred.shape.iter_mut().zip(stated.shape).zip(dims).enumerate()
                {
                    let has_name = named.get(axis).copied().unwrap_or(false);
                    let keeps = match dim {
                        Dim::Known(_) | Dim::Free { .. } if !has_name => false,
                        // A name that comes from the inputs says more than one that stands only here.
                        Dim::Known(_) | Dim::Free { .. } | Dim::Symbol(_) => {
                            let named = inferred.as_symbol().is_none_or(|id| self.symbols.is_named(id));
                            named && !inferred.is_overflow()
                        }
                        Dim::Unknown => true,
                    };
                    if !keeps {
                        if let Some(value) = stated.as_const().filter(|_| learns) {
                            self.symbols.learn(inferred, value);
                        }
                        if inferred.is_const() && *inferred != stated {
                            tracing::warn!(
                                tensor = name,
                                "declared and inferred shapes differ; the declared one counts"
                            );
                        }
                        *inferred = stated;
                    }
                }
            }
            (inferred, Some(stated)) => *inferred = Some(stated),
            (_, None) => {}
        }
        if io.value_type.is_none() {
            io.value_type = stated.value_type;
        }
    }

    /// Infers one node and defines its outputs. `name` is the node's, for objections.
    fn node(&mut self, node: &'m NodeProto, name: &str, scope: &mut Scope<'_, 'm>) -> Result<(), OnnxError> {
        if !scope.main {
            self.visits_left = self.visits_left.saturating_sub(1);
        }
        let functions = self.functions;
        let mut results = match functions.called(node) {
            _ if self.visits_left == 0 || self.depth >= MAX_DEPTH => Vec::new(),
            Some(function) => self.call(function, node, scope)?,
            None => match (Within { inference: self, scope }).control_flow(node)? {
                Some(results) => results,
                None => self.operator(node, name, scope),
            },
        };
        if scope.main {
            self.take_from_original(node, scope, &mut results);
        }
        let mut results = results.into_iter();
        for output in &node.output {
            self.define(output, results.next().unwrap_or_default(), scope);
        }
        Ok(())
    }

    /// A recompute gives what the original gave, also where the data decides how large that is.
    fn take_from_original(&self, node: &NodeProto, scope: &Scope<'_, 'm>, results: &mut [Value]) {
        let original = origin(node).and_then(|name| self.originals.get(name));
        let Some(original) = original.filter(|original| original.op_type == node.op_type) else {
            return;
        };
        for (result, output) in results.iter_mut().zip(&original.output) {
            let known = scope
                .values
                .get(output.as_str())
                .and_then(|value| value.io.type_info.as_ref());
            if let Some((mine, known)) = result.io.type_info.as_mut().zip(known)
                && mine.rank() == known.rank()
            {
                mine.shape.clone_from(&known.shape);
            }
        }
    }

    fn inputs(&self, node: &NodeProto, scope: &Scope<'_, 'm>) -> Vec<Value> {
        budget::inputs(node.input.iter().map(|name| scope.get(name)))
    }

    /// Infers an operator by its rule.
    fn operator(&mut self, proto: &'m NodeProto, name: &str, scope: &Scope<'_, 'm>) -> Vec<Value> {
        let node = convert::node(proto, scope.bindings, self.folder);
        let operands = self.inputs(proto, scope);
        let listed = sequences::listed(&node, &operands);
        let shapes: Vec<Option<Vec<usize>>> = operands.iter().map(Value::shape).collect();
        let (inputs, tensors): (Vec<NodeIo>, Vec<_>) =
            operands.into_iter().map(|value| (value.io, value.tensor)).unzip();
        let stand_in = StandIn::of(&node, &inputs);
        let ruled = match &stand_in {
            Some(stand_in) => self.apply_rule(&stand_in.node, stand_in.inputs.clone(), scope),
            None => self.apply_rule(&node, inputs.clone(), scope),
        };
        let is_ruled = ruled.is_ok();
        let mut results = match ruled {
            Ok(mut results) => {
                if let Some(stand_in) = &stand_in {
                    stand_in.retype(&mut results);
                }
                results
            }
            Err(objection) => {
                tracing::debug!(node = name, objection, "shape inference failed");
                if scope.main {
                    self.causes.insert(name.to_owned(), objection);
                }
                Vec::new()
            }
        };
        results.resize_with(proto.output.len(), NodeIo::default);
        if let Some(ty) = convert::sparse_constant(proto) {
            results
                .iter_mut()
                .take(1)
                .for_each(|io| io.type_info = self.symbols.node_io(&ty).type_info);
        }
        rules::complete(&node, &inputs, &mut results, &mut self.symbols);
        let version = scope.opsets.get("").copied().unwrap_or(0);
        if is_ruled {
            let (ruled, operands) = stand_in
                .as_ref()
                .map_or((&node, &inputs), |stand_in| (&stand_in.node, &stand_in.inputs));
            formulas::complete(ruled, operands, version, &mut results, &mut self.symbols);
        }
        for io in &mut results {
            io.type_info.take_if(|info| info.rank() > MAX_RANK);
        }
        let mut results: Vec<Value> = results.into_iter().map(Value::from).collect();
        let known = evaluate(&Operands {
            node: &node,
            version,
            follows: self.follows,
            values: &tensors,
            shapes: &shapes,
        });
        for (result, tensor) in results.iter_mut().zip(known.unwrap_or_default()) {
            result.know(Some(tensor));
        }
        if let Some((result, listed)) = results.first_mut().zip(listed) {
            listed.put(result);
        }
        results
    }

    /// Runs the rule of a node; the error says what it objects to.
    ///
    /// A rule may panic where overflow checks are on: some compute with extents and attributes in plain integers. What is
    /// known to make them do so is kept from them (see [`guard`]); the rest must not take the process down. The rule's
    /// only lasting effect is on the table of symbols, of which it can only have made more.
    fn apply_rule(&mut self, node: &Node, inputs: Vec<NodeIo>, scope: &Scope<'_, 'm>) -> Result<Vec<NodeIo>, String> {
        if let Some(objection) = guard::objection(node, &inputs) {
            return Err(objection);
        }
        let interner = &mut self.symbols.interner;
        let run = || registry().infer_node(node, scope.opsets, inputs, MergePolicy::Permissive, interner);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("its extents overflow".to_owned()),
        }
    }

    /// What a sequence takes whose elements are known.
    fn bytes_of_elements(&mut self, value: &Value) -> Option<u64> {
        let elements = value.elements.as_ref()?;
        let bytes = |element: &Value| {
            let mut io = element.io.clone();
            self.symbols.settle(&mut io, None);
            self.symbols.value_type(&io, None).bytes().ok().flatten()
        };
        elements
            .iter()
            .map(bytes)
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))
    }

    /// Infers a call through the body of the function.
    fn call(
        &mut self,
        function: &'m Function<'m>,
        node: &'m NodeProto,
        scope: &Scope<'_, 'm>,
    ) -> Result<Vec<Value>, OnnxError> {
        let proto: &'m FunctionProto = function.proto;
        let mut bindings: Bindings<'m> = proto.attribute_proto.iter().map(|a| (a.name.as_str(), a)).collect();
        for attribute in &node.attribute {
            if let Some(actual) = convert::resolve(attribute, scope.bindings) {
                bindings.insert(&attribute.name, actual);
            }
        }
        let mut body = Scope::new(None, &function.opsets, Some(&bindings));
        self.declare(proto.value_info.iter(), &mut body)?;
        let inputs = self.inputs(node, scope);
        for (name, value) in proto.input.iter().zip(inputs) {
            body.values.insert(name, value);
        }
        self.depth += 1;
        self.calls += 1;
        for inner in &proto.node {
            self.node(inner, &inner.name, &mut body)?;
        }
        self.calls -= 1;
        self.depth -= 1;
        Ok(proto
            .output
            .iter()
            .map(|name| body.get(name).cloned().unwrap_or_default())
            .collect())
    }

    /// Runs a body whose first inputs are bound to `inputs`.
    fn body(
        &mut self,
        graph: &'m GraphProto,
        scope: &Scope<'_, 'm>,
        inputs: Vec<NodeIo>,
    ) -> Result<Vec<Value>, OnnxError> {
        let mut inner = scope.inner();
        self.enter_graph(graph, &mut inner)?;
        for (formal, io) in graph.input.iter().zip(inputs) {
            self.define(&formal.name, io.into(), &mut inner);
        }
        let outputs = self.subgraph(graph, &mut inner)?;
        self.note_body(graph, &inner);
        Ok(outputs)
    }

    /// Notes the types in a body for the importer, which knows nothing of bodies inside of functions.
    fn note_body(&mut self, graph: &'m GraphProto, scope: &Scope<'_, 'm>) {
        if self.calls > 0 || self.visits_left == 0 {
            return;
        }
        let mut names: Vec<&'m str> = scope.values.keys().copied().collect();
        names.sort_unstable();
        let value = |name: &'m str| {
            let io = scope.values.get(name)?.io.clone();
            Some((name, io, scope.declared.get(name).cloned()))
        };
        self.bodies.note(graph, names.into_iter().filter_map(value).collect());
    }

    /// Notes how often one run of its node runs a body.
    fn note_trips(&mut self, graph: &'m GraphProto, trips: Option<i64>) {
        let known = trips.and_then(|trips| u64::try_from(trips).ok());
        if let Some(trips) = known.filter(|_| self.calls == 0) {
            self.bodies.note_trips(graph, trips);
        }
    }

    /// Infers a subgraph whose inputs are already defined in `scope`; returns its outputs.
    fn subgraph(&mut self, graph: &'m GraphProto, scope: &mut Scope<'_, 'm>) -> Result<Vec<Value>, OnnxError> {
        self.depth += 1;
        for node in &graph.node {
            self.node(node, &node.name, scope)?;
        }
        self.depth -= 1;
        Ok(graph
            .output
            .iter()
            .map(|output| scope.get(&output.name).cloned().unwrap_or_default())
            .collect())
    }
}

/// A node that runs subgraphs, in a scope.
struct Within<'a, 's, 'm> {
    inference: &'a mut Inference<'m>,
    scope: &'a Scope<'s, 'm>,
}

impl<'m> ControlFlow<'m> for Within<'_, '_, 'm> {
    fn opset(&self) -> Option<u64> {
        self.scope.opsets.get("").copied()
    }

    fn operands(&self, node: &NodeProto) -> Vec<NodeIo> {
        let inputs = self.inference.inputs(node, self.scope).into_iter();
        inputs.map(|value| value.io).collect()
    }

    fn body(&mut self, graph: &'m GraphProto, inputs: Vec<NodeIo>) -> Result<Vec<Value>, OnnxError> {
        self.inference.body(graph, self.scope, inputs)
    }

    fn note_trips(&mut self, graph: &'m GraphProto, trips: Option<i64>) {
        self.inference.note_trips(graph, trips);
    }

    fn fresh_dim(&mut self) -> DimExpr {
        self.inference.symbols.interner.fresh_dim()
    }
}
