//! From the body of a function to a graph.

use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, ValueLike};
use remat_ir::{
    Effects, Graph, GraphBuilder, Op, OpId, OpKind, OpSpec, Placement, ResultSpec, SizeError, StorageClass, TensorId,
    ValueType,
};
use rustc_hash::FxHashSet;
use typed_index_collections::TiVec;

use crate::attributes::attributes;
use crate::body::Body;
use crate::error::{Diagnosed, ImportError};
use crate::function::set_integer;
use crate::fusion::{self, FUSION};
use crate::held::{HeldToBlockEnd, held};
use crate::indexing::indexing;
use crate::regions;
use crate::types::{is_ranked, is_tensor, value_type};
use crate::units::{Entry, Role, Table, ValueIndex};

/// How a function is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportOptions {
    /// The number that dynamic extents count as; if absent, sizes that depend on them are errors.
    pub dynamic_extent: Option<u64>,
    /// Whether the function may already contain operations of the `remat` dialect. If so, optimization barriers become views, and markers and
    /// transfers become `dealloc`, `page_out` and `page_in` ops.
    pub scheduled: bool,
}

/// A block that was read.
pub struct Imported<'c> {
    pub(crate) body: Body<'c>,
    pub(crate) graph: Graph,
    pub(crate) table: Table<'c>,
    /// The tensor that stands for each value.
    pub(crate) tensors: Vec<TensorId>,
}

impl<'c> Imported<'c> {
    /// The graph: one op for each operation that does something, in the order of the body. [`remat_ir::Op::source`] is the position of the
    /// operation in the body.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Removes the ops that only free or move memory from the graph.
    pub fn drop_memory_ops(&mut self) {
        let graph = std::mem::take(&mut self.graph);
        let mut renamed = TiVec::with_capacity(graph.ops.len());
        let mut kept: TiVec<OpId, Op> = TiVec::with_capacity(graph.ops.len());
        for op in graph.ops {
            renamed.push(kept.next_key());
            if op.kind.is_run() {
                kept.push(op);
            }
        }
        self.graph = Graph { ops: kept, ..graph };
        for tensor in &mut self.graph.tensors {
            tensor.producer = tensor.producer.and_then(|op| renamed.get(op).copied());
        }
    }

    /// Sets a 64-bit integer attribute of the operation of an op.
    pub fn set_integer(&self, op: OpId, name: &str, value: i64) {
        let source = self.graph.ops.get(op).and_then(|op| op.source);
        if let Some(entry) = source.and_then(|source| self.table.entries.get(source as usize)) {
            set_integer(entry.op, name, value);
        }
    }

    /// The block that was read.
    #[must_use]
    pub fn body(&self) -> &Body<'c> {
        &self.body
    }

    /// Whether an operation writes into an empty tensor. Where equal ones are merged, results come to share buffers although they are not
    /// related, unless [`Imported::apply`] puts allocations in their place.
    #[must_use]
    pub fn writes_into_empties(&self) -> bool {
        self.table.writes_into_empties()
    }
}

impl<'c> Body<'c> {
    /// Reads the block. What it reads from outside are inputs of the graph, and what other blocks read of it are outputs.
    ///
    /// # Errors
    /// [`ImportError`] with the operation that causes it.
    pub fn import(&self, options: &ImportOptions) -> Result<Imported<'c>, Diagnosed<'c, ImportError>> {
        let table = Table::of(self.block()).ok_or_else(|| Diagnosed::at(self.holder(), ImportError::NoTerminator))?;
        let mut importer = Importer {
            options: *options,
            builder: GraphBuilder::new(self.name()),
            tensors: Vec::with_capacity(table.values.len()),
            table: &table,
            order: None,
            held: Vec::new(),
            returns: returns(&table),
            dropped: FxHashSet::default(),
        };
        importer.inputs(self.holder())?;
        for position in 0..table.entries.len() {
            importer.entry(position)?;
        }
        for &value in &table.returned {
            if is_tensor(&importer.ty(value)) {
                importer.builder.output(importer.tensors[value]);
            }
        }
        for &tensor in &importer.held {
            importer.builder.output(tensor);
        }
        let Importer { builder, tensors, .. } = importer;
        Ok(Imported {
            body: self.clone(),
            graph: builder.finish(),
            table,
            tensors,
        })
    }
}

struct Importer<'t, 'c> {
    options: ImportOptions,
    builder: GraphBuilder,
    /// The tensor of each value so far.
    tensors: Vec<TensorId>,
    table: &'t Table<'c>,
    /// What the next operation with side effects reads to come after the last one.
    order: Option<TensorId>,
    /// What MLIR frees at the end of the block.
    held: Vec<TensorId>,
    /// The positions of all `remat.page_in`, and the page that each reads.
    returns: Vec<(usize, ValueIndex)>,
    /// Pages that are gone.
    dropped: FxHashSet<ValueIndex>,
}

/// Where what was paged out comes back.
fn returns(table: &Table<'_>) -> Vec<(usize, ValueIndex)> {
    let back = table.entries.iter().enumerate();
    back.filter(|(_, entry)| entry.domain == "remat" && entry.op_type == "page_in")
        .filter_map(|(position, entry)| Some((position, entry.operands.first().copied().flatten()?)))
        .collect()
}

impl<'c> Importer<'_, 'c> {
    fn inputs(&mut self, holder: OperationRef<'c, 'c>) -> Result<(), Diagnosed<'c, ImportError>> {
        for argument in 0..self.table.arguments + self.table.outer {
            let ty = self.ty(argument);
            let name = match argument.checked_sub(self.table.arguments) {
                None => format!("arg{argument}"),
                Some(outer) => format!("outer{outer}"),
            };
            let tensor = self.builder.input(name.clone(), ty.clone());
            let tensor = tensor.or_else(|_| self.builder.input(name, ValueType::Unknown));
            self.tensors.push(tensor.map_err(|source| {
                let ty = self.table.values[argument].value.r#type().to_string();
                let op = "argument".to_owned();
                Diagnosed::at(
                    holder,
                    ImportError::Size {
                        op,
                        result: argument,
                        ty,
                        source,
                    },
                )
            })?);
        }
        Ok(())
    }

    fn entry(&mut self, position: usize) -> Result<(), Diagnosed<'c, ImportError>> {
        let entry = &self.table.entries[position];
        if entry.domain == "remat" && !self.options.scheduled {
            let name = format!("remat.{}", entry.op_type);
            return Err(Diagnosed::at(entry.op, ImportError::Scheduled(name)));
        }
        if entry.domain == "remat"
            && entry.op_type != "recompute"
            && let Some(&Some(value)) = entry.operands.first()
        {
            return self.on_memory(position, value);
        }
        match entry.role {
            Role::Resident | Role::PartOf(_) => self.sources(position),
            Role::Op => self.op(position),
        }
    }

    /// A marker or a transfer of the dialect. A page, and what comes back from it, are the tensor that left.
    fn on_memory(&mut self, position: usize, value: ValueIndex) -> Result<(), Diagnosed<'c, ImportError>> {
        let entry = &self.table.entries[position];
        let is_drop = entry.op_type == "page_drop";
        if self.dropped.contains(&value) || (is_drop && !self.dropped.insert(value)) {
            return Err(Diagnosed::at(entry.op, ImportError::Dropped(full_name(entry))));
        }
        let tensor = self.tensors[value];
        match self.table.entries[position].op_type.as_str() {
            "dealloc" if self.comes_back(position, tensor) => {
                // A copy waits in the second memory.
                self.builder.page_out(tensor);
            }
            "dealloc" => {
                self.builder.dealloc(tensor);
            }
            "page_out" => {
                self.builder.page_out(tensor);
                self.tensors.push(tensor);
            }
            "page_in" => {
                self.builder.page_in(tensor);
                self.tensors.push(tensor);
            }
            // The graph has no op for a page that is dropped.
            _ => {}
        }
        Ok(())
    }

    /// Whether a page that there is already brings the tensor back after this position.
    fn comes_back(&self, position: usize, tensor: TensorId) -> bool {
        let storage = |tensor: TensorId| self.builder.graph().tensors[tensor].storage;
        let later = self.returns.partition_point(|&(at, _)| at < position);
        let mut pages = self.returns[later..]
            .iter()
            .filter_map(|&(_, page)| self.tensors.get(page).copied());
        pages.any(|page| storage(page) == storage(tensor))
    }

    /// Values that are no results of ops: constants, and what parts of an op hand on within it.
    fn sources(&mut self, position: usize) -> Result<(), Diagnosed<'c, ImportError>> {
        let entry = &self.table.entries[position];
        for result in 0..entry.results {
            let ty = match entry.role {
                Role::Resident => self.ty(entry.first_result + result),
                Role::PartOf(_) | Role::Op => ValueType::Unknown,
            };
            let tensor = self.builder.constant(result_name(entry, position, result), ty);
            self.tensors
                .push(tensor.map_err(|source| self.size_error(position, result, source))?);
        }
        Ok(())
    }

    fn op(&mut self, position: usize) -> Result<(), Diagnosed<'c, ImportError>> {
        let entry = &self.table.entries[position];
        let reads = self.reads(position);
        let effects = match entry.effects {
            Effects::Pure if !self.can_be_set_apart(position, &reads) => Effects::Stateful,
            effects => effects,
        };
        let costs = regions::costs(entry.op, entry.facts).into_iter();
        let mut attributes = attributes(entry.op);
        attributes.extend(costs.map(|(name, value)| (name.to_owned(), value)));
        let members = self.table.members(position);
        let is_fusion = members.len() > 1 && fusion::takes_in(&entry.domain, &entry.op_type);
        if is_fusion {
            let members = members.iter().map(|&member| self.table.entries[member].op);
            let costs = fusion::costs(&entry.op_type, members).into_iter();
            attributes.extend(costs.map(|(name, value)| (name.to_owned(), value)));
        }
        attributes.extend(indexing(self.table, position).unwrap_or_default());
        let mut spec = OpSpec {
            name: op_name(entry, position),
            kind: OpKind::Compute,
            domain: if is_fusion {
                "stablehlo".to_owned()
            } else {
                entry.domain.clone()
            },
            op_type: if is_fusion {
                FUSION.to_owned()
            } else {
                entry.op_type.clone()
            },
            inputs: reads
                .operands
                .iter()
                .map(|read| read.map(|value| self.tensors[value]))
                .collect(),
            captures: reads.captures.iter().map(|&value| self.tensors[value]).collect(),
            results: Vec::with_capacity(entry.results + 1),
            effects,
            attributes,
            source: u32::try_from(position).ok(),
            bodies: Vec::new(),
            parts: Vec::new(),
        };
        for result in 0..entry.results {
            let ty = self.ty(entry.first_result + result);
            let placement = self.placement(entry, result, &ty);
            if placement == Placement::New {
                self.check_size(position, result, &ty)?;
            }
            spec.results.push(Some(ResultSpec {
                name: result_name(entry, position, result),
                ty,
                placement,
            }));
        }
        let ordered = entry.effects != Effects::Pure;
        if ordered {
            spec.captures.extend(self.order);
            spec.results.push(Some(ResultSpec {
                name: format!("order of {}", spec.name),
                ty: ValueType::Unknown,
                placement: Placement::Constant,
            }));
        }
        let held = held(entry.op);
        spec.results.extend(self.copied(entry, &held, &spec.name));
        let (_, results) = self
            .builder
            .op(spec)
            .map_err(|source| self.size_error(position, 0, source))?;
        let mut results = results.into_iter().flatten();
        self.tensors.extend(results.by_ref().take(entry.results));
        if ordered {
            self.order = results.next();
        }
        self.held.extend(results);
        self.hold(entry, &held);
        Ok(())
    }

    /// Notes what the operation makes MLIR hold to the end of the block, which are some of its results and operands.
    fn hold(&mut self, entry: &Entry<'c>, held: &HeldToBlockEnd) {
        let results = held.results.iter().map(|result| entry.first_result + result);
        let operands = held.operands.iter();
        let operands = operands.filter_map(|&operand| entry.operands.get(operand).copied().flatten());
        let graph = self.builder.graph();
        let is_own = |tensor: &TensorId| {
            let storage = &graph.storages[graph.tensors[*tensor].storage];
            storage.class == StorageClass::Intermediate && is_tensor(&graph.tensors[*tensor].ty)
        };
        let tensors = results.chain(operands).map(|value| self.tensors[value]);
        let own: Vec<TensorId> = tensors.filter(is_own).collect();
        self.held.extend(own);
    }

    /// Copies of operands that bufferization makes, since the operation takes them for its own and others read them, too.
    fn copied(&self, entry: &Entry<'c>, held: &HeldToBlockEnd, name: &str) -> Vec<Option<ResultSpec>> {
        let operands = held.operands.iter();
        let operands = operands.filter_map(|&operand| Some((operand, entry.operands.get(operand).copied()??)));
        let shared = operands.filter(|&(_, value)| self.table.values[value].uses > 1 || self.table.is_resident(value));
        let shared = shared.map(|(operand, value)| (operand, self.ty(value)));
        let tensors = shared.filter(|(_, ty)| is_tensor(ty) && ty.bytes().is_ok_and(|bytes| bytes.is_some()));
        let specs = tensors.map(|(operand, ty)| ResultSpec {
            name: format!("copy {operand} for {name}"),
            ty,
            placement: Placement::New,
        });
        specs.map(Some).collect()
    }

    /// What the op that ends with this operation reads: the operands of the operation first, in their positions, then those of the parts.
    fn reads(&self, position: usize) -> Reads {
        let members = self.table.members(position);
        let inside = |value: ValueIndex| {
            let maker = self.table.values[value].maker;
            maker.is_some_and(|maker| members.binary_search(&maker).is_ok())
        };
        let outside = |read: &Option<ValueIndex>| read.filter(|&value| !inside(value));
        let entry = &self.table.entries[position];
        let mut operands: Vec<_> = entry.operands.iter().map(outside).collect();
        let mut captures = entry.captures.clone();
        for &member in members.iter().filter(|&&member| member != position) {
            let part = &self.table.entries[member];
            operands.extend(part.operands.iter().filter_map(|read| outside(read).map(Some)));
            captures.extend(part.captures.iter().copied().filter(|&value| !inside(value)));
        }
        Reads { operands, captures }
    }

    /// Whether a copy of the op can be kept from being merged with it: it reads a tensor that is no constant, or writes into an empty one.
    fn can_be_set_apart(&self, position: usize, reads: &Reads) -> bool {
        let mut values = reads.operands.iter().flatten().chain(&reads.captures);
        let mut members = self.table.members(position).into_iter();
        values.any(|&value| self.table.can_carry_barrier(value))
            || members.any(|member| self.table.empties(member).next().is_some())
    }

    fn placement(&self, entry: &Entry<'c>, result: usize, ty: &ValueType) -> Placement {
        let view = entry
            .aliases
            .iter()
            .find(|alias| alias.result == result && !alias.written);
        let base = view.and_then(|alias| entry.operands.get(alias.operand).copied().flatten());
        // Buffers made from a tensor look into it.
        let tensors = || {
            entry
                .operands
                .iter()
                .flatten()
                .find(|&&value| is_tensor(&self.ty(value)))
        };
        let base = match base {
            None if !is_tensor(ty) && is_buffer(&self.table.values[entry.first_result + result]) => tensors().copied(),
            base => base,
        };
        match base {
            Some(base) => Placement::ViewOf(self.tensors[base]),
            None if is_tensor(ty) && !(entry.domain == "tensor" && entry.op_type == "empty") => Placement::New,
            None => Placement::Constant,
        }
    }

    fn check_size(&self, position: usize, result: usize, ty: &ValueType) -> Result<(), Diagnosed<'c, ImportError>> {
        match ty.bytes() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(self.no_size(position, result, |op, ty| ImportError::UnknownSize { op, result, ty })),
            Err(source) => Err(self.size_error(position, result, source)),
        }
    }

    fn size_error(&self, position: usize, result: usize, source: SizeError) -> Diagnosed<'c, ImportError> {
        self.no_size(position, result, |op, ty| ImportError::Size { op, result, ty, source })
    }

    /// An error at an operation, made of its name and the type of one of its results.
    fn no_size(
        &self,
        position: usize,
        result: usize,
        error: impl FnOnce(String, String) -> ImportError,
    ) -> Diagnosed<'c, ImportError> {
        let entry = &self.table.entries[position];
        let ty = self.table.values[entry.first_result + result].value.r#type();
        Diagnosed::at(entry.op, error(full_name(entry), ty.to_string()))
    }

    fn ty(&self, value: ValueIndex) -> ValueType {
        value_type(self.table.values[value].value.r#type(), self.options.dynamic_extent)
    }
}

/// What an op reads from outside.
pub(crate) struct Reads {
    pub(crate) operands: Vec<Option<ValueIndex>>,
    pub(crate) captures: Vec<ValueIndex>,
}

impl Table<'_> {
    /// Whether an optimization barrier may precede the value: a tensor that is not a constant. Lowerings look for empty tensors, so those
    /// get none either.
    pub(crate) fn can_carry_barrier(&self, value: ValueIndex) -> bool {
        let known = &self.values[value];
        let text = || known.value.r#type().to_string();
        !self.is_resident(value) && (is_ranked(known.value.r#type()) || text().starts_with("!torch.vtensor"))
    }
}

fn is_buffer(known: &crate::units::Known<'_>) -> bool {
    known.value.r#type().to_string().starts_with("memref")
}

fn full_name(entry: &Entry<'_>) -> String {
    let name = entry.op.name();
    name.as_string_ref().as_str().unwrap_or_default().to_owned()
}

/// The op's name: that of the operation and its position in the body, from 0.
fn op_name(entry: &Entry<'_>, position: usize) -> String {
    format!("{}#{position}", full_name(entry))
}

fn result_name(entry: &Entry<'_>, position: usize, result: usize) -> String {
    if result == 0 {
        format!("%{}", op_name(entry, position))
    } else {
        format!("%{}:{result}", op_name(entry, position))
    }
}
