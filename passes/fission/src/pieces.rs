//! Tensors in pieces: who needs rows takes them from pieces, who needs everything joins them.

use std::ops::Range;

use remat_ir::{
    Attribute, Dim, ElementType, OpId, OpSpec, Part, Placement, ResultSpec, Spare, StorageClass, TensorId, ValueType,
};
use remat_operators::Combine;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

use crate::FissionError;
use crate::blocks::{Blocks, CHANNELS};
use crate::course::Run;
use crate::names::Names;
use crate::rules::{Integers, Need};
use crate::sums::Summed;
use crate::transfer::Transfer;

/// Rows of a tensor along the axis of its pieces.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) rows: Range<u64>,
    pub(crate) tensor: TensorId,
}

/// A tensor of the old graph that no tensor of the new one holds whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) axis: usize,
    pub(crate) list: Vec<Piece>,
}

/// Writes a tiled graph.
pub(crate) struct Writer<'g> {
    pub(crate) transfer: Transfer<'g>,
    pub(crate) names: Names,
    pub(crate) pieces: TiVec<TensorId, Option<Pieces>>,
    /// By tensor of the new graph: its box, where it is not whole.
    pub(crate) boxes: FxHashMap<TensorId, Vec<Range<u64>>>,
    /// Slices of this tile: tensor, axis, rows.
    slices: FxHashMap<(TensorId, usize, u64, u64), TensorId>,
    constants: FxHashMap<Integers, TensorId>,
    /// By result of the old graph of which there are sums over tiles only: those.
    pub(crate) sums: FxHashMap<TensorId, Summed>,
    /// The op of the old graph that is written.
    pub(crate) at: OpId,
    pub(crate) blocks: Blocks,
}

/// The share of a piece, in tenths, from which on a slice of it is not worth its copy.
const TOO_LARGE_TENTHS: u64 = 7;

impl<'g> Writer<'g> {
    pub(crate) fn new(transfer: Transfer<'g>, names: Names, blocks: Blocks) -> Self {
        let graph = transfer.graph;
        Self {
            names,
            pieces: TiVec::from(vec![None; graph.tensors.len()]),
            boxes: FxHashMap::default(),
            slices: FxHashMap::default(),
            constants: FxHashMap::default(),
            sums: FxHashMap::default(),
            at: OpId::new(0),
            blocks,
            transfer,
        }
    }

    /// An op that is not cut.
    pub(crate) fn copy(&mut self, op: OpId) -> Result<(), FissionError> {
        self.at = op;
        self.begin_tile();
        let entry = &self.transfer.graph.ops[op];
        for tensor in entry.reads() {
            self.whole(tensor)?;
        }
        let operands = self.transfer.operands(entry);
        let operands = self.in_blocks(op, operands)?;
        self.transfer.copy_of(op, operands.clone())?;
        let results: Vec<_> = entry
            .outputs
            .iter()
            .map(|result| self.transfer.whole[(*result)?])
            .collect();
        self.blocks.follow(entry, &operands, &results);
        Ok(())
    }

    /// How many ops are written.
    pub(crate) fn ops(&self) -> usize {
        self.transfer.ops()
    }

    /// From here on slices are made anew, so that none lives on from an earlier tile.
    pub(crate) fn begin_tile(&mut self) {
        self.slices.clear();
        self.blocks.begin_tile();
    }

    /// A part of an op, and the rows that it hands on.
    pub(crate) fn run(&mut self, run: &Run, tile: usize) -> Result<(), FissionError> {
        self.at = run.op;
        let graph = self.transfer.graph;
        let op = &graph.ops[run.op];
        let inputs = match self.sliced_at_once(run)? {
            Some(inputs) => inputs,
            None => self.operands(run)?,
        };
        let inputs = self.in_blocks(run.op, inputs)?;
        let (before, after) = run.cut.spare;
        let has_spare = before + after > 0;
        let mut results = Vec::with_capacity(op.outputs.len());
        let mut parts = Vec::with_capacity(op.outputs.len());
        for &output in &op.outputs {
            let Some(output) = output else {
                results.push(None);
                parts.push(None);
                continue;
            };
            let ranges = self.full(output, run.axis, &run.rows);
            let mut made = ranges.clone();
            made[run.axis] = 0..run.rows.end - run.rows.start + before + after;
            results.push(Some(ResultSpec {
                name: self
                    .names
                    .tensor(format_args!("{}_tile{tile}", graph.tensors[output].name)),
                ty: self.part_type(output, &made),
                placement: self.transfer.placement(op, output, &inputs),
            }));
            let mut part = self.part(output, ranges);
            if has_spare {
                // Rows of two axes that are not right cannot be stated.
                if part.spare.is_some() {
                    return Err(FissionError::RunsOnce(op.name.clone()));
                }
                let axis = run.axis;
                part.spare = Some(Spare { axis, before, after });
            }
            parts.push(Some(part));
        }
        let name = self.names.op(format_args!("{}_tile{tile}", op.name));
        let mut spec = self.transfer.spec(run.op, name, inputs.clone());
        let changed = run
            .cut
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        spec.attributes.extend(changed);
        spec.results = results;
        spec.parts = parts;
        let made = self.transfer.add(run.op, spec)?;
        self.blocks.follow(op, &inputs, &made);
        for (&output, made) in op.outputs.iter().zip(made) {
            let (Some(output), Some(mut tensor)) = (output, made) else {
                continue;
            };
            let ranges = self.full(output, run.axis, &run.rows);
            if has_spare {
                let bounds = before..before + run.rows.end - run.rows.start;
                tensor = self.slice(output, tensor, run.axis, bounds, ranges.clone())?;
            }
            self.boxes.insert(tensor, ranges);
            let pieces = self.pieces[output].get_or_insert_default();
            pieces.axis = run.axis;
            let rows = run.rows.clone();
            pieces.list.push(Piece { rows, tensor });
        }
        self.hand_rows_on(run)
    }

    pub(crate) fn hand_rows_on(&mut self, run: &Run) -> Result<(), FissionError> {
        for (tensor, rows) in &run.hands_on {
            self.hand_on(*tensor, rows)?;
        }
        Ok(())
    }

    /// What a part of an op reads.
    pub(crate) fn operands(&mut self, run: &Run) -> Result<Vec<Option<TensorId>>, FissionError> {
        let op = &self.transfer.graph.ops[run.op];
        let mut inputs = Vec::with_capacity(op.inputs.len());
        for (place, (&operand, need)) in op.inputs.iter().zip(&run.cut.needs).enumerate() {
            let input = match (operand, run.cut.integers.get(&place), need) {
                (None, ..) => None,
                (_, Some(integers), _) => Some(self.constant(integers)?),
                (Some(operand), None, Need::Whole) => Some(self.whole(operand)?),
                (Some(operand), None, Need::Rows { axis, rows }) => Some(self.rows(operand, *axis, rows)?),
            };
            inputs.push(input);
        }
        Ok(inputs)
    }

    /// What an op is to read instead of these operands: where it needs blocks, those outside of them are put back.
    fn in_blocks(
        &mut self,
        op: OpId,
        mut operands: Vec<Option<TensorId>>,
    ) -> Result<Vec<Option<TensorId>>, FissionError> {
        if !self.blocks.are_needed_by(op) {
            return Ok(operands);
        }
        for (old, operand) in self.transfer.graph.ops[op].inputs.iter().zip(&mut operands) {
            if let (&Some(old), &mut Some(held)) = (old, &mut *operand) {
                let ranges = self.ranges(old, held);
                if self.blocks.may_return(held, &ranges) {
                    *operand = Some(self.put_back(old, held, ranges)?);
                }
            }
        }
        Ok(operands)
    }

    fn put_back(
        &mut self,
        tensor: TensorId,
        held: TensorId,
        ranges: Vec<Range<u64>>,
    ) -> Result<TensorId, FissionError> {
        if let Some(back) = self.blocks.returned(held) {
            return Ok(back);
        }
        let (of, rows) = (self.transfer.tensor_of(tensor), &ranges[CHANNELS + 1]);
        let name = self
            .names
            .tensor(format_args!("{of}_blocks{}_{}", rows.start, rows.end));
        let mut spec = OpSpec::new(String::new(), "MaxPool");
        let kernel = Attribute::Ints(vec![1; ranges.len() - CHANNELS - 1]);
        spec.attributes.insert("kernel_shape".to_owned(), kernel);
        spec.inputs = vec![Some(held)];
        let back = self.finish_move(spec, tensor, name, Placement::New, ranges)?;
        self.blocks.note_return(held, back);
        Ok(back)
    }

    /// A part of a slice that a tile takes from what is whole: one slice of both axes, so that no slice of one of them is there first.
    fn sliced_at_once(&mut self, run: &Run) -> Result<Option<Vec<Option<TensorId>>>, FissionError> {
        let graph = self.transfer.graph;
        let op = &graph.ops[run.op];
        let &[Some(data), Some(starts), Some(ends), Some(axes)] = op.inputs.as_slice() else {
            return Ok(None);
        };
        let Some(whole) = self.transfer.whole[data].filter(|_| op.source.is_none() && op.op_type == "Slice") else {
            return Ok(None);
        };
        let known = [starts, ends, axes].map(|tensor| graph.values.get(&tensor).cloned());
        let [Some(mut starts), Some(mut ends), Some(mut axes)] = known else {
            return Ok(None);
        };
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (axis, from, to) = (number(run.axis as u64), number(run.rows.start), number(run.rows.end));
        match axes.iter().position(|&known| known == axis) {
            Some(place) => (starts[place], ends[place]) = (starts[place] + from, starts[place] + to),
            None => {
                starts.push(from);
                ends.push(to);
                axes.push(axis);
            }
        }
        let mut inputs = vec![Some(whole)];
        for list in [starts, ends, axes] {
            inputs.push(Some(self.constant(&Integers::list(list))?));
        }
        Ok(Some(inputs))
    }

    /// The part of the tensor of the untiled graph that a box of `tensor` is, which may be a part itself.
    pub(crate) fn part(&self, tensor: TensorId, ranges: Vec<Range<u64>>) -> Part {
        let Some(base) = self.transfer.part_of(tensor) else {
            let of = self.transfer.tensor_of(tensor).to_owned();
            return Part {
                of,
                ranges,
                spare: None,
                is_sum: false,
            };
        };
        let mut part = base.clone();
        for (axis, (own, rows)) in part.ranges.iter_mut().zip(ranges).enumerate() {
            // An axis with rows that are not right is not cut; of what was summed up only images and channels are left.
            let is_left = !base.is_sum || axis < 2;
            if is_left && base.spare.is_none_or(|spare| spare.axis != axis) {
                *own = own.start + rows.start..own.start + rows.end;
            }
        }
        part
    }

    /// Slices rows off the smallest piece that holds them, unless they are most of it.
    fn hand_on(&mut self, tensor: TensorId, rows: &Range<u64>) -> Result<(), FissionError> {
        let Some(pieces) = &self.pieces[tensor] else {
            return Ok(());
        };
        let axis = pieces.axis;
        let Some(holder) = pieces.holder(rows) else {
            return Ok(());
        };
        let length = |rows: &Range<u64>| rows.end - rows.start;
        if length(rows) * 10 >= length(&holder.rows) * TOO_LARGE_TENTHS {
            return Ok(());
        }
        let source = holder.tensor;
        let slice = self.cut(tensor, source, axis, rows)?;
        self.push(tensor, rows.clone(), slice);
        Ok(())
    }

    fn push(&mut self, tensor: TensorId, rows: Range<u64>, piece: TensorId) {
        if let Some(pieces) = &mut self.pieces[tensor] {
            pieces.list.push(Piece { rows, tensor: piece });
        }
    }

    /// Dimensions of a tensor of the old graph; empty where they are not known, which nobody asks who cuts.
    fn dims(&self, tensor: TensorId) -> Vec<u64> {
        self.transfer.graph.tensors[tensor].ty.known_shape().unwrap_or_default()
    }

    /// The box of `tensor` that a tensor of the new graph holds.
    fn ranges(&self, tensor: TensorId, held: TensorId) -> Vec<Range<u64>> {
        let held = self.boxes.get(&held).cloned();
        held.unwrap_or_else(|| self.dims(tensor).into_iter().map(|dim| 0..dim).collect())
    }

    /// The box of rows of one axis.
    pub(crate) fn full(&self, tensor: TensorId, axis: usize, rows: &Range<u64>) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = self.dims(tensor).into_iter().map(|dim| 0..dim).collect();
        ranges[axis] = rows.clone();
        ranges
    }

    pub(crate) fn part_type(&self, tensor: TensorId, ranges: &[Range<u64>]) -> ValueType {
        let whole = &self.transfer.graph.tensors[tensor].ty;
        let rows = ranges.iter().map(|range| range.end - range.start);
        // Only axes that are fixed are cut.
        let dims = rows.enumerate().map(|(axis, rows)| match whole.dims().get(axis) {
            Some(free) if free.is_free() => free.clone(),
            _ => Dim::Known(rows),
        });
        ValueType::Tensor {
            element: whole.element().unwrap_or(ElementType::Float32),
            shape: Some(dims.collect()),
        }
    }

    fn constant(&mut self, integers: &Integers) -> Result<TensorId, FissionError> {
        if let Some(&known) = self.constants.get(integers) {
            return Ok(known);
        }
        let name = self
            .names
            .tensor(format_args!("fission_integers{}", self.constants.len()));
        let ty = ValueType::tensor(ElementType::Int64, &integers.dims);
        let tensor = self.transfer.integers(name, ty, integers.elements.clone())?;
        self.constants.insert(integers.clone(), tensor);
        Ok(tensor)
    }

    /// Rows of a tensor of the old graph, by whatever holds them.
    fn rows(&mut self, tensor: TensorId, axis: usize, rows: &Range<u64>) -> Result<TensorId, FissionError> {
        if let Some(whole) = self.transfer.whole[tensor] {
            return self.cut(tensor, whole, axis, rows);
        }
        let none = Pieces::default();
        let pieces = self.pieces[tensor].as_ref().unwrap_or(&none);
        if pieces.axis != axis {
            let pieces = pieces.clone();
            return self.rows_across(tensor, &pieces, axis, rows);
        }
        if let Some(holder) = pieces.holder(rows) {
            let holder = holder.tensor;
            return self.cut(tensor, holder, axis, rows);
        }
        let mut parts = Vec::new();
        let mut at = rows.start;
        for piece in pieces.cover(rows) {
            let end = piece.rows.end.min(rows.end);
            parts.push(self.cut(tensor, piece.tensor, axis, &(at..end))?);
            at = end;
        }
        let joined = self.join(tensor, &parts, axis, None)?;
        self.push(tensor, rows.clone(), joined);
        Ok(joined)
    }

    /// Rows of another axis than that of the pieces: of each piece, then joined.
    fn rows_across(
        &mut self,
        tensor: TensorId,
        pieces: &Pieces,
        axis: usize,
        rows: &Range<u64>,
    ) -> Result<TensorId, FissionError> {
        let extent = self.dims(tensor)[pieces.axis];
        let mut parts = Vec::new();
        let mut at = 0;
        for piece in pieces.cover(&(0..extent)) {
            let own = self.cut(tensor, piece.tensor, pieces.axis, &(at..piece.rows.end))?;
            parts.push(self.cut(tensor, own, axis, rows)?);
            at = piece.rows.end;
        }
        match parts.as_slice() {
            [one] => Ok(*one),
            _ => self.join(tensor, &parts, pieces.axis, None),
        }
    }

    /// Puts what tiles found of a result together, if they found anything of it.
    fn put_together(&mut self, result: TensorId) -> Result<Option<TensorId>, FissionError> {
        let Some(summed) = self.sums.remove(&result) else {
            return Ok(None);
        };
        let graph = self.transfer.graph;
        let tensor = &graph.tensors[result];
        let Some(of) = tensor.producer.map(|of| &graph.ops[of]) else {
            return Ok(None);
        };
        let dims = tensor.ty.known_shape().unwrap_or_default();
        let part = match summed.combine {
            Combine::Moments | Combine::Exponentials | Combine::Best => summed.over.clone(),
            _ => Some(Part::whole(self.transfer.tensor_of(result), &dims)),
        };
        let names = [self.names.op(&tensor.name), tensor.name.clone()];
        let Some(spec) = summed.put_together(names, (of, tensor.ty.clone()), part) else {
            return Ok(None);
        };
        let made = self.transfer.add(self.at, spec)?.into_iter().flatten().next();
        self.transfer.whole[result] = made;
        if let Some(made) = made {
            self.transfer.name_whole(result, made);
        }
        Ok(made)
    }

    /// All of a tensor of the old graph; where it is in pieces, they are joined under its name.
    fn whole(&mut self, tensor: TensorId) -> Result<TensorId, FissionError> {
        if let Some(whole) = self.transfer.whole[tensor] {
            return Ok(whole);
        }
        if let Some(made) = self.put_together(tensor)? {
            return Ok(made);
        }
        let pieces = self.pieces[tensor].take().unwrap_or_default();
        let dims = self.dims(tensor);
        let extent = dims.get(pieces.axis).copied().unwrap_or(0);
        let mut parts = Vec::new();
        let mut at = 0;
        for piece in pieces.cover(&(0..extent)) {
            parts.push(self.cut(tensor, piece.tensor, pieces.axis, &(at..piece.rows.end))?);
            at = piece.rows.end;
        }
        let name = self.transfer.graph.tensors[tensor].name.clone();
        let joined = self.join(tensor, &parts, pieces.axis, Some(name))?;
        self.boxes.remove(&joined);
        self.transfer.name_whole(tensor, joined);
        Ok(joined)
    }

    /// Rows of one axis, as the whole counts them, of a tensor that holds a box of `tensor`.
    fn cut(
        &mut self,
        tensor: TensorId,
        source: TensorId,
        axis: usize,
        rows: &Range<u64>,
    ) -> Result<TensorId, FissionError> {
        let key = (source, axis, rows.start, rows.end);
        if let Some(&known) = self.slices.get(&key) {
            return Ok(known);
        }
        let mut ranges = self.ranges(tensor, source);
        if ranges[axis] == *rows {
            return Ok(source);
        }
        let first = ranges[axis].start;
        ranges[axis] = rows.clone();
        let slice = self.slice(tensor, source, axis, rows.start - first..rows.end - first, ranges)?;
        self.slices.insert(key, slice);
        Ok(slice)
    }

    /// Rows of one axis as `source` counts them; what comes of it is the box `ranges` of `tensor`.
    fn slice(
        &mut self,
        tensor: TensorId,
        source: TensorId,
        axis: usize,
        bounds: Range<u64>,
        ranges: Vec<Range<u64>>,
    ) -> Result<TensorId, FissionError> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut lists = [
            vec![number(bounds.start)],
            vec![number(bounds.end)],
            vec![number(axis as u64)],
        ];
        // ONNX Runtime makes one `Split` of slices along one axis that make up a tensor (`GatherSliceToSplitFusion`), whose results are all there
        // at once. It leaves slices alone that state a second axis, even all of it.
        if let Some(other) = (0..ranges.len()).find(|&other| other != axis) {
            for (list, value) in lists.iter_mut().zip([0, i64::MAX, number(other as u64)]) {
                list.push(value);
            }
        }
        let mut inputs = vec![Some(source)];
        for list in lists {
            inputs.push(Some(self.constant(&Integers::list(list))?));
        }
        let placement = match self.transfer.class(source) {
            StorageClass::Constant => Placement::Constant,
            StorageClass::Input | StorageClass::Intermediate => Placement::New,
        };
        let mut spec = OpSpec::new(String::new(), "Slice");
        spec.inputs = inputs;
        let (of, rows) = (self.transfer.tensor_of(tensor), &ranges[axis]);
        let name = self.names.tensor(format_args!("{of}_rows{}_{}", rows.start, rows.end));
        let slice = self.finish_move(spec, tensor, name, placement, ranges)?;
        self.blocks.leave(slice);
        Ok(slice)
    }

    /// Boxes of `tensor` one after the other along an axis.
    fn join(
        &mut self,
        tensor: TensorId,
        parts: &[TensorId],
        axis: usize,
        name: Option<String>,
    ) -> Result<TensorId, FissionError> {
        let boxes: Vec<Vec<Range<u64>>> = parts.iter().map(|&part| self.ranges(tensor, part)).collect();
        let (Some(first), Some(last)) = (boxes.first(), boxes.last()) else {
            let op = &self.transfer.graph.ops[self.at];
            return Err(FissionError::RunsOnce(op.name.clone()));
        };
        let mut ranges = first.clone();
        ranges[axis].end = last[axis].end;
        let (of, rows) = (self.transfer.tensor_of(tensor), &ranges[axis]);
        let joined = || {
            self.names
                .tensor(format_args!("{of}_joined{}_{}", rows.start, rows.end))
        };
        let name = name.unwrap_or_else(joined);
        let inputs = parts.iter().map(|&part| Some(part)).collect();
        let number = i64::try_from(axis).unwrap_or(i64::MAX);
        let mut spec = OpSpec::new(String::new(), "Concat");
        spec.attributes.insert("axis".to_owned(), Attribute::Int(number));
        spec.inputs = inputs;
        let joined = self.finish_move(spec, tensor, name, Placement::New, ranges)?;
        if axis != CHANNELS || parts.iter().any(|&part| self.blocks.has_left(part)) {
            self.blocks.leave(joined);
        }
        Ok(joined)
    }

    fn finish_move(
        &mut self,
        mut spec: OpSpec,
        tensor: TensorId,
        name: String,
        placement: Placement,
        ranges: Vec<Range<u64>>,
    ) -> Result<TensorId, FissionError> {
        spec.name = self.names.op(&name);
        spec.results = vec![Some(ResultSpec {
            name,
            ty: self.part_type(tensor, &ranges),
            placement,
        })];
        spec.parts = vec![Some(self.part(tensor, ranges.clone()))];
        let results = self.transfer.add(self.at, spec)?;
        let result = results.into_iter().flatten().next();
        let Some(result) = result else {
            let op = &self.transfer.graph.ops[self.at];
            return Err(FissionError::RunsOnce(op.name.clone()));
        };
        self.boxes.insert(result, ranges);
        Ok(result)
    }

    /// Joins the graph outputs that are in pieces, and ends.
    pub(crate) fn finish(mut self) -> Result<(remat_ir::Graph, TiVec<OpId, OpId>), FissionError> {
        self.join_outputs()?;
        Ok(self.transfer.finish())
    }

    /// Joins the graph outputs that are in pieces.
    pub(crate) fn join_outputs(&mut self) -> Result<(), FissionError> {
        self.slices.clear();
        let graph = self.transfer.graph;
        for &output in &graph.outputs {
            if self.transfer.named(output).is_none() {
                self.whole(output)?;
            }
        }
        Ok(())
    }
}

impl Pieces {
    /// The smallest piece that holds the rows, of equals the latest.
    fn holder(&self, rows: &Range<u64>) -> Option<&Piece> {
        let holds = |piece: &&Piece| piece.rows.start <= rows.start && piece.rows.end >= rows.end;
        let pieces = self.list.iter().rev().filter(holds);
        pieces.min_by_key(|piece| piece.rows.end - piece.rows.start)
    }

    /// Pieces that hold the rows together: of those that begin in time the one that reaches furthest, of equals the smallest.
    fn cover(&self, rows: &Range<u64>) -> Vec<Piece> {
        let mut chosen = Vec::new();
        let mut at = rows.start;
        while at < rows.end {
            let fits = |piece: &&Piece| piece.rows.contains(&at);
            let reach = |piece: &&Piece| {
                let length = piece.rows.end - piece.rows.start;
                (piece.rows.end.min(rows.end), std::cmp::Reverse(length))
            };
            let Some(best) = self.list.iter().filter(fits).max_by_key(reach) else {
                break;
            };
            chosen.push(best.clone());
            at = best.rows.end;
        }
        chosen
    }
}
