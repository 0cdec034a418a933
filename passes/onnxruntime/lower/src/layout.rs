//! What a file must leave alone, so that the runtime lays images out as it does for the model.
//!
//! Where everything is optimized, ONNX Runtime converts convolutions with constant weights, and what stands between them, to blocks of
//! channels (`com.microsoft.nchwc`). It decides by what it sees when it loads a file: an Add is fused into a convolution if the shapes
//! of its operands are known to be equal and nothing else reads what the convolution makes; a pool is converted if the channels of its
//! operand are known, of whatever other extents. Another layout has other kernels, and so other bits.
//!
//! Extents are equal if they have the same name, too. So that is all that the runtime learns of large values: a buffer of known shape is kept for later
//! results of that shape, and tiles have many.
//!
//! Source: ONNX Runtime, `core/optimizer/nchwc_transformer.cc`.

use remat_ir::{Dim, Graph, OpKind, ValueType};
use remat_onnx::proto::GraphProto;
use remat_onnx::value_info;
use remat_operators::{DecidedBy, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::names::Names;

/// How the runtime calls what it converts: by the result, and this.
pub(crate) const CONVERTED: &str = "_nchwc";

/// The axis of channels.
const CHANNELS: usize = 1;

/// What of a model the runtime's layouts concern, by names of the model's values.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The first results of nodes that are converted.
    pub converted: FxHashSet<String>,
    /// Values whose shapes decide over a conversion.
    pub stated: FxHashSet<String>,
    /// Values whose equal shapes do, each with the number of those that it is equal to.
    pub equal: FxHashMap<String, usize>,
    /// Values whose channels do.
    pub channels: FxHashSet<String>,
    /// Values that nodes make in blocks. Where a node without blocks reads one, there is a copy of it, too.
    pub in_blocks: FxHashSet<String>,
    /// Values of which there is a copy without blocks, made by a node of its own.
    pub copied: FxHashSet<String>,
    /// Values that exist in blocks only: a further reader would make a copy of them.
    pub blocked: FxHashSet<String>,
    /// The first results of convolutions that stay in the usual layout: the runtime learns their weights late. They may round otherwise.
    pub plain: FxHashSet<String>,
}

impl Layout {
    /// The same for a graph that was rewritten: clones are what they are clones of.
    pub(crate) fn of(&self, rewritten: &Graph) -> Self {
        let mut own = self.clone();
        if self.converted.is_empty() && self.plain.is_empty() {
            return own;
        }
        for op in &rewritten.ops {
            let OpKind::Recompute { of } = op.kind else { continue };
            for (clone, original) in op.outputs.iter().zip(&rewritten.ops[of].outputs) {
                let (Some(clone), Some(original)) = (*clone, *original) else {
                    continue;
                };
                let (clone, original) = (&rewritten.tensors[clone].name, &rewritten.tensors[original].name);
                for (names, own) in [
                    (&self.converted, &mut own.converted),
                    (&self.stated, &mut own.stated),
                    (&self.channels, &mut own.channels),
                    (&self.in_blocks, &mut own.in_blocks),
                    (&self.copied, &mut own.copied),
                    (&self.blocked, &mut own.blocked),
                    (&self.plain, &mut own.plain),
                ] {
                    if names.contains(original) {
                        own.insert(clone.clone());
                    }
                }
                if let Some(&number) = self.equal.get(original) {
                    own.equal.insert(clone.clone(), number);
                }
            }
        }
        own
    }

    /// The values of the rewritten graph in blocks that only nodes in blocks read which are never fused into what makes them: how many readers there
    /// are decides over nothing, and no copy without blocks is needed.
    pub(crate) fn read_in_blocks(&self, rewritten: &Graph) -> FxHashSet<String> {
        let outputs = rewritten.outputs.iter().map(|&output| &rewritten.tensors[output].name);
        let mut needed: FxHashSet<&String> = outputs.collect();
        let mut found = FxHashSet::default();
        for op in rewritten.ops.iter().filter(|op| op.kind.is_run()) {
            let result = op.results().next().map(|result| &rewritten.tensors[result].name);
            let reads_blocks = operator(&op.domain, &op.op_type).blocked.is_never_fused()
                && result.is_some_and(|result| self.in_blocks.contains(result));
            for operand in op.reads().map(|operand| &rewritten.tensors[operand].name) {
                if !reads_blocks {
                    needed.insert(operand);
                } else if self.in_blocks.contains(operand) {
                    found.insert(operand.clone());
                }
            }
        }
        found.retain(|name| !needed.contains(name));
        found
    }

    /// Whether a view may stand between `operand` and the node that makes `result`.
    pub(crate) fn allows_view(&self, result: &str, operand: &str) -> bool {
        !self.converted.contains(result) && !self.blocked.contains(operand)
    }

    /// Whether something of the shape of a value decides over a conversion.
    pub(crate) fn states(&self, name: &str) -> bool {
        self.stated.contains(name) || self.equal.contains_key(name) || self.channels.contains(name)
    }

    /// Notes what must be known of the values that a node reads.
    pub(crate) fn state(&mut self, by: DecidedBy, values: Vec<String>) {
        match by {
            DecidedBy::Shape => self.stated.extend(values),
            DecidedBy::EqualShapes => self.are_equal(&values),
            DecidedBy::Channels => self.channels.extend(values),
        }
    }

    /// Notes that values are equal to one that is stated, and so stated, too.
    pub(crate) fn state_all_that_are_equal(&mut self) {
        let stated = self.stated.iter().filter_map(|name| self.equal.get(name));
        let stated: FxHashSet<usize> = stated.copied().collect();
        let equal = self.equal.iter().filter(|(_, number)| stated.contains(number));
        self.stated.extend(equal.map(|(name, _)| name.clone()));
    }

    /// Notes that values have one shape.
    fn are_equal(&mut self, values: &[String]) {
        let known: Vec<usize> = values
            .iter()
            .filter_map(|value| self.equal.get(value).copied())
            .collect();
        let number = known.first().copied().unwrap_or(self.equal.len());
        for other in self.equal.values_mut().filter(|other| known.contains(other)) {
            *other = number;
        }
        self.equal.extend(values.iter().map(|value| (value.clone(), number)));
    }

    /// Puts into the file what decides over a conversion: the shapes of values that are `small`, else channels, and names of other extents that are
    /// equal.
    pub(crate) fn state_shapes(
        &self,
        graph: &mut GraphProto,
        types: &FxHashMap<String, ValueType>,
        names: &mut Names,
        small: impl Fn(&str) -> bool,
    ) {
        graph.value_info.retain(|value| !self.states(&value.name));
        let outputs: FxHashSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
        let mut wanted: Vec<&String> = self
            .stated
            .iter()
            .chain(self.equal.keys())
            .chain(&self.channels)
            .collect();
        wanted.retain(|name| !outputs.contains(*name));
        wanted.sort_unstable();
        wanted.dedup();
        let mut extents: FxHashMap<(usize, usize), String> = FxHashMap::default();
        for name in wanted {
            let Some(ty) = types.get(name) else { continue };
            let ty = match self.equal.get(name) {
                _ if self.stated.contains(name) => ty.clone(),
                Some(_) if small(name) => ty.clone(),
                Some(&number) => with_extents(ty.clone(), |axis| {
                    let fresh = || names.fresh(&format!("remat_extent_{number}_{axis}"));
                    Dim::Symbol(extents.entry((number, axis)).or_insert_with(fresh).clone())
                }),
                None => with_extents(ty.clone(), |_| Dim::Unknown),
            };
            graph.value_info.extend(value_info(name, &ty));
        }
    }
}

/// A type in which the channels of images and names are known, and of other axes what `extent` says.
fn with_extents(mut ty: ValueType, mut extent: impl FnMut(usize) -> Dim) -> ValueType {
    if let ValueType::Tensor { shape: Some(dims), .. } = &mut ty {
        for (axis, dim) in dims.iter_mut().enumerate() {
            if axis != CHANNELS && !matches!(dim, Dim::Symbol(_) | Dim::Free { name: Some(_), .. }) {
                *dim = extent(axis);
            }
        }
    }
    ty
}
