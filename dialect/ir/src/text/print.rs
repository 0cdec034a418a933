//! Prints a graph.

use std::fmt::{self, Display, Formatter};

use typed_index_collections::TiVec;

use crate::{Effects, Graph, Op, OpId, OpKind, StorageClass, TensorId};

use super::name::{Name, Quoted};
use super::value::comma_separated;

/// The textual form; the module documentation of the form lists what survives a round trip.
///
/// # Panics
/// If an id of the graph points outside of its table.
impl Display for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(self, f).print()
    }
}

struct Printer<'g, 'f, 'b> {
    graph: &'g Graph,
    f: &'f mut Formatter<'b>,
    /// Graph inputs and constants in the order of their lines.
    sources: Vec<TensorId>,
    /// Where each of them stands in that order; zero for every other tensor.
    place: TiVec<TensorId, usize>,
    /// How many of them are printed.
    printed: usize,
}

impl<'g, 'f, 'b> Printer<'g, 'f, 'b> {
    /// Lays out the lines of sources: by id, but with the inputs among them in the order of the signature.
    fn new(graph: &'g Graph, f: &'f mut Formatter<'b>) -> Self {
        let mut signature = graph.inputs.iter().copied();
        let ids = graph
            .tensors
            .iter_enumerated()
            .filter(|(_, tensor)| tensor.producer.is_none());
        let sources: Vec<TensorId> = ids
            .map(|(id, tensor)| match graph.storages[tensor.storage].class {
                StorageClass::Input => signature.next().unwrap_or(id),
                StorageClass::Constant | StorageClass::Intermediate => id,
            })
            .collect();
        let mut place = TiVec::from(vec![0; graph.tensors.len()]);
        for (i, &source) in sources.iter().enumerate() {
            place[source] = i;
        }
        Self {
            graph,
            f,
            sources,
            place,
            printed: 0,
        }
    }

    fn print(&mut self) -> fmt::Result {
        writeln!(self.f, "graph {} {{", Quoted(&self.graph.name))?;
        if let Some(block) = &self.graph.block {
            writeln!(self.f, "  block {} align {}", block.bytes, block.alignment)?;
        }
        for (id, op) in self.graph.ops.iter_enumerated() {
            self.sources_before(op)?;
            match op.kind.memory_word() {
                Some(word) => self.memory(word, id, op)?,
                None => self.op(id, op)?,
            }
        }
        self.sources_up_to(self.sources.len())?;
        for &output in &self.graph.outputs {
            self.f.write_str("  output ")?;
            self.tensor(output)?;
            self.f.write_str("\n")?;
        }
        self.f.write_str("}\n")
    }

    /// The sources with smaller ids than the results of `op`, and whatever more it reads.
    fn sources_before(&mut self, op: &Op) -> fmt::Result {
        let left = &self.sources[self.printed..];
        let first = op.results().min();
        let smaller = left
            .iter()
            .take_while(|&&id| first.is_some_and(|first| id < first))
            .count();
        let read = op.reads().filter(|&id| self.graph.tensors[id].producer.is_none());
        let needed = read.map(|id| self.place[id] + 1).max().unwrap_or(0);
        self.sources_up_to(needed.max(self.printed + smaller))
    }

    fn sources_up_to(&mut self, end: usize) -> fmt::Result {
        while self.printed < end {
            let id = self.sources[self.printed];
            let storage = self.graph.tensors[id].storage;
            let head = match self.graph.storages[storage].class {
                StorageClass::Input => "  input ",
                StorageClass::Constant | StorageClass::Intermediate => "  const ",
            };
            self.f.write_str(head)?;
            self.typed(id)?;
            self.bytes(id)?;
            self.values(id)?;
            self.f.write_str("\n")?;
            self.printed += 1;
        }
        Ok(())
    }

    /// An op that computes nothing.
    fn memory(&mut self, word: &str, id: OpId, op: &Op) -> fmt::Result {
        write!(self.f, "  {word} ")?;
        let operand = op.reads().next();
        let usual = operand.map(|id| format!("{word} {}", self.graph.tensors[id].name));
        if usual.as_ref() != Some(&op.name) {
            write!(self.f, "@{} ", Name(&op.name))?;
        }
        if let Some(operand) = operand {
            self.tensor(operand)?;
        }
        if let Some(offset) = self.graph.block.as_ref().and_then(|block| block.returns.get(&id)) {
            write!(self.f, " at {offset}")?;
        }
        self.f.write_str("\n")
    }

    fn op(&mut self, id: OpId, op: &Op) -> fmt::Result {
        self.f.write_str("  ")?;
        self.results(op)?;
        match op.kind {
            OpKind::Recompute { of } => {
                let original = &self.graph.ops[of].name;
                write!(self.f, "recompute @{} of @{} ", Name(&op.name), Name(original))?;
            }
            _ => write!(self.f, "compute @{} ", Name(&op.name))?,
        }
        if !op.domain.is_empty() {
            write!(self.f, "{}::", Name(&op.domain))?;
        }
        write!(self.f, "{}(", Name(&op.op_type))?;
        self.tensors(op.inputs.iter().copied())?;
        self.f.write_str(")")?;
        if !op.attributes.is_empty() {
            self.f.write_str(" {")?;
            comma_separated(self.f, &op.attributes, |f, (name, value)| {
                write!(f, "{} = {value}", Name(name))
            })?;
            self.f.write_str("}")?;
        }
        if !op.captures.is_empty() {
            self.f.write_str(" captures(")?;
            self.tensors(op.captures.iter().copied().map(Some))?;
            self.f.write_str(")")?;
        }
        match op.effects {
            Effects::Pure => {}
            Effects::Random => self.f.write_str(" random")?,
            Effects::Stateful => self.f.write_str(" stateful")?,
            Effects::ControlFlow => self.f.write_str(" control_flow")?,
        }
        if let Some(source) = op.source {
            write!(self.f, " source {source}")?;
        }
        if let Some(workspace) = self.graph.block.as_ref().and_then(|block| block.workspaces.get(&id)) {
            write!(self.f, " workspace {} at {}", workspace.bytes, workspace.offset)?;
        }
        self.f.write_str("\n")
    }

    /// What stands before the keyword of an op; nothing if it has no results.
    fn results(&mut self, op: &Op) -> fmt::Result {
        match op.outputs.as_slice() {
            [] => return Ok(()),
            [_] => self.result(op, 0)?,
            several => {
                self.f.write_str("(")?;
                for i in 0..several.len() {
                    if i > 0 {
                        self.f.write_str(", ")?;
                    }
                    self.result(op, i)?;
                }
                self.f.write_str(")")?;
            }
        }
        self.f.write_str(" = ")
    }

    fn result(&mut self, op: &Op, position: usize) -> fmt::Result {
        let Some(id) = op.outputs[position] else {
            return self.f.write_str("_");
        };
        self.typed(id)?;
        self.placement(op, id)?;
        match op.parts.get(position).and_then(Option::as_ref) {
            Some(part) if part.is_sum => write!(self.f, " part {part}"),
            Some(part) => write!(self.f, " part of {part}"),
            None => Ok(()),
        }
    }

    /// Where a result lives.
    fn placement(&mut self, op: &Op, id: TensorId) -> fmt::Result {
        let storage = self.graph.tensors[id].storage;
        if self.graph.is_view(id) {
            self.f.write_str(" view of ")?;
            let base = op.reads().find(|&base| self.graph.tensors[base].storage == storage);
            return self.tensor(base.unwrap_or(self.graph.storages[storage].root));
        }
        if self.graph.storages[storage].class == StorageClass::Constant {
            self.f.write_str(" const")?;
        }
        self.bytes(id)?;
        self.values(id)?;
        match self.graph.block.as_ref().and_then(|block| block.results.get(&storage)) {
            Some(offset) => write!(self.f, " at {offset}"),
            None => Ok(()),
        }
    }

    /// The size of the storage that `id` roots, if its type gives another.
    fn bytes(&mut self, id: TensorId) -> fmt::Result {
        let tensor = &self.graph.tensors[id];
        let bytes = self.graph.storages[tensor.storage].bytes;
        match bytes {
            _ if tensor.ty.bytes() == Ok(bytes) => Ok(()),
            Some(bytes) => write!(self.f, " bytes {bytes}"),
            None => self.f.write_str(" bytes unknown"),
        }
    }

    /// The elements of a constant, where the graph states them.
    fn values(&mut self, id: TensorId) -> fmt::Result {
        let Some(elements) = self.graph.values.get(&id) else {
            return Ok(());
        };
        self.f.write_str(" values [")?;
        comma_separated(self.f, elements, |f, element| element.fmt(f))?;
        self.f.write_str("]")
    }

    fn typed(&mut self, id: TensorId) -> fmt::Result {
        self.tensor(id)?;
        write!(self.f, " : {}", self.graph.tensors[id].ty)
    }

    fn tensor(&mut self, id: TensorId) -> fmt::Result {
        write!(self.f, "%{}", Name(&self.graph.tensors[id].name))
    }

    fn tensors(&mut self, ids: impl Iterator<Item = Option<TensorId>>) -> fmt::Result {
        let tensors = &self.graph.tensors;
        comma_separated(self.f, ids, |f, id| match id {
            Some(id) => write!(f, "%{}", Name(&tensors[id].name)),
            None => f.write_str("_"),
        })
    }
}
