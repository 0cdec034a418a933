//! Small networks with their values, and how a tiled graph is held against one.

use std::collections::BTreeMap;

use remat_cost::Device;
use remat_fission::{Axis, Candidate, Exactness, FissionError, FusedChain, Mode, SearchOptions, Tiling, apply, search};
use remat_ir::{
    Attribute, Dim, ElementType, Graph, GraphBuilder, OpSpec, Placement, ResultSpec, StorageClass, TensorId, ValueType,
};
use remat_operators::operator;
use remat_testing::{Array, evaluate_all, evaluate_op};

/// A fused chain whose tiles are whole.
pub(crate) fn fused_chain(first: &str, last: &str, tiles: u32, axis: Axis, mode: Mode) -> FusedChain {
    FusedChain {
        first: first.to_owned(),
        last: last.to_owned(),
        tiles,
        axis,
        mode,
        within: None,
    }
}

/// The same graph, where the first dimension of all that is no constant, but for these tensors and what tiles make of them, is left open and is of
/// this size here.
pub(crate) fn open(graph: &Graph, size: u64, fixed: &[&str]) -> Graph {
    let mut open = graph.clone();
    for tensor in &mut open.tensors {
        let is_constant = graph.storages[tensor.storage].class == StorageClass::Constant;
        let stem = tensor.name.split('_').next().unwrap_or_default();
        if is_constant || fixed.contains(&stem) {
            continue;
        }
        if let ValueType::Tensor { shape: Some(dims), .. } = &mut tensor.ty {
            let name = Some("n".to_owned());
            dims[0] = Dim::Free { size, name };
        }
    }
    open
}

/// The tiling of the lowest peak that 300 estimates find.
pub(crate) fn lowest(graph: &Graph, exactness: Exactness) -> Candidate {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let mut options = SearchOptions::new(&device);
    (options.exactness, options.evaluations) = (exactness, Some(300));
    let found = search(graph, &options).unwrap().front;
    found.into_iter().min_by_key(|found| found.peak).unwrap()
}

/// A network that is evaluated while it is built: shapes of results are those of their values.
#[derive(Clone, Default)]
pub(crate) struct Net {
    builder: GraphBuilder,
    values: BTreeMap<String, Array>,
}

pub(crate) fn ints(list: &[i64]) -> Attribute {
    Attribute::Ints(list.to_vec())
}

pub(crate) fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

pub(crate) fn text(value: &str) -> Attribute {
    Attribute::String(value.into())
}

fn tensor(dims: &[usize]) -> ValueType {
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    ValueType::tensor(ElementType::Float32, &dims)
}

impl Net {
    /// Numbers that follow from the name.
    fn number(&mut self, name: &str, dims: &[usize]) {
        let value = Array::of_name(name, dims.to_vec());
        self.values.insert(name.to_owned(), value);
    }

    /// A graph input of small whole numbers.
    pub(crate) fn input(&mut self, name: &str, dims: &[usize]) -> TensorId {
        self.number(name, dims);
        self.builder.input(name, tensor(dims)).unwrap()
    }

    /// A constant of small whole numbers.
    pub(crate) fn constant(&mut self, name: &str, dims: &[usize]) -> TensorId {
        self.number(name, dims);
        self.builder.constant(name, tensor(dims)).unwrap()
    }

    /// A constant of numbers that the graph does not state.
    pub(crate) fn numbers(&mut self, name: &str, data: &[i64]) -> TensorId {
        let dims = vec![data.len()];
        let ty = tensor(&dims);
        let data = data.to_vec();
        self.values.insert(name.to_owned(), Array { dims, data });
        self.builder.constant(name, ty).unwrap()
    }

    /// A list of integers that the graph states.
    pub(crate) fn list(&mut self, name: &str, elements: &[i64]) -> TensorId {
        let (dims, data) = (vec![elements.len()], elements.to_vec());
        self.values.insert(name.to_owned(), Array { dims, data });
        let ty = ValueType::tensor(ElementType::Int64, &[elements.len() as u64]);
        self.builder.integers(name, ty, elements.to_vec()).unwrap()
    }

    /// An op with one result of the same name.
    pub(crate) fn op(
        &mut self,
        name: &str,
        op_type: &str,
        inputs: &[TensorId],
        attributes: &[(&str, Attribute)],
    ) -> TensorId {
        let inputs: Vec<Option<TensorId>> = inputs.iter().map(|&input| Some(input)).collect();
        self.ops(&[name], op_type, &inputs, attributes)[0]
    }

    /// An op with several results; the op is named as the first one. Its type may have a domain before it: `com.microsoft::QuickGelu`.
    pub(crate) fn ops(
        &mut self,
        results: &[&str],
        op_type: &str,
        inputs: &[Option<TensorId>],
        attributes: &[(&str, Attribute)],
    ) -> Vec<TensorId> {
        let (domain, op_type) = op_type.split_once("::").unwrap_or(("", op_type));
        let mut spec = OpSpec::new(results[0], op_type);
        spec.domain = domain.to_owned();
        spec.source = u32::try_from(self.builder.graph().ops.len()).ok();
        spec.inputs = inputs.to_vec();
        spec.attributes = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let is_view = operator(&spec.domain, op_type).is_view();
        let placement = if is_view {
            inputs[0].map_or(Placement::New, Placement::ViewOf)
        } else {
            Placement::New
        };
        let name = |input: TensorId| &self.builder.graph().tensors[input].name;
        let mut op = remat_ir::Op::on_memory(remat_ir::OpKind::Compute, TensorId::new(0), results[0]);
        (op.domain, op.op_type) = (spec.domain.clone(), op_type.to_owned());
        op.attributes = spec.attributes.clone();
        op.outputs = vec![None; results.len()];
        let operands: Vec<Option<&Array>> = inputs
            .iter()
            .map(|input| input.map(|input| &self.values[name(input)]))
            .collect();
        let values = evaluate_op(&op, &operands);
        for (result, value) in results.iter().zip(values) {
            let ty = tensor(&value.dims);
            let name = (*result).to_owned();
            spec.results.push(Some(ResultSpec { name, ty, placement }));
            self.values.insert((*result).to_owned(), value);
        }
        let (_, outputs) = self.builder.op(spec).unwrap();
        outputs.into_iter().flatten().collect()
    }

    pub(crate) fn output(&mut self, tensor: TensorId) {
        self.builder.output(tensor);
    }

    pub(crate) fn graph(&self) -> Graph {
        let graph = self.builder.clone().finish();
        assert_eq!(graph.validate(), Ok(()));
        graph
    }

    /// Applies a tiling and runs what comes of it: every part must be that box of the whole, and every output the whole, and
    /// the checker must accept it.
    pub(crate) fn check(&self, tiling: &Tiling) -> Result<Graph, FissionError> {
        let graph = self.graph();
        let tiled = apply(&graph, tiling, Exactness::WholeSums)?;
        assert_eq!(tiled.validate(), Ok(()));
        if let Err(rejection) = remat_fission_check::check_fission(&graph, &tiled) {
            panic!("{tiling:?}: {rejection}\n{tiled}");
        }
        let is_given = |name: &&String| {
            let mut given = graph.tensors.iter().filter(|tensor| tensor.producer.is_none());
            given.any(|tensor| tensor.name == **name)
        };
        let given = self.values.keys().filter(is_given);
        let given = given.map(|name| (name.clone(), self.values[name].clone())).collect();
        let values = evaluate_all(&tiled, &given);
        for op in &tiled.ops {
            for (output, part) in op.outputs.iter().zip(&op.parts) {
                let (Some(output), Some(part)) = (output, part) else {
                    continue;
                };
                let name = &tiled.tensors[*output].name;
                let mut ranges: Vec<_> = values[name].dims.iter().map(|&dim| 0..dim as u64).collect();
                if let Some(spare) = part.spare {
                    let all = &mut ranges[spare.axis];
                    *all = spare.before..all.end - spare.after;
                }
                assert_eq!(
                    values[name].part(&ranges),
                    self.values[&part.of].part(&part.ranges),
                    "`{name}` of {tiling:?}"
                );
            }
        }
        let names = |graph: &Graph| -> Vec<String> {
            let outputs = graph.outputs.iter();
            outputs.map(|&output| graph.tensors[output].name.clone()).collect()
        };
        assert_eq!(names(&tiled), names(&graph));
        for name in names(&graph) {
            assert_eq!(values[&name], self.values[&name], "output `{name}` of {tiling:?}");
        }
        Ok(tiled)
    }

    /// [`Net::check`] of one fused chain.
    pub(crate) fn check_fused_chain(
        &self,
        first: &str,
        last: &str,
        tiles: u32,
        axis: Axis,
        mode: Mode,
    ) -> Result<Graph, FissionError> {
        self.check(&Tiling {
            fused_chains: vec![fused_chain(first, last, tiles, axis, mode)],
            ..Tiling::default()
        })
    }
}
