//! A property of the textual form: whatever graph there is comes back. `tools/fuzz` has the texts that are no graphs.

#![expect(clippy::unwrap_used, reason = "a graph that cannot be built is a broken test")]

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use remat_ir::{
    Attribute, Dim, Effects, ElementType, Graph, GraphBuilder, OpId, OpKind, OpSpec, Part, Placement, ResultSpec,
    Spare, StorageClass, StorageId, TensorId, ValueType,
};

/// One line of a graph to be; indices select among what exists by then, and lines that would break it are left out.
#[derive(Clone, Debug)]
enum Line {
    Input(String, ValueType),
    Constant(String, ValueType),
    Integers(String, Vec<i64>),
    Op(OpLine),
    Recompute(Index, OpLine),
    Dealloc(Index, Option<String>),
    /// Out, or back where it is out.
    Page(Index, Option<String>),
    Output(Index),
    Bytes(Index, Option<u64>),
}

/// A name, the first row on every axis, and spare rows: their axis, those before, those after.
type Parts = (String, u64, Option<(usize, u64, u64)>);

#[derive(Clone, Debug)]
struct OpLine {
    name: String,
    domain: String,
    op_type: String,
    inputs: Vec<Option<Index>>,
    captures: Vec<Index>,
    results: Vec<Option<(String, ValueType, u8)>>,
    effects: Effects,
    attributes: Vec<(String, Attribute)>,
    source: Option<u32>,
    /// The parts that the results are, if any: a name, where rows begin, spare rows and their axis.
    parts: Option<Parts>,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[A-Za-z0-9_./-]{1,6}", 1 => any::<String>(), 1 => select(vec!["", "_", "a//b", "..", "nan", "\"\\\n:"]).prop_map(str::to_owned)]
}

fn element() -> impl Strategy<Value = ElementType> {
    select(ElementType::ALL)
}

fn shape() -> impl Strategy<Value = Option<Vec<Dim>>> {
    let dim = prop_oneof![
        4 => (0_u64..5000).prop_map(Dim::Known),
        1 => name().prop_map(Dim::Symbol),
        1 => (0_u64..5000, proptest::option::of(name())).prop_map(|(size, name)| Dim::Free { size, name }),
        1 => Just(Dim::Unknown)
    ];
    prop::option::weighted(0.9, vec(dim, 0..4))
}

fn value_type() -> impl Strategy<Value = ValueType> {
    let leaf = prop_oneof![
        8 => (element(), shape()).prop_map(|(element, shape)| ValueType::Tensor { element, shape }),
        1 => (element(), shape()).prop_map(|(element, shape)| ValueType::SparseTensor { element, shape }),
        1 => Just(ValueType::Unknown),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| ValueType::Sequence(Box::new(t))),
            inner.clone().prop_map(|t| ValueType::Optional(Box::new(t))),
            (element(), inner).prop_map(|(key, t)| ValueType::Map {
                key,
                value: Box::new(t)
            }),
        ]
    })
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let float = || any::<u32>().prop_map(f32::from_bits);
    let bytes = || prop_oneof![any::<String>().prop_map(String::into_bytes), vec(any::<u8>(), 0..6)];
    prop_oneof![
        any::<i64>().prop_map(Attribute::Int),
        float().prop_map(Attribute::Float),
        bytes().prop_map(Attribute::String),
        vec(any::<i64>(), 0..4).prop_map(Attribute::Ints),
        vec(float(), 0..4).prop_map(Attribute::Floats),
        vec(bytes(), 0..3).prop_map(Attribute::Strings),
        any::<String>().prop_map(Attribute::Opaque),
    ]
}

fn op_line() -> impl Strategy<Value = OpLine> {
    let result = prop::option::weighted(0.8, (name(), value_type(), any::<u8>()));
    let effects = [
        Effects::Pure,
        Effects::Pure,
        Effects::Random,
        Effects::Stateful,
        Effects::ControlFlow,
    ];
    (
        (name(), prop_oneof![3 => Just(String::new()), 1 => name()], name()),
        vec(prop::option::weighted(0.8, any::<Index>()), 0..4),
        vec(any::<Index>(), 0..2),
        vec(result, 0..4),
        select(effects.to_vec()),
        vec((name(), attribute()), 0..3),
        any::<Option<u32>>(),
        prop::option::weighted(
            0.3,
            (name(), 0_u64..9, prop::option::of((0_usize..4, 0_u64..3, 0_u64..3))),
        ),
    )
        .prop_map(
            |((name, domain, op_type), inputs, captures, results, effects, attributes, source, parts)| OpLine {
                name,
                domain,
                op_type,
                inputs,
                captures,
                results,
                effects,
                attributes,
                source,
                parts,
            },
        )
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        2 => (name(), value_type()).prop_map(|(name, ty)| Line::Input(name, ty)),
        2 => (name(), value_type()).prop_map(|(name, ty)| Line::Constant(name, ty)),
        1 => (name(), vec(any::<i64>(), 0..4)).prop_map(|(name, elements)| Line::Integers(name, elements)),
        6 => op_line().prop_map(Line::Op),
        3 => (any::<Index>(), op_line()).prop_map(|(of, op)| Line::Recompute(of, op)),
        2 => (any::<Index>(), prop::option::of(name())).prop_map(|(t, name)| Line::Dealloc(t, name)),
        2 => (any::<Index>(), prop::option::of(name())).prop_map(|(t, name)| Line::Page(t, name)),
        1 => any::<Index>().prop_map(Line::Output),
        1 => (any::<Index>(), any::<Option<u64>>()).prop_map(|(s, bytes)| Line::Bytes(s, bytes)),
    ]
}

fn valid_graph() -> impl Strategy<Value = Graph> {
    (any::<String>(), vec(line(), 0..16)).prop_map(|(name, lines)| {
        let mut growing = Growing {
            builder: GraphBuilder::new(name),
            ..Growing::default()
        };
        for line in lines {
            growing.add(line);
        }
        growing.finish()
    })
}

#[derive(Default)]
struct Growing {
    builder: GraphBuilder,
    tensor_names: BTreeSet<String>,
    op_names: BTreeSet<String>,
    dead: BTreeSet<StorageId>,
    out: BTreeSet<StorageId>,
    returned: BTreeSet<StorageId>,
    memory_names: Vec<(OpId, String)>,
    sizes: Vec<(StorageId, Option<u64>)>,
}

/// `name`, or something longer if it is taken.
fn fresh(taken: &mut BTreeSet<String>, mut name: String) -> String {
    while !taken.insert(name.clone()) {
        name.push('\'');
    }
    name
}

impl Growing {
    fn storage(&self, tensor: TensorId) -> StorageId {
        self.builder.graph().tensors[tensor].storage
    }

    fn alive(&self, at: Index) -> Option<TensorId> {
        let tensors = self.builder.graph().tensors.keys();
        let alive: Vec<TensorId> = tensors
            .filter(|&t| !self.dead.contains(&self.storage(t)) && !self.out.contains(&self.storage(t)))
            .collect();
        (!alive.is_empty()).then(|| *at.get(&alive))
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Input(name, ty) => {
                self.builder.input(fresh(&mut self.tensor_names, name), ty).unwrap();
            }
            Line::Constant(name, ty) => {
                self.builder.constant(fresh(&mut self.tensor_names, name), ty).unwrap();
            }
            Line::Integers(name, elements) => {
                let ty = ValueType::tensor(ElementType::Int64, &[elements.len() as u64]);
                let name = fresh(&mut self.tensor_names, name);
                self.builder.integers(name, ty, elements).unwrap();
            }
            Line::Op(line) => {
                let spec = self.spec(line);
                self.builder.op(spec).unwrap();
            }
            Line::Recompute(of, line) => {
                let ops = self.builder.graph().ops.iter_enumerated();
                let pure = ops.filter(|(_, op)| op.kind == OpKind::Compute && op.effects.recomputable());
                let pure: Vec<_> = pure.map(|(id, op)| (id, op.clone())).collect();
                if pure.is_empty() {
                    return;
                }
                let (of, original) = of.get(&pure);
                let mut spec = self.spec(line);
                spec.kind = OpKind::Recompute { of: *of };
                (spec.domain, spec.op_type) = (original.domain.clone(), original.op_type.clone());
                spec.results.resize(original.outputs.len(), None);
                spec.parts.clear();
                self.builder.op(spec).unwrap();
            }
            Line::Dealloc(at, name) => {
                let Some(tensor) = self.alive(at) else { return };
                let storage = self.storage(tensor);
                let class = self.builder.graph().storages[storage].class;
                if class == StorageClass::Intermediate && !self.returned.contains(&storage) {
                    self.dead.insert(storage);
                    let id = self.builder.dealloc(tensor);
                    self.memory_names.extend(name.map(|name| (id, name)));
                }
            }
            Line::Page(at, name) => {
                let tensors = self.builder.graph().tensors.keys();
                let movable = |&tensor: &TensorId| {
                    let storage = self.storage(tensor);
                    let class = self.builder.graph().storages[storage].class;
                    class == StorageClass::Intermediate
                        && !self.dead.contains(&storage)
                        && !self.returned.contains(&storage)
                };
                let movable: Vec<TensorId> = tensors.filter(movable).collect();
                if movable.is_empty() {
                    return;
                }
                let tensor = *at.get(&movable);
                let storage = self.storage(tensor);
                let id = if self.out.remove(&storage) {
                    self.builder.page_in(tensor)
                } else {
                    self.out.insert(storage);
                    self.builder.page_out(tensor)
                };
                self.memory_names.extend(name.map(|name| (id, name)));
            }
            Line::Output(at) => {
                if let Some(tensor) = self.alive(at) {
                    self.returned.insert(self.storage(tensor));
                    self.builder.output(tensor);
                }
            }
            Line::Bytes(at, bytes) => {
                if let Some(tensor) = self.alive(at) {
                    self.sizes.push((self.storage(tensor), bytes));
                }
            }
        }
    }

    fn spec(&mut self, line: OpLine) -> OpSpec {
        let mut spec = OpSpec::new(fresh(&mut self.op_names, line.name), line.op_type);
        spec.domain = line.domain;
        spec.inputs = line.inputs.into_iter().map(|at| self.alive(at?)).collect();
        spec.captures = line.captures.into_iter().filter_map(|at| self.alive(at)).collect();
        spec.effects = line.effects;
        spec.attributes = line.attributes.into_iter().collect();
        spec.source = line.source;
        let reads: Vec<TensorId> = spec.inputs.iter().flatten().chain(&spec.captures).copied().collect();
        let mut result = |(name, ty, place): (String, ValueType, u8)| ResultSpec {
            name: fresh(&mut self.tensor_names, name),
            ty,
            placement: match (place % 4, reads.get(usize::from(place) % reads.len().max(1))) {
                (0, _) => Placement::Constant,
                (1, Some(&base)) => Placement::ViewOf(base),
                _ => Placement::New,
            },
        };
        spec.results = line.results.into_iter().map(|node| node.map(&mut result)).collect();
        spec.parts = line
            .parts
            .map_or_else(Vec::new, |parts| parts_of(&spec.results, &parts));
        spec
    }

    fn finish(self) -> Graph {
        let mut graph = self.builder.finish();
        for (op, name) in self.memory_names {
            graph.ops[op].name = name;
        }
        for (storage, bytes) in self.sizes {
            graph.storages[storage].bytes = bytes;
        }
        graph
    }
}

/// A part for each result; none if there is no result, or one without a known shape.
fn parts_of(results: &[Option<ResultSpec>], (of, start, spare): &Parts) -> Vec<Option<Part>> {
    let part = |result: &ResultSpec| {
        let dims = result.ty.known_shape()?;
        let spare = spare.filter(|&(axis, before, after)| dims.get(axis).is_some_and(|&dim| dim > before + after));
        let mut ranges: Vec<_> = dims.iter().map(|&dim| *start..start + dim).collect();
        if let Some((axis, before, after)) = spare {
            ranges[axis].end -= before + after;
        }
        let part = Part {
            of: of.clone(),
            ranges,
            spare: spare.map(|(axis, before, after)| Spare { axis, before, after }),
            is_sum: spare.is_none() && start % 2 == 1,
        };
        (!dims.contains(&0)).then_some(part)
    };
    let parts: Vec<_> = results.iter().map(|result| result.as_ref().map(part)).collect();
    if parts.iter().all(Option::is_none) || parts.contains(&Some(None)) {
        return Vec::new();
    }
    parts.into_iter().map(Option::flatten).collect()
}

proptest! {
    #[test]
    fn a_printed_graph_parses_to_an_equal_graph(graph in valid_graph()) {
        prop_assert_eq!(graph.validate(), Ok(()));
        let text = graph.to_string();
        let parsed = Graph::parse(&text);
        prop_assert_eq!(parsed, Ok(graph), "{}", text);
    }
}
