//! Normalizations in two passes as nodes ([`remat_operators::STREAMED_DOMAIN`] says what each op computes).
//!
//! Statistics are in single precision whatever the elements are, the squares are of what differs from the mean of the part, and parts are put together
//! by the formula of Chan, Golub and LeVeque (Algorithms for Computing the Sample Variance, 1983, equation 2.1), so that no large
//! numbers are taken from each other. A channel is multiplied and added to as ONNX Runtime's own kernels do.

use onnx_protobuf::{NodeProto, TensorProto};
use remat_ir::{Attribute, ElementType, Graph, Op, TensorId};
use remat_operators::STREAMED_DOMAIN;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{OnnxError, attributes, proto_type};

/// The first version of the default set of operators in which all that is used here takes negative axes and lists of axes as operands.
const FIRST_VERSION: u64 = 11;

/// From these versions on a reduction has its axes as an operand.
const SUM_TAKES_AXES: u64 = 13;
const REDUCTIONS_TAKE_AXES: u64 = 18;

/// Whether an op stands for several nodes.
pub(crate) fn is_streamed(op: &Op) -> bool {
    op.domain == STREAMED_DOMAIN
}

/// What writes normalizations in two passes.
pub(crate) struct Streamed<'a> {
    graph: &'a Graph,
    version: u64,
    /// Names that nodes and values may not have.
    taken: FxHashSet<String>,
    /// By its elements: the constant that is written.
    constants: FxHashMap<Elements, String>,
    /// By the tensor of factors and summands: both, each by itself.
    parted: FxHashMap<TensorId, [String; 2]>,
    nodes: Vec<NodeProto>,
}

/// A constant.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Elements {
    Integers(Vec<i64>),
    /// Dimensions, and bits of numbers in single precision.
    Floats(Vec<i64>, Vec<u32>),
}

impl<'a> Streamed<'a> {
    pub(crate) fn new(graph: &'a Graph, version: Option<u64>, reserved: impl Iterator<Item = String>) -> Self {
        let named = graph.tensors.iter().map(|tensor| tensor.name.clone());
        let ops = graph.ops.iter().map(|op| op.name.clone());
        Self {
            graph,
            version: version.unwrap_or(0),
            taken: named.chain(ops).chain(reserved).collect(),
            constants: FxHashMap::default(),
            parted: FxHashMap::default(),
            nodes: Vec::new(),
        }
    }

    /// The nodes of an op, the last of which makes its result; `name` says how tensors are called in the file.
    pub(crate) fn nodes(&mut self, op: &Op, name: impl Fn(TensorId) -> String) -> Result<Vec<NodeProto>, OnnxError> {
        let refused = |what: &str| OnnxError::Unsupported {
            name: op.name.clone(),
            what: what.to_owned(),
        };
        if self.version < FIRST_VERSION {
            return Err(refused(
                "normalizations in two passes need version 11 of ONNX's operators, or a later one",
            ));
        }
        let operands: Vec<Option<TensorId>> = op.inputs.clone();
        let inputs: Vec<String> = operands.iter().map(|&id| id.map_or_else(String::new, &name)).collect();
        let result = op.results().next().ok_or_else(|| refused("it has no result"))?;
        let mut scope = Scope {
            own: op.name.clone(),
            result: name(result),
            all: self,
        };
        match (op.op_type.as_str(), &operands[..]) {
            ("Moments", &[Some(data)]) => scope.moments(data, &inputs[0]),
            ("CombineMoments", [_, ..]) => scope.combine_moments(&inputs, &counts(op)),
            ("CombineMeans", [_, ..]) => scope.combine_means(&inputs, &counts(op)),
            ("Normalizer", [Some(_), Some(_), Some(_), ..]) => {
                let whole = |name: &str| op.attributes.get(name).and_then(Attribute::as_int);
                let epsilon = match op.attributes.get("epsilon") {
                    Some(Attribute::Float(epsilon)) => Some(*epsilon),
                    _ => None,
                };
                let (Some(count), Some(groups), Some(epsilon)) = (whole("count"), whole("groups"), epsilon) else {
                    return Err(refused("its attributes are not those of a normalization"));
                };
                scope.normalizer(&operands, &inputs, result, (count, groups, epsilon))
            }
            ("Normalize", &[Some(data), Some(numbers)]) => scope.normalize((data, numbers), &inputs),
            _ => Err(()),
        }
        .map_err(|()| refused("it is no part of a normalization in two passes, or its shapes are not known"))?;
        Ok(std::mem::take(&mut self.nodes))
    }

    fn dims(&self, tensor: TensorId) -> Result<Vec<i64>, ()> {
        let dims = self.graph.tensors[tensor].ty.known_shape().ok_or(())?;
        dims.into_iter().map(|dim| i64::try_from(dim).map_err(|_| ())).collect()
    }

    fn element(&self, tensor: TensorId) -> Option<ElementType> {
        self.graph.tensors[tensor].ty.element()
    }

    fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 0u32;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }
}

fn counts(op: &Op) -> Vec<i64> {
    let counts = op.attributes.get("counts").and_then(Attribute::as_ints);
    counts.map(<[i64]>::to_vec).unwrap_or_default()
}

/// The nodes of one op being written.
struct Scope<'s, 'a> {
    own: String,
    result: String,
    all: &'s mut Streamed<'a>,
}

impl Scope<'_, '_> {
    fn moments(&mut self, data: TensorId, input: &str) -> Result<(), ()> {
        let rank = self.all.dims(data)?.len();
        let axes: Vec<i64> = (2..i64::try_from(rank).map_err(|_| ())?).collect();
        let data = self.single(self.all.element(data), input);
        let mean = self.reduce("ReduceMean", &data, &axes, "mean");
        let differs = self.op("Sub", &[&data, &mean], "differs");
        let squares = self.reduce("ReduceSumSquare", &differs, &axes, "squares");
        if rank == 4 {
            self.last("Concat", &[&mean, &squares], &[("axis", -1)]);
        } else {
            let both = self.op_with("Concat", &[&mean, &squares], "both", &[("axis", -1)]);
            let shape = self.integers(vec![0, 0, 1, 2]);
            self.last("Reshape", &[&both, &shape], &[]);
        }
        Ok(())
    }

    fn combine_moments(&mut self, inputs: &[String], counts: &[i64]) -> Result<(), ()> {
        if counts.len() != inputs.len() {
            return Err(());
        }
        if let [one] = inputs {
            self.last("Identity", &[one], &[]);
            return Ok(());
        }
        let parts: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let all = self.op_with("Concat", &parts, "parts", &[("axis", 2)]);
        let [means, squares] =
            [0, 1].map(|place| self.slice(&all, place, if place == 0 { "means" } else { "squares" }));
        let total: i64 = counts.iter().sum();
        let rows = length(counts)?;
        let column = |values: Vec<f32>| Elements::Floats(vec![rows, 1], bits(&values));
        let shares = self.constant(column(
            counts
                .iter()
                .map(|&count| (count as f64 / total as f64) as f32)
                .collect(),
        ));
        let weights = self.constant(column(counts.iter().map(|&count| count as f32).collect()));
        let weighted = self.op("Mul", &[&means, &shares], "weighted");
        let mean = self.reduce("ReduceSum", &weighted, &[2], "mean");
        let differs = self.op("Sub", &[&means, &mean], "differs");
        let square = self.op("Mul", &[&differs, &differs], "square");
        let between = self.op("Mul", &[&square, &weights], "between");
        let both = self.op("Add", &[&squares, &between], "within_and_between");
        let squares = self.reduce("ReduceSum", &both, &[2], "all_squares");
        self.last("Concat", &[&mean, &squares], &[("axis", -1)]);
        Ok(())
    }

    fn combine_means(&mut self, inputs: &[String], counts: &[i64]) -> Result<(), ()> {
        if counts.len() != inputs.len() {
            return Err(());
        }
        let total: i64 = counts.iter().sum();
        let mut weighted = Vec::new();
        for (input, &count) in inputs.iter().zip(counts) {
            let share = self.number((count as f64 / total as f64) as f32);
            weighted.push(self.op("Mul", &[input, &share], "weighted"));
        }
        let weighted: Vec<&str> = weighted.iter().map(String::as_str).collect();
        self.last("Sum", &weighted, &[]);
        Ok(())
    }

    fn normalizer(
        &mut self,
        operands: &[Option<TensorId>],
        inputs: &[String],
        result: TensorId,
        (count, groups, epsilon): (i64, i64, f32),
    ) -> Result<(), ()> {
        let channels = *self.all.dims(result)?.get(1).ok_or(())?;
        if groups < 1 || channels % groups != 0 || count < 1 {
            return Err(());
        }
        let each = channels / groups;
        let grouped = self.integers(vec![0, groups, each]);
        let [means, squares] = [0, 1].map(|place| {
            let column = self.slice(&inputs[0], place, if place == 0 { "means" } else { "squares" });
            self.op(
                "Reshape",
                &[&column, &grouped],
                if place == 0 { "group_means" } else { "group_squares" },
            )
        });
        let (mean, squares) = if each == 1 {
            (means, squares)
        } else {
            let mean = self.reduce("ReduceMean", &means, &[2], "mean");
            let differs = self.op("Sub", &[&means, &mean], "differs");
            let square = self.reduce("ReduceSumSquare", &differs, &[2], "square");
            let count = self.number(count as f32);
            let between = self.op("Mul", &[&square, &count], "between");
            let within = self.reduce("ReduceSum", &squares, &[2], "within");
            (mean, self.op("Add", &[&within, &between], "all_squares"))
        };
        let share = self.number((1.0 / (count as f64 * each as f64)) as f32);
        let epsilon = self.number(epsilon);
        let variance = self.op("Mul", &[&squares, &share], "variance");
        let padded = self.op("Add", &[&variance, &epsilon], "padded");
        let deviation = self.op("Sqrt", &[&padded], "deviation");
        let inverse = self.op("Reciprocal", &[&deviation], "inverse");
        let mut numbers = Vec::new();
        for (place, what) in ["scale", "bias", "factor", "summand"].into_iter().enumerate() {
            let operand = operands.get(place + 1).copied().flatten();
            numbers.push(
                operand
                    .map(|operand| self.by_group(operand, &inputs[place + 1], (groups, each), what))
                    .transpose()?,
            );
        }
        let [Some(scale), Some(bias), factor, summand] = &numbers[..] else {
            return Err(());
        };
        let mut multiplied = self.op("Mul", &[&inverse, scale], "multiplied");
        let shifted = self.op("Mul", &[&mean, &multiplied], "shifted");
        let mut added = self.op("Sub", &[bias, &shifted], "added");
        if let Some(factor) = factor {
            multiplied = self.op("Mul", &[&multiplied, factor], "multiplied_by_channel");
            added = self.op("Mul", &[&added, factor], "added_by_channel");
        }
        if let Some(summand) = summand {
            added = self.op("Add", &[&added, summand], "all_added");
        }
        let shape = self.integers(vec![0, channels, 1, 1]);
        let mut both = Vec::new();
        for (number, what) in [(multiplied, "factors"), (added, "summands")] {
            let wide = if each == 1 {
                number
            } else {
                let group = self.integers(vec![1, groups, each]);
                self.op("Expand", &[&number, &group], &format!("wide_{what}"))
            };
            both.push(self.op("Reshape", &[&wide, &shape], what));
        }
        self.last("Concat", &[&both[0], &both[1]], &[("axis", -1)]);
        Ok(())
    }

    /// A number for each group or each channel, as `1 x groups x 1` or `1 x groups x each`.
    fn by_group(
        &mut self,
        operand: TensorId,
        input: &str,
        (groups, each): (i64, i64),
        what: &str,
    ) -> Result<String, ()> {
        let elements: i64 = self.all.dims(operand)?.iter().product();
        let shape = match elements {
            elements if elements == groups * each => vec![1, groups, each],
            elements if elements == groups => vec![1, groups, 1],
            _ => return Err(()),
        };
        let shape = self.integers(shape);
        let single = self.single(self.all.element(operand), input);
        Ok(self.op("Reshape", &[&single, &shape], what))
    }

    fn normalize(&mut self, (data, numbers): (TensorId, TensorId), inputs: &[String]) -> Result<(), ()> {
        let rank = self.all.dims(data)?.len();
        let parted = match self.all.parted.get(&numbers) {
            Some(parted) => parted.clone(),
            None => {
                let mut parted =
                    [0, 1].map(|place| self.slice(&inputs[1], place, if place == 0 { "factor" } else { "summand" }));
                if rank != 4 {
                    let shape = self.integers([vec![0, 0], vec![1; rank.saturating_sub(2)]].concat());
                    parted = parted.map(|part| self.op("Reshape", &[&part, &shape], "by_channel"));
                }
                self.all.parted.insert(numbers, parted.clone());
                parted
            }
        };
        let is_half = self.all.element(data) == Some(ElementType::Float16);
        let single = self.single(self.all.element(data), &inputs[0]);
        let multiplied = self.op("Mul", &[&single, &parted[0]], "multiplied");
        if is_half {
            let added = self.op("Add", &[&multiplied, &parted[1]], "added");
            let half = i64::from(proto_type::code(ElementType::Float16));
            self.last("Cast", &[&added], &[("to", half)]);
        } else {
            self.last("Add", &[&multiplied, &parted[1]], &[]);
        }
        Ok(())
    }

    /// A tensor in single precision.
    fn single(&mut self, element: Option<ElementType>, input: &str) -> String {
        if element == Some(ElementType::Float32) {
            return input.to_owned();
        }
        let single = i64::from(proto_type::code(ElementType::Float32));
        self.op_with("Cast", &[input], "single", &[("to", single)])
    }

    /// One of the numbers along the last axis of four.
    fn slice(&mut self, input: &str, place: i64, what: &str) -> String {
        let (start, end, axis) = (
            self.integers(vec![place]),
            self.integers(vec![place + 1]),
            self.integers(vec![3]),
        );
        self.op("Slice", &[input, &start, &end, &axis], what)
    }

    fn reduce(&mut self, op_type: &str, input: &str, axes: &[i64], what: &str) -> String {
        let from = if op_type == "ReduceSum" {
            SUM_TAKES_AXES
        } else {
            REDUCTIONS_TAKE_AXES
        };
        if self.all.version >= from {
            let axes = self.integers(axes.to_vec());
            return self.op_with(op_type, &[input, &axes], what, &[("keepdims", 1)]);
        }
        let name = self.op_with(op_type, &[input], what, &[("keepdims", 1)]);
        let axes = Attribute::Ints(axes.to_vec());
        if let Some(node) = self.all.nodes.last_mut() {
            node.attribute.extend(attributes::to_proto("axes", &axes));
        }
        name
    }

    fn number(&mut self, value: f32) -> String {
        self.constant(Elements::Floats(Vec::new(), bits(&[value])))
    }

    fn integers(&mut self, values: Vec<i64>) -> String {
        self.constant(Elements::Integers(values))
    }

    fn constant(&mut self, elements: Elements) -> String {
        if let Some(name) = self.all.constants.get(&elements) {
            return name.clone();
        }
        let name = self.all.fresh("remat_number");
        let tensor = match &elements {
            Elements::Integers(values) => TensorProto {
                dims: vec![length(values).unwrap_or(0)],
                data_type: proto_type::code(ElementType::Int64),
                int64_data: values.clone(),
                ..TensorProto::default()
            },
            Elements::Floats(dims, values) => TensorProto {
                dims: dims.clone(),
                data_type: proto_type::code(ElementType::Float32),
                float_data: values.iter().map(|&value| f32::from_bits(value)).collect(),
                ..TensorProto::default()
            },
        };
        self.all.nodes.push(NodeProto {
            name: name.clone(),
            op_type: "Constant".to_owned(),
            output: vec![name.clone()],
            attribute: vec![attributes::of_tensor("value", tensor)],
            ..NodeProto::default()
        });
        self.all.constants.insert(elements, name.clone());
        name
    }

    fn op(&mut self, op_type: &str, inputs: &[&str], what: &str) -> String {
        self.op_with(op_type, inputs, what, &[])
    }

    fn op_with(&mut self, op_type: &str, inputs: &[&str], what: &str, integers: &[(&str, i64)]) -> String {
        let name = self.all.fresh(&format!("{}_{what}", self.own));
        self.push(op_type, inputs, name.clone(), integers);
        name
    }

    /// The node that makes the result.
    fn last(&mut self, op_type: &str, inputs: &[&str], integers: &[(&str, i64)]) {
        let result = self.result.clone();
        self.push(op_type, inputs, result, integers);
    }

    fn push(&mut self, op_type: &str, inputs: &[&str], output: String, integers: &[(&str, i64)]) {
        let attributes = integers
            .iter()
            .filter_map(|&(name, value)| attributes::to_proto(name, &Attribute::Int(value)));
        self.all.nodes.push(NodeProto {
            name: output.clone(),
            op_type: op_type.to_owned(),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![output],
            attribute: attributes.collect(),
            ..NodeProto::default()
        });
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn length<T>(values: &[T]) -> Result<i64, ()> {
    i64::try_from(values.len()).map_err(|_| ())
}
