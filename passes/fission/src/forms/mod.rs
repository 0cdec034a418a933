//! In which form ONNX Runtime computes an op, where forms have other bits.
//!
//! When it loads a model at `ENABLE_ALL` on x86, convolutions of constant weights work on blocks of 8 or 16 channels (NCHWc), and what follows
//! them stays in blocks where its kernel can. In blocks some ops are computed in another way, and an addition that follows a convolution may
//! become part of it: which sum is rounded first depends on what stands beside the op. A tile beside a `Slice` may so get another form than the
//! whole. The rules are those of `onnxruntime/core/optimizer/nchwc_transformer.cc` and `conv_add_act_fusion.cc` (1.31), held against the
//! graphs that the runtime writes.

mod facts;

use std::rc::Rc;

use remat_ir::{Graph, Op, OpId, TensorId};
use remat_operators::Blocked;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use facts::{BLOCKS, Convolution, Form, Kind};
pub(crate) use facts::{Facts, blocked, is_in_blocks};

/// An op in order: by operand, then by capture, the tensor, if an op makes it; and its first result.
pub(crate) struct Placed {
    pub(crate) facts: Facts,
    pub(crate) reads: SmallVec<[Option<TensorId>; 4]>,
    pub(crate) result: Option<TensorId>,
}

/// The forms of the ops of a graph, to hold those of tiles against.
pub(crate) struct Forms<'g> {
    graph: &'g Graph,
    ops: Vec<Placed>,
    /// By entry of [`BLOCKS`].
    by_block: Vec<Vec<Form>>,
    producers: FxHashMap<&'g str, OpId>,
}

impl<'g> Forms<'g> {
    /// `None` where all ops have their own form.
    pub(crate) fn of(graph: &'g Graph) -> Option<Self> {
        let is_origin = |op: &Op| matches!(blocked(op), Blocked::Convolution { .. } | Blocked::Pool { .. });
        graph.ops.iter().any(is_origin).then(|| {
            let made = graph.tensors.iter();
            let mut forms = Self {
                graph,
                ops: Vec::new(),
                by_block: Vec::new(),
                producers: made
                    .filter_map(|tensor| Some((tensor.name.as_str(), tensor.producer?)))
                    .collect(),
            };
            forms.ops = forms.placed(graph);
            forms.by_block = forms.walks().map(Walk::forms).collect();
            forms
        })
    }

    /// The first op of `tiled` that has another form than the op that it is a part of.
    pub(crate) fn differing(&self, tiled: &Graph) -> Option<OpId> {
        let first = self.first_differing(&self.placed(tiled), tiled.tensors.len(), &tiled.outputs);
        first.map(OpId::new)
    }

    /// The same by the ops of a tiled graph in order, the number of its tensors, and its outputs.
    pub(crate) fn first_differing(&self, placed: &[Placed], tensors: usize, outputs: &[TensorId]) -> Option<usize> {
        let pairs = self.by_block.iter().zip(walks(placed, tensors, outputs));
        let differs = |(whole, walk): (&Vec<Form>, Walk<'_>)| {
            let mut pairs = placed.iter().zip(walk.forms());
            pairs.position(|(op, own)| op.facts.of.is_some_and(|of| whole[of.index()] != own))
        };
        pairs.filter_map(differs).min()
    }

    /// The ops that have another form in blocks than they would have if what they read was in none.
    pub(crate) fn needing_blocks(&self) -> FxHashSet<OpId> {
        let mut found = FxHashSet::default();
        for mut walk in self.walks() {
            for (place, op) in self.ops.iter().enumerate() {
                walk.form(op);
                if walk.needs_blocks(op) {
                    found.insert(OpId::new(place));
                }
            }
        }
        found
    }

    fn walks(&self) -> impl Iterator<Item = Walk<'_>> {
        walks(&self.ops, self.graph.tensors.len(), &self.graph.outputs)
    }

    fn placed(&self, graph: &Graph) -> Vec<Placed> {
        let is_made = |tensor: &TensorId| graph.tensors[*tensor].producer.is_some();
        let placed = |op: &Op| Placed {
            facts: self.facts(graph, op),
            reads: (op.inputs.iter().copied())
                .chain(op.captures.iter().map(|&capture| Some(capture)))
                .map(|read| read.filter(is_made))
                .collect(),
            result: op.results().next(),
        };
        graph.ops.iter().map(placed).collect()
    }

    /// What `op` of a tiled graph says of its form.
    pub(crate) fn facts(&self, tiled: &Graph, op: &Op) -> Facts {
        Facts::of(tiled, op, self.original(tiled, op))
    }

    /// The op that `op` of a tiled graph is a part of; `None` for those that fission added.
    fn original(&self, tiled: &Graph, op: &Op) -> Option<OpId> {
        let (place, result) = op
            .outputs
            .iter()
            .enumerate()
            .find_map(|(place, &result)| Some((place, result?)))?;
        let name = match op.parts.get(place) {
            Some(Some(part)) => part.of.as_str(),
            _ => tiled.tensors[result].name.as_str(),
        };
        let original = *self.producers.get(name)?;
        let of = &self.graph.ops[original];
        (of.op_type == op.op_type && of.domain == op.domain && of.source == op.source).then_some(original)
    }
}

/// Ops being walked in order.
struct Walk<'a> {
    ops: &'a [Placed],
    /// The place of the block in [`BLOCKS`].
    block: usize,
    /// By tensor: how often it is read, graph outputs included.
    uses: Rc<TiVec<TensorId, u32>>,
    /// By tensor: the op that makes it, by its place, where it is its first result.
    producers: Rc<TiVec<TensorId, usize>>,
    /// By tensor: whether it exists in blocks.
    in_blocks: TiVec<TensorId, bool>,
}

/// By entry of [`BLOCKS`]: a walk over these ops.
fn walks<'a>(ops: &'a [Placed], tensors: usize, outputs: &'a [TensorId]) -> impl Iterator<Item = Walk<'a>> + use<'a> {
    let mut uses: TiVec<TensorId, u32> = TiVec::from(vec![0; tensors]);
    let mut producers: TiVec<TensorId, usize> = TiVec::from(vec![usize::MAX; tensors]);
    let reads = ops.iter().flat_map(|op| op.reads.iter().flatten());
    for &tensor in reads.chain(outputs) {
        uses[tensor] += 1;
    }
    for (place, op) in ops.iter().enumerate() {
        if let Some(result) = op.result {
            producers[result] = place;
        }
    }
    let (uses, producers) = (Rc::new(uses), Rc::new(producers));
    (0..BLOCKS.len()).map(move |block| Walk {
        ops,
        block,
        uses: Rc::clone(&uses),
        producers: Rc::clone(&producers),
        in_blocks: TiVec::from(vec![false; tensors]),
    })
}

impl Walk<'_> {
    fn forms(mut self) -> Vec<Form> {
        self.ops.iter().map(|op| self.form(op)).collect()
    }

    /// The form of the next op in order; notes whether its result is in blocks.
    fn form(&mut self, op: &Placed) -> Form {
        let (form, is_in_blocks) = self.decide(op);
        if let Some(result) = op.result {
            self.in_blocks[result] = is_in_blocks;
        }
        form
    }

    /// Whether an op has another form where one of its operands is in no blocks.
    fn needs_blocks(&mut self, op: &Placed) -> bool {
        let (form, _) = self.decide(op);
        op.reads.iter().flatten().any(|&tensor| {
            let is_in_blocks = std::mem::replace(&mut self.in_blocks[tensor], false);
            let (other, _) = self.decide(op);
            self.in_blocks[tensor] = is_in_blocks;
            other != form
        })
    }

    fn decide(&self, op: &Placed) -> (Form, bool) {
        let reads_blocks = |place: usize| {
            let operand = op.reads.get(place).copied().flatten();
            operand.is_some_and(|tensor| self.in_blocks[tensor])
        };
        let all_in_blocks = || op.reads.iter().flatten().all(|&tensor| self.in_blocks[tensor]);
        let is_folded = self.is_folded(op);
        match op.facts.kind {
            Kind::Convolution(blocked) if blocked[self.block] => (Form::InBlocks, true),
            // What is not in blocks is not put there for a pool over all of the image.
            Kind::Pool { fits, averages, global } if fits[self.block] && (!global || reads_blocks(0)) => {
                (if averages { Form::InBlocks } else { Form::Own }, true)
            }
            Kind::Sum { everywhere } => {
                let stays = op.facts.is_alike && all_in_blocks();
                let form = match self.summed(op, stays, everywhere) {
                    Some(place) => Form::InConvolution(place),
                    None if is_folded => Form::InWeights,
                    None => Form::Own,
                };
                (form, stays)
            }
            Kind::Product if is_folded => (Form::InWeights, reads_blocks(0) || reads_blocks(1)),
            Kind::Product => (Form::Own, op.facts.is_alike && all_in_blocks()),
            Kind::Normalization { is_known } => {
                let blocked = reads_blocks(0) && is_known;
                let before = op.reads.first().copied().flatten();
                match before.and_then(|tensor| self.lone_conv(tensor)) {
                    Some(_) if is_known => (Form::InWeights, blocked),
                    _ if blocked => (Form::InBlocks, true),
                    _ => (Form::Own, false),
                }
            }
            Kind::Concat(fits) => (Form::Own, fits[self.block] && all_in_blocks()),
            Kind::Resize(form) if reads_blocks(0) => (form, true),
            Kind::Unary => (Form::Own, reads_blocks(0)),
            Kind::Convolution(_) | Kind::Pool { .. } | Kind::Resize(_) | Kind::Never => (Form::Own, false),
        }
    }

    /// The convolution that makes a tensor, if only one op reads it and nothing else is part of it.
    fn lone_conv(&self, tensor: TensorId) -> Option<Convolution> {
        let producer = self.ops.get(self.producers[tensor])?;
        producer.facts.convolution.filter(|_| self.uses[tensor] == 1)
    }

    /// The operand whose convolution an addition of two tensors of one shape becomes part of: in blocks the first one that is made by such a
    /// convolution, else the one that is made first.
    fn summed(&self, op: &Placed, stays: bool, everywhere: bool) -> Option<usize> {
        if !op.facts.is_pair_of_images {
            return None;
        }
        let sums = |tensor: TensorId| match self.lone_conv(tensor) {
            Some(_) if self.in_blocks[tensor] => stays,
            Some(conv) => everywhere && conv.is_plain && conv.has_bias,
            None => false,
        };
        let operands = op.reads.iter().enumerate();
        let places =
            operands.filter_map(|(place, &tensor)| tensor.filter(|&tensor| sums(tensor)).map(|tensor| (place, tensor)));
        let made = |tensor: TensorId| (!stays).then_some(self.producers[tensor]);
        places
            .min_by_key(|&(place, tensor)| (made(tensor), place))
            .map(|(place, _)| place)
    }

    /// Whether a constant number by channel becomes part of the weights or the bias of the convolution before.
    fn is_folded(&self, op: &Placed) -> bool {
        let folds = |conv: usize, other: usize| {
            let conv = op.reads[conv].and_then(|tensor| self.lone_conv(tensor));
            conv.is_some_and(|conv| conv.has_constant_weights) && op.facts.by_channel[other]
        };
        op.facts.is_pair && (folds(0, 1) || folds(1, 0))
    }
}
