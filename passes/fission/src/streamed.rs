//! Normalizations in two passes, so that sums over an image do not end a fused chain.
//!
//! A normalization over an image needs all of its operand before it gives a row of its result. In two passes the first one keeps of each channel the
//! mean and the sum of the squares of what differs from it, which tiles find for their rows and put together; the second one multiplies and adds,
//! element by element. What follows a normalization with numbers for each channel, a factor and a summand, becomes part of it:
//! exporters write a normalization of groups as a normalization of instances between two reshapes, a product and a sum. The same is done to a
//! softmax (`softened`), and to what finds the largest or smallest elements along an axis (`best`).

use std::collections::BTreeMap;

use remat_ir::{
    Attribute, Dim, ElementType, Graph, Op, OpId, OpSpec, Part, Placement, ResultSpec, StorageClass, TensorId,
    ValueType,
};
use remat_operators::{Blocked, Formula, MOMENTS, NORMALIZE, NORMALIZER, STREAMED_DOMAIN, Split, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::best::{Best, bests};
use crate::names::{Names, find};
use crate::rules::Site;
use crate::softened::{Softened, softened};
use crate::transfer::Transfer;
use crate::{Exactness, FissionError};

/// What normalizations add where they do not say.
const EPSILON: f32 = 1e-5;

/// A normalization over an image, and the ops that compute it.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    /// In order; the last one makes the result.
    ops: Vec<OpId>,
    /// `N x C x ...`.
    operand: TensorId,
    result: TensorId,
    /// Of each channel or group: its own scale and bias, and a factor and a summand that follow it.
    numbers: [Option<TensorId>; 4],
    /// A factor and a summand for each element.
    of_elements: [Option<TensorId>; 2],
    groups: u64,
    epsilon: f32,
    dims: Vec<u64>,
}

impl Norm {
    /// Bytes of the operand.
    fn bytes(&self, graph: &Graph) -> u64 {
        graph.storages[graph.tensors[self.operand].storage].bytes.unwrap_or(0)
    }

    /// Elements of a channel.
    fn count(&self) -> u64 {
        self.dims[2..].iter().product()
    }
}

/// What else runs in two passes.
#[derive(Clone)]
pub(crate) enum Other {
    Softened(Softened),
    Best(Best),
}

impl Other {
    /// In order; the last one makes the result.
    pub(crate) fn ops(&self) -> &[OpId] {
        match self {
            Self::Softened(softened) => &softened.ops,
            Self::Best(best) => std::slice::from_ref(&best.op),
        }
    }

    pub(crate) fn last(&self) -> OpId {
        self.ops().last().copied().unwrap_or(OpId::new(0))
    }

    /// Bytes that are there all the time while tiles run.
    pub(crate) fn kept(&self, graph: &Graph) -> u64 {
        match self {
            Self::Softened(softened) => softened.kept(graph),
            Self::Best(best) => best.kept(graph),
        }
    }
}

/// What else of a graph may run in two passes: softmaxes where sums may be split, searches for the best where bits of ONNX Runtime stay, too.
pub(crate) fn others(graph: &Graph, exactness: Exactness) -> Vec<Other> {
    let mut found = Vec::new();
    if exactness == Exactness::Close {
        found.extend(softened(graph).into_iter().map(Other::Softened));
    }
    if exactness != Exactness::WholeSums {
        found.extend(bests(graph).into_iter().map(Other::Best));
    }
    found
}

/// The graph with all normalizations in two passes, where sums may be split.
pub(crate) fn in_two_passes(graph: &Graph, exactness: Exactness) -> Option<Graph> {
    let is_close = exactness == Exactness::Close;
    is_close.then(|| stream(graph, &streamable(graph, 0)).ok()).flatten()
}

/// The names of the normalizations of a graph that may run in two passes and whose operands have at least so many bytes.
pub(crate) fn streamable(graph: &Graph, bytes: u64) -> Vec<String> {
    let found = norms(graph).into_iter().filter(|norm| norm.bytes(graph) >= bytes);
    found
        .filter_map(|norm| Some(graph.ops[*norm.ops.last()?].name.clone()))
        .collect()
}

/// The graph with these normalizations, and ops of this kind, in two passes.
pub(crate) fn stream(graph: &Graph, names: &[String]) -> Result<Graph, FissionError> {
    if names.is_empty() {
        return Ok(graph.clone());
    }
    let mut known: FxHashMap<OpId, Norm> = FxHashMap::default();
    for norm in norms(graph) {
        known.extend(norm.ops.last().map(|&last| (last, norm.clone())));
    }
    let mut by_last: BTreeMap<OpId, Norm> = BTreeMap::new();
    let mut others: BTreeMap<OpId, Other> = BTreeMap::new();
    let found = self::others(graph, Exactness::Close);
    for name in names {
        let last = find(graph, name)?;
        if let Some(norm) = known.get(&last) {
            by_last.insert(last, norm.clone());
        } else if let Some(other) = found.iter().find(|other| other.last() == last) {
            others.insert(last, other.clone());
        } else {
            return Err(FissionError::NotStreamed(name.clone()));
        }
    }
    let ops = by_last.values().flat_map(|norm| &norm.ops);
    let ops = ops.chain(others.values().flat_map(Other::ops));
    let gone: FxHashSet<OpId> = ops.copied().collect();
    let mut by_producer: FxHashMap<Option<OpId>, Vec<&Norm>> = FxHashMap::default();
    for norm in by_last.values() {
        let producer = graph.tensors[norm.operand].producer;
        by_producer.entry(producer).or_default().push(norm);
    }
    let mut writer = Writer {
        graph,
        names: Names::of(graph),
        transfer: Transfer::new(graph)?,
        moments: FxHashMap::default(),
    };
    for norm in by_producer.get(&None).into_iter().flatten() {
        writer.moments(norm)?;
    }
    for id in graph.ops.keys() {
        match (by_last.get(&id), others.get(&id)) {
            (Some(norm), _) => writer.normalize(norm)?,
            (_, Some(Other::Softened(softened))) => softened.write(&mut writer.transfer, &mut writer.names)?,
            (_, Some(Other::Best(best))) => best.write(&mut writer.transfer, &mut writer.names)?,
            _ if gone.contains(&id) => {}
            _ => writer.transfer.copy(id)?,
        }
        for norm in by_producer.get(&Some(id)).into_iter().flatten() {
            writer.moments(norm)?;
        }
    }
    Ok(writer.transfer.finish().0)
}

struct Writer<'g> {
    graph: &'g Graph,
    names: Names,
    transfer: Transfer<'g>,
    /// By operand and last op: the statistics.
    moments: FxHashMap<OpId, TensorId>,
}

impl Writer<'_> {
    fn last(norm: &Norm) -> OpId {
        norm.ops.last().copied().unwrap_or(OpId::new(0))
    }

    fn name(&self, norm: &Norm) -> &str {
        &self.graph.ops[Self::last(norm)].name
    }

    fn whole(&self, norm: &Norm, tensor: TensorId) -> Result<TensorId, FissionError> {
        let whole = self.transfer.whole[tensor];
        whole.ok_or_else(|| FissionError::NotStreamed(self.name(norm).to_owned()))
    }

    /// The first pass.
    fn moments(&mut self, norm: &Norm) -> Result<(), FissionError> {
        let name = format!("{}_moments", self.name(norm));
        let operand = self.whole(norm, norm.operand)?;
        let made = self.add(norm, MOMENTS, name, vec![Some(operand)], Vec::new())?;
        self.moments.insert(Self::last(norm), made);
        Ok(())
    }

    /// The numbers of the second pass, and the second pass.
    fn normalize(&mut self, norm: &Norm) -> Result<(), FissionError> {
        let own = self.name(norm).to_owned();
        let missing = || FissionError::NotStreamed(own.clone());
        let mut inputs = vec![Some(*self.moments.get(&Self::last(norm)).ok_or_else(missing)?)];
        for number in norm.numbers {
            inputs.push(number.map(|number| self.whole(norm, number)).transpose()?);
        }
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let integer = |value: u64| Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let attributes = vec![
            ("count", integer(norm.count())),
            ("groups", integer(norm.groups)),
            ("epsilon", Attribute::Float(norm.epsilon)),
        ];
        let numbers = self.add(norm, NORMALIZER, format!("{own}_normalizer"), inputs, attributes)?;
        let tensor = &self.graph.tensors[norm.result];
        let mut spec = OpSpec::new(own.clone(), NORMALIZE);
        spec.domain = STREAMED_DOMAIN.to_owned();
        spec.inputs = vec![Some(self.whole(norm, norm.operand)?), Some(numbers)];
        for number in norm.of_elements.into_iter().flatten() {
            spec.inputs.push(Some(self.whole(norm, number)?));
        }
        spec.parts = vec![Some(Part::whole(tensor.name.clone(), &norm.dims))];
        spec.results = vec![Some(ResultSpec {
            name: tensor.name.clone(),
            ty: tensor.ty.clone(),
            placement: Placement::New,
        })];
        let results = self.transfer.add(Self::last(norm), spec)?;
        let made = results.into_iter().flatten().next().ok_or_else(missing)?;
        self.transfer.name_whole(norm.result, made);
        Ok(())
    }

    /// An op whose result has two numbers for each channel.
    fn add(
        &mut self,
        norm: &Norm,
        op_type: &str,
        name: String,
        inputs: Vec<Option<TensorId>>,
        attributes: Vec<(&str, Attribute)>,
    ) -> Result<TensorId, FissionError> {
        let name = self.names.op(name);
        let image = self.graph.tensors[norm.operand].ty.dims();
        let of_channels = image.iter().take(2).cloned().chain([1, 2].map(Dim::Known));
        let mut spec = OpSpec::new(name.clone(), op_type);
        spec.domain = STREAMED_DOMAIN.to_owned();
        spec.inputs = inputs;
        spec.attributes
            .extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
        spec.results = vec![Some(ResultSpec {
            name: self.names.tensor(name),
            ty: ValueType::Tensor {
                element: ElementType::Float32,
                shape: Some(of_channels.collect()),
            },
            placement: Placement::New,
        })];
        let operand = &self.graph.tensors[norm.operand].name;
        let part = Part {
            is_sum: true,
            ..Part::whole(operand.clone(), &norm.dims)
        };
        spec.parts = vec![Some(part)];
        let results = self.transfer.add(Self::last(norm), spec)?;
        let made = results.into_iter().flatten().next();
        made.ok_or_else(|| FissionError::NotStreamed(self.name(norm).to_owned()))
    }
}

/// The normalizations of a graph that may run in two passes.
fn norms(graph: &Graph) -> Vec<Norm> {
    let matcher = Matcher {
        graph,
        readers: graph.users(),
    };
    graph.ops.keys().filter_map(|id| matcher.norm(id)).collect()
}

/// Ops that compute a normalization together.
struct Matcher<'g> {
    graph: &'g Graph,
    readers: typed_index_collections::TiVec<TensorId, smallvec::SmallVec<[OpId; 4]>>,
}

impl Matcher<'_> {
    /// The normalization around op `id`.
    fn norm(&self, id: OpId) -> Option<Norm> {
        let op = &self.graph.ops[id];
        let row = operator(&op.domain, &op.op_type);
        let by_instance = row.split == Split::PerChannel && matches!(row.cost, Formula::Normalization(_));
        let by_group = row.split == Split::GroupNorm;
        let by_element = row.split == Split::LayerNorm;
        if !(by_instance || by_group || by_element) || op.results().count() != 1 {
            return None;
        }
        let operand = |place: usize| op.inputs.get(place).copied().flatten();
        let (data, scale, bias) = (operand(0)?, operand(1)?, operand(2));
        let own = self.dims(data)?;
        let mut norm = Norm {
            ops: vec![id],
            operand: data,
            result: op.results().next()?,
            numbers: [Some(scale), bias, None, None],
            of_elements: [None; 2],
            groups: *own.get(1)?,
            epsilon: match op.attributes.get("epsilon") {
                Some(Attribute::Float(epsilon)) => *epsilon,
                None => EPSILON,
                Some(_) => return None,
            },
            dims: own,
        };
        if by_element {
            // All channels together, or each by itself.
            let site = Site::of_all(self.graph, op)?;
            let first = site.axis_of(site.int("axis", -1), norm.dims.len()).ok()?;
            norm.groups = if first == 1 { 1 } else { norm.groups };
            (norm.of_elements, norm.numbers) = ([Some(scale), bias], [None; 4]);
            let is_of_elements = |&number: &TensorId| self.dims(number).is_some_and(|dims| dims == norm.dims[first..]);
            // Where the last axis alone is normalized, tiles along others keep every bit.
            let is_of_image = matches!(first, 1 | 2) && first + 1 < norm.dims.len() && site.int("stash_type", 1) == 1;
            if !is_of_image || !norm.of_elements.iter().flatten().all(is_of_elements) {
                return None;
            }
        } else if by_group {
            norm.groups = u64::try_from(op.attributes.get("num_groups")?.as_int()?).ok()?;
        } else {
            self.between_reshapes(&mut norm);
        }
        let is_split = norm.dims.len() > 2 && norm.groups > 0 && norm.dims[1].is_multiple_of(norm.groups);
        let fits = |&place: &TensorId| {
            let dims = self.dims(place).unwrap_or_default();
            dims == [norm.groups] || dims == [norm.dims[1]]
        };
        let ty = &self.graph.tensors[norm.operand].ty;
        let has_numbers = by_element || bias.is_some_and(|bias| [scale, bias].iter().all(fits));
        let is_float = matches!(ty.element(), Some(ElementType::Float32 | ElementType::Float16));
        if !is_split || !has_numbers || !is_float || !is_fixed_but_images(ty) {
            return None;
        }
        if !by_element {
            self.followed_by_numbers(&mut norm);
        }
        Some(norm)
    }

    /// Where the channels of each group are one instance between two reshapes, the reshapes are part of it.
    fn between_reshapes(&self, norm: &mut Norm) {
        let reshape = |id: OpId| {
            let op = &self.graph.ops[id];
            operator(&op.domain, &op.op_type).split == Split::Reshape
        };
        let around = || {
            let before = self.graph.tensors[norm.operand]
                .producer
                .filter(|&before| reshape(before))?;
            let operand = self.graph.ops[before].inputs.first().copied().flatten()?;
            let after = self.lone_reader(norm.result).filter(|&after| reshape(after))?;
            let result = self.graph.ops[after].results().next()?;
            let dims = self.dims(operand)?;
            // With as many elements in each image, every size of a batch keeps its place.
            let are_fixed = [operand, norm.operand, result]
                .iter()
                .all(|&tensor| is_fixed_but_images(&self.graph.tensors[tensor].ty));
            let is_around = are_fixed
                && self.lone_reader(norm.operand) == norm.ops.first().copied()
                && self.dims(result).as_ref() == Some(&dims)
                && dims.len() > 2
                && dims[0] == norm.dims[0]
                && dims[1].is_multiple_of(norm.groups.max(1))
                && self.graph.ops[after].inputs.first() == Some(&Some(norm.result));
            is_around.then_some((before, after, operand, result, dims))
        };
        if let Some((before, after, operand, result, dims)) = around() {
            norm.ops = vec![before, norm.ops[0], after];
            (norm.operand, norm.result, norm.dims) = (operand, result, dims);
        }
    }

    /// A product with a number for each channel that follows, and a sum.
    fn followed_by_numbers(&self, norm: &mut Norm) {
        for place in [2, 3] {
            let Some(next) = self.lone_reader(norm.result) else {
                return;
            };
            let op = &self.graph.ops[next];
            let blocked = operator(&op.domain, &op.op_type).blocked;
            let is_next = match place {
                2 => blocked == Blocked::Product,
                _ => matches!(blocked, Blocked::Sum { .. }),
            };
            let other = match op.inputs[..] {
                [Some(left), Some(right)] if left == norm.result => right,
                [Some(left), Some(right)] if right == norm.result => left,
                _ if place == 2 => continue,
                _ => return,
            };
            if !is_next || !self.is_by_channel(other, &norm.dims) {
                continue;
            }
            let Some(result) = op
                .results()
                .next()
                .filter(|&result| self.dims(result).as_ref() == Some(&norm.dims))
            else {
                return;
            };
            norm.numbers[place] = Some(other);
            norm.ops.push(next);
            norm.result = result;
        }
    }

    /// Whether a tensor is a constant with an element for each channel.
    fn is_by_channel(&self, tensor: TensorId, dims: &[u64]) -> bool {
        let entry = &self.graph.tensors[tensor];
        let own = self.dims(tensor).unwrap_or_default();
        let channel = own.len().checked_sub(dims.len() - 1);
        let is_channel = channel.is_some_and(|channel| {
            own.iter()
                .enumerate()
                .all(|(axis, &dim)| if axis == channel { dim == dims[1] } else { dim == 1 })
        });
        is_channel && own.len() <= dims.len() && self.graph.storages[entry.storage].class == StorageClass::Constant
    }

    fn dims(&self, tensor: TensorId) -> Option<Vec<u64>> {
        self.graph.tensors[tensor].ty.known_shape()
    }

    /// The op that reads a result, if no other does.
    fn lone_reader(&self, tensor: TensorId) -> Option<OpId> {
        match self.readers[tensor][..] {
            [reader] if !self.graph.outputs.contains(&tensor) => Some(reader),
            _ => None,
        }
    }
}

/// Whether nothing but the number of images is left open.
fn is_fixed_but_images(ty: &ValueType) -> bool {
    !ty.dims().iter().skip(1).any(Dim::is_free)
}

/// Whether an op, or what it is a clone of, is part of this normalization, softmax or search for the best in two passes.
pub(crate) fn is_part(op: &Op, norm: &str) -> bool {
    let of = op.name.split("_again").next().unwrap_or_default();
    let rest = of.strip_prefix(norm);
    let is_own = |rest: &str| {
        matches!(
            rest,
            "" | "_moments" | "_normalizer" | "_exponentials" | "_best" | "_values"
        )
    };
    op.domain == STREAMED_DOMAIN && rest.is_some_and(is_own)
}
