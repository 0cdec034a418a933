//! Sums over tiles, written as ops.

use remat_ir::{Attribute, Part, Placement, ResultSpec, TensorId};
use remat_operators::Combine;

use crate::FissionError;
use crate::course::Run;
use crate::pieces::Writer;
use crate::sums::{FROM, Sum, Summed, count};

/// Bytes from which on sums over tiles are put together as they come, so that two of them are there and not all.
const LARGE: u64 = 1 << 14;

impl Writer<'_> {
    /// The sum over the rows of a tile.
    pub(crate) fn sum_up(&mut self, run: &Run, sum: Sum, tile: usize) -> Result<(), FissionError> {
        self.at = run.op;
        let graph = self.transfer.graph;
        let op = &graph.ops[run.op];
        let (Some(result), Some(Some(data))) = (op.results().next(), op.inputs.first()) else {
            return Err(FissionError::RunsOnce(op.name.clone()));
        };
        let inputs = self.operands(run)?;
        self.combine_so_far(result, tile)?;
        let over = self.full(*data, sum.axis, &run.rows);
        let count = count(graph, op, sum, &over);
        let part = Part {
            is_sum: true,
            ..self.part(*data, over)
        };
        let name = self.names.op(format!("{}_tile{tile}", op.name));
        let mut spec = self.transfer.spec(run.op, name, inputs);
        spec.results = vec![Some(ResultSpec {
            name: self.names.tensor(format!("{}_tile{tile}", graph.tensors[result].name)),
            ty: graph.tensors[result].ty.clone(),
            placement: Placement::New,
        })];
        spec.parts = vec![Some(part.clone())];
        if sum.combine == Combine::Best {
            let from = Attribute::Int(i64::try_from(run.rows.start).unwrap_or(i64::MAX));
            spec.attributes.insert(FROM.to_owned(), from);
        }
        let made = self.transfer.add(run.op, spec)?.into_iter().flatten();
        let summed = self.sums.entry(result).or_insert_with(|| Summed {
            combine: sum.combine,
            parts: Vec::new(),
            counts: Vec::new(),
            over: None,
        });
        summed.parts.extend(made);
        summed.counts.push(count);
        let own = part.ranges.get(sum.axis).map_or(0, |rows| rows.end);
        match &mut summed.over {
            Some(over) => over.ranges[sum.axis].end = own,
            None => summed.over = Some(part),
        }
        self.hand_rows_on(run)
    }

    /// Puts the two sums of a large result together that earlier tiles found.
    fn combine_so_far(&mut self, result: TensorId, tile: usize) -> Result<(), FissionError> {
        let graph = self.transfer.graph;
        let tensor = &graph.tensors[result];
        let bytes = graph.storages[tensor.storage].bytes.unwrap_or(0);
        let is_due = |summed: &&mut Summed| summed.parts.len() == 2 && summed.combine != Combine::Moments;
        let Some(found) = self.sums.get_mut(&result).filter(is_due).filter(|_| bytes >= LARGE) else {
            return Ok(());
        };
        let summed = found.clone();
        let count = summed
            .counts
            .iter()
            .fold(0, |all: i64, &count| all.saturating_add(count));
        let name = self.names.tensor(format!("{}_before{tile}", tensor.name));
        let names = [self.names.op(name.clone()), name];
        let part = summed.over.clone();
        let of = (&graph.ops[self.at], tensor.ty.clone());
        let Some(spec) = summed.put_together(names, of, part) else {
            return Ok(());
        };
        let made = self.transfer.add(self.at, spec)?;
        if let Some(found) = self.sums.get_mut(&result) {
            found.parts = made.into_iter().flatten().collect();
            found.counts = vec![count];
        }
        Ok(())
    }
}
