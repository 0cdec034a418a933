//! Pages: what a plan moves to a second memory, as nodes of the operators that the arena library has for that.
//!
//! | the plan | the file |
//! |---|---|
//! | moves a storage out | `PageOut`, and where its bytes are needed `PageOutEnd`, until which it stays |
//! | brings it back | `PageInBegin` a few nodes before, `PageIn` where it is read first; views of it are made anew |
//! | moves it out again, with its copy left behind | nothing |
//!
//! A storage that is not read after it came back is not moved. So each page is read, and the last `PageIn` of a page says that it is the last.

use std::collections::VecDeque;

use remat_ir::{ElementType, Graph, Op, OpId, OpKind, StorageId, TensorId, ValueType};
use remat_onnx::proto::type_proto::Value;
use remat_onnx::proto::{AttributeProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto};
use remat_onnx::{OnnxError, type_proto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build;
use crate::names::Names;
use crate::occupancy::Occupancy;

/// The domain of the operators.
pub(crate) const DOMAIN: &str = remat_operators::PAGES_DOMAIN;

/// Reading ahead begins so many runs before the first reader.
const AHEAD: usize = 8;

/// What was made of pages.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// How often storages come back.
    pub(crate) transfers: usize,
    /// The values that were made, with their types.
    pub(crate) values: Vec<(String, ValueType)>,
}

/// Puts the pages of `rewritten` into the model that was written of it. With `waits`, nothing runs while a page is written.
///
/// # Errors
/// [`OnnxError::Unsupported`] if a page is no tensor whose bits lie in its own memory, or the graph is in tiles.
pub(crate) fn insert(
    proto: &mut ModelProto,
    rewritten: &Graph,
    names: &mut Names,
    waits: bool,
) -> Result<Made, OnnxError> {
    let transfers = Transfers::of(rewritten);
    if transfers.is_empty() {
        return Ok(Made::default());
    }
    if let Some(op) = rewritten.ops.iter().find(|op| !op.parts.is_empty()) {
        return Err(unsupported(&op.name, "a graph in tiles has no pages"));
    }
    let nodes = std::mem::take(&mut proto.graph.mut_or_insert_default().node);
    let mut pager = Pager::new(rewritten, transfers, names, waits);
    let by_result = rewritten.ops.iter_enumerated().filter_map(|(id, op)| {
        let first = op.results().next()?;
        Some((rewritten.tensors[first].name.as_str(), id))
    });
    let by_result: FxHashMap<&str, OpId> = by_result.collect();
    for node in nodes {
        let made = node.output.iter().find(|name| !name.is_empty());
        match made.and_then(|name| by_result.get(name.as_str())) {
            Some(&op) => {
                pager.move_until(op)?;
                pager.run(op, node)?;
            }
            None => pager.nodes.push(node),
        }
    }
    pager.move_until(rewritten.ops.next_key())?;
    pager.return_outputs()?;
    let (nodes, made) = pager.finish();
    proto.graph.mut_or_insert_default().node = nodes;
    proto.opset_import.push(OperatorSetIdProto {
        domain: DOMAIN.to_owned(),
        version: 1,
        ..OperatorSetIdProto::default()
    });
    Ok(made)
}

fn unsupported(name: &str, what: &str) -> OnnxError {
    OnnxError::Unsupported {
        name: name.to_owned(),
        what: what.to_owned(),
    }
}

/// The transfers that something reads.
#[derive(Debug, Default)]
struct Transfers {
    /// The ops that move out what comes back.
    out: FxHashSet<OpId>,
    /// The ops that bring back what is read.
    back: FxHashSet<OpId>,
    /// By the op before which reading ahead may begin: the op that brings back.
    ahead: Vec<(OpId, OpId)>,
}

impl Transfers {
    fn of(graph: &Graph) -> Self {
        let mut found = Self::default();
        // Backwards: whether a storage is read later on, before it comes back again, and whether it comes back at all.
        let mut is_read: FxHashSet<StorageId> = FxHashSet::default();
        let mut comes_back: FxHashSet<StorageId> = FxHashSet::default();
        is_read.extend(graph.outputs.iter().map(|&output| graph.tensors[output].storage));
        for (id, op) in graph.ops.iter_enumerated().collect::<Vec<_>>().into_iter().rev() {
            match op.kind {
                OpKind::PageIn => {
                    if let Some(storage) = moved(graph, op).filter(|storage| is_read.remove(storage)) {
                        comes_back.insert(storage);
                        found.back.insert(id);
                    }
                }
                OpKind::PageOut => {
                    if moved(graph, op).is_some_and(|storage| comes_back.contains(&storage)) {
                        found.out.insert(id);
                    }
                }
                _ => is_read.extend(op.reads().map(|tensor| graph.tensors[tensor].storage)),
            }
        }
        let mut runs: VecDeque<OpId> = VecDeque::new();
        for (id, op) in graph.ops.iter_enumerated() {
            if op.kind.is_run() {
                runs.push_back(id);
                if runs.len() > AHEAD {
                    runs.pop_front();
                }
            } else if found.back.contains(&id) {
                found.ahead.push((runs.front().copied().unwrap_or(id), id));
            }
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.back.is_empty()
    }
}

/// The storage that an op moves.
fn moved(graph: &Graph, op: &Op) -> Option<StorageId> {
    op.inputs
        .iter()
        .flatten()
        .next()
        .map(|&tensor| graph.tensors[tensor].storage)
}

/// Where a storage that is moved is.
#[derive(Clone, Debug)]
enum Whereabouts {
    /// On its way out, under this ticket.
    Leaving(String),
    /// In the second memory, under this ticket.
    Out(String),
    /// It is being read ahead.
    Announced(String),
    /// In memory, with a copy under this ticket, if it comes back again.
    Back(String),
}

/// The nodes as they become.
struct Pager<'a> {
    graph: &'a Graph,
    transfers: Transfers,
    names: &'a mut Names,
    waits: bool,
    occupancy: Occupancy,
    nodes: Vec<NodeProto>,
    made: Made,
    /// The first op that was not looked at.
    next: OpId,
    /// Storages that were moved.
    places: FxHashMap<StorageId, Whereabouts>,
    /// Storages on their way out, the oldest first.
    leaving: VecDeque<StorageId>,
    /// What stands for a tensor now; without an entry its own name, as long as its storage was not moved.
    now: FxHashMap<TensorId, String>,
    /// The nodes that made views, by the view.
    views: FxHashMap<TensorId, (OpId, NodeProto)>,
    /// Graph outputs that are moved: what comes back for the last time has their names.
    returned: FxHashSet<TensorId>,
    /// Tensors without elements, by the type that they have.
    likes: Vec<(ElementType, NodeProto)>,
}

impl<'a> Pager<'a> {
    fn new(graph: &'a Graph, transfers: Transfers, names: &'a mut Names, waits: bool) -> Self {
        let back = transfers.back.iter().filter_map(|&op| moved(graph, &graph.ops[op]));
        let moved: FxHashSet<StorageId> = back.collect();
        let outputs = graph.outputs.iter().copied();
        let returned: FxHashSet<TensorId> = outputs
            .filter(|&output| moved.contains(&graph.tensors[output].storage))
            .collect();
        let mut pager = Self {
            graph,
            transfers,
            names,
            waits,
            occupancy: Occupancy::of(graph),
            nodes: Vec::new(),
            made: Made::default(),
            next: OpId::from(0),
            places: FxHashMap::default(),
            leaving: VecDeque::new(),
            now: FxHashMap::default(),
            views: FxHashMap::default(),
            returned,
            likes: Vec::new(),
        };
        for &output in &graph.outputs {
            if pager.returned.contains(&output) && !pager.now.contains_key(&output) {
                let tensor = &graph.tensors[output];
                let name = pager.fresh(&format!("{}__first", tensor.name), &tensor.ty);
                pager.now.insert(output, name);
            }
        }
        pager
    }

    /// A new value of this type.
    fn fresh(&mut self, base: &str, ty: &ValueType) -> String {
        let name = self.names.fresh(base);
        self.made.values.push((name.clone(), ty.clone()));
        name
    }

    fn ticket(&mut self, storage: StorageId, what: &str) -> String {
        let base = format!("{}__{what}", self.graph.storage_name(storage));
        self.fresh(&base, &ValueType::tensor(ElementType::Int64, &[1]))
    }

    fn root(&self, storage: StorageId) -> TensorId {
        self.graph.storages[storage].root
    }

    /// Does what the plan moves before `op`.
    fn move_until(&mut self, op: OpId) -> Result<(), OnnxError> {
        let graph = self.graph;
        while self.next < op {
            let id = self.next;
            self.next = OpId::from(id.index() + 1);
            let Some(storage) = moved(graph, &graph.ops[id]) else {
                continue;
            };
            if self.transfers.out.contains(&id) {
                self.page_out(storage)?;
            } else if self.transfers.back.contains(&id) {
                self.end_leaving(storage);
                self.announce(storage);
            }
        }
        if graph.ops.get(op).is_some() {
            self.next = OpId::from(op.index() + 1);
        }
        Ok(())
    }

    fn page_out(&mut self, storage: StorageId) -> Result<(), OnnxError> {
        let root = self.root(storage);
        let ticket = match self.places.get(&storage) {
            // A copy is there.
            Some(Whereabouts::Back(ticket)) => Whereabouts::Out(ticket.clone()),
            Some(elsewhere) => elsewhere.clone(),
            None => {
                let tensor = &self.graph.tensors[root];
                let ValueType::Tensor { element, .. } = tensor.ty else {
                    return Err(unsupported(
                        &tensor.name,
                        "only tensors can be moved to the second memory",
                    ));
                };
                if element == ElementType::String || element.bits() < 8 {
                    let what = format!(
                        "elements of type {} cannot be moved to the second memory",
                        element.name()
                    );
                    return Err(unsupported(&tensor.name, &what));
                }
                let (name, ticket) = (self.current(root)?, self.ticket(storage, "page_out"));
                self.nodes.push(node("PageOut", &[&name], &[&ticket], Vec::new()));
                self.leaving.push_back(storage);
                Whereabouts::Leaving(ticket)
            }
        };
        self.places.insert(storage, ticket);
        if self.waits {
            self.end_leaving(storage);
        }
        Ok(())
    }

    /// Waits until a storage has left, if it is on its way.
    fn end_leaving(&mut self, storage: StorageId) {
        let Some(Whereabouts::Leaving(ticket)) = self.places.get(&storage).cloned() else {
            return;
        };
        self.leaving.retain(|&other| other != storage);
        let root = self.root(storage);
        let name = self.now.get(&root).cloned();
        let name = name.unwrap_or_else(|| self.graph.tensors[root].name.clone());
        let left = self.ticket(storage, "page_left");
        self.nodes
            .push(node("PageOutEnd", &[&ticket, &name], &[&left], Vec::new()));
        self.now
            .retain(|&tensor, _| self.graph.tensors[tensor].storage != storage);
        self.places.insert(storage, Whereabouts::Out(left));
    }

    /// Begins to read ahead what is in the second memory.
    fn announce(&mut self, storage: StorageId) {
        let Some(Whereabouts::Out(ticket)) = self.places.get(&storage).cloned() else {
            return;
        };
        let announced = self.ticket(storage, "page_in");
        self.nodes
            .push(node("PageInBegin", &[&ticket], &[&announced], Vec::new()));
        self.now
            .retain(|&tensor, _| self.graph.tensors[tensor].storage != storage);
        self.places.insert(storage, Whereabouts::Announced(announced));
    }

    /// The node of an op, after what it needs.
    fn run(&mut self, op: OpId, mut node: NodeProto) -> Result<(), OnnxError> {
        while let Some(&oldest) = self.leaving.front() {
            let waiting = self.leaving.iter().map(|&storage| self.graph.storages[storage].bytes);
            if self.occupancy.has_room(op, waiting) {
                break;
            }
            self.end_leaving(oldest);
        }
        let early: Vec<OpId> = self
            .transfers
            .ahead
            .iter()
            .filter(|&&(begin, back)| begin <= op && self.next <= back)
            .map(|&(_, back)| back)
            .collect();
        for storage in early
            .into_iter()
            .filter_map(|back| moved(self.graph, &self.graph.ops[back]))
        {
            self.announce(storage);
        }
        self.rename_operands(op, &mut node)?;
        let entry = &self.graph.ops[op];
        for (place, &result) in entry.outputs.iter().enumerate() {
            let Some(result) = result else { continue };
            if let Some(name) = self.now.get(&result).filter(|_| self.returned.contains(&result)) {
                node.output[place].clone_from(name);
            }
            let storage = self.graph.tensors[result].storage;
            if self.root(storage) != result {
                self.views.insert(result, (op, node.clone()));
                // A view of what came back.
                if matches!(self.places.get(&storage), Some(Whereabouts::Back(_))) {
                    self.now.insert(result, node.output[place].clone());
                }
            }
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Has a node read what stands for its operands now.
    fn rename_operands(&mut self, op: OpId, node: &mut NodeProto) -> Result<(), OnnxError> {
        let entry = &self.graph.ops[op];
        for (place, &operand) in entry.inputs.iter().enumerate() {
            if let Some((operand, name)) = operand.zip(node.input.get_mut(place)) {
                *name = self.current(operand)?;
            }
        }
        let mut captured = FxHashMap::default();
        for &capture in &entry.captures {
            captured.insert(self.graph.tensors[capture].name.clone(), self.current(capture)?);
        }
        captured.retain(|old, new| old != new);
        remat_onnx::rename_captures(node, &captured);
        Ok(())
    }

    /// What stands for a tensor now, after making it where it came back and was not read yet.
    fn current(&mut self, tensor: TensorId) -> Result<String, OnnxError> {
        let graph = self.graph;
        let storage = graph.tensors[tensor].storage;
        if let Some(name) = self.now.get(&tensor) {
            return Ok(name.clone());
        }
        let root = self.root(storage);
        match self.places.get(&storage) {
            None | Some(Whereabouts::Leaving(_)) => return Ok(graph.tensors[tensor].name.clone()),
            Some(Whereabouts::Announced(ticket)) => {
                let ticket = ticket.clone();
                self.page_in(storage, &ticket);
            }
            Some(Whereabouts::Back(_)) => {}
            Some(Whereabouts::Out(_)) => {
                return Err(unsupported(
                    &graph.tensors[tensor].name,
                    "it is read while it is in the second memory",
                ));
            }
        }
        // Views of views, from the one that is asked for back to what is there.
        let mut chain = Vec::new();
        let mut wanted = tensor;
        while wanted != root && !self.now.contains_key(&wanted) {
            let (op, _) = self
                .views
                .get(&wanted)
                .ok_or_else(|| unsupported(&graph.tensors[wanted].name, "it shares bytes and is no view"))?;
            let of = graph.ops[*op].inputs.iter().flatten();
            let base = of
                .copied()
                .find(|&of| graph.tensors[of].storage == storage && of != wanted);
            chain.push(wanted);
            wanted = base.ok_or_else(|| unsupported(&graph.tensors[wanted].name, "it is a view of nothing"))?;
        }
        for view in chain.into_iter().rev() {
            self.view_again(view)?;
        }
        Ok(self.now.get(&tensor).cloned().unwrap_or_default())
    }

    /// Runs the node of a view again, whose operand is there.
    fn view_again(&mut self, view: TensorId) -> Result<(), OnnxError> {
        let graph = self.graph;
        let Some((op, mut node)) = self.views.get(&view).cloned() else {
            return Ok(());
        };
        self.rename_operands(op, &mut node)?;
        for (place, &result) in graph.ops[op].outputs.iter().enumerate() {
            let Some(result) = result else { continue };
            let tensor = &graph.tensors[result];
            let name = self.fresh(&format!("{}__back", tensor.name), &tensor.ty);
            node.output[place].clone_from(&name);
            if tensor.storage == graph.tensors[view].storage {
                self.now.insert(result, name);
            }
        }
        node.name = self.names.fresh(&format!("{}__back", graph.ops[op].name));
        self.nodes.push(node);
        Ok(())
    }

    /// Makes the root of a storage again.
    fn page_in(&mut self, storage: StorageId, ticket: &str) {
        let graph = self.graph;
        let root = self.root(storage);
        let tensor = &graph.tensors[root];
        let later = self.transfers.back.iter().filter(|&&back| back >= self.next);
        let is_last = !later
            .into_iter()
            .any(|&back| moved(graph, &graph.ops[back]) == Some(storage));
        let name = match is_last && self.returned.contains(&root) {
            true => tensor.name.clone(),
            false => self.fresh(&format!("{}__back", tensor.name), &tensor.ty),
        };
        let like = self.like(&tensor.ty);
        let read = self.ticket(storage, "page_read");
        let last = vec![build::int("last", i64::from(is_last))];
        self.nodes.push(node("PageIn", &[ticket, &like], &[&name, &read], last));
        self.now.insert(root, name);
        self.places.insert(storage, Whereabouts::Back(read));
        self.made.transfers += 1;
    }

    /// A tensor of the same type without elements.
    fn like(&mut self, ty: &ValueType) -> String {
        let element = ty.element().unwrap_or(ElementType::Float32);
        if let Some((_, node)) = self.likes.iter().find(|(known, _)| *known == element) {
            return node.name.clone();
        }
        let empty = ValueType::tensor(element, &[0]);
        let name = self.fresh(&format!("remat_like_{}", element.name()), &empty);
        let number = type_proto(&empty).and_then(|proto| match proto.value {
            Some(Value::TensorType(tensor)) => Some(tensor.elem_type),
            _ => None,
        });
        let value = TensorProto {
            dims: vec![0],
            data_type: number.unwrap_or_default(),
            ..TensorProto::default()
        };
        let constant = build::node("Constant", &[], &name, vec![build::tensor(value)]);
        self.likes.push((element, constant));
        name
    }

    /// Graph outputs that came back get their names.
    fn return_outputs(&mut self) -> Result<(), OnnxError> {
        let outputs = self.graph.outputs.iter().copied();
        let returned: Vec<TensorId> = outputs.filter(|output| self.returned.contains(output)).collect();
        for output in returned {
            let name = self.current(output)?;
            let wanted = &self.graph.tensors[output].name;
            if name != *wanted {
                self.nodes.push(build::node("Identity", &[&name], wanted, Vec::new()));
            }
        }
        Ok(())
    }

    fn finish(self) -> (Vec<NodeProto>, Made) {
        let mut nodes: Vec<NodeProto> = self.likes.into_iter().map(|(_, node)| node).collect();
        nodes.extend(self.nodes);
        (nodes, self.made)
    }
}

/// A node of the domain; it is called by its first result.
fn node(op_type: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    let mut node = build::node(
        op_type,
        inputs,
        outputs.first().copied().unwrap_or_default(),
        attributes,
    );
    DOMAIN.clone_into(&mut node.domain);
    node.output = outputs.iter().map(|&output| output.to_owned()).collect();
    node
}
