//! Sums over tiles, written as ops.

use remat_ir::{Part, Placement, ResultSpec};

use crate::FissionError;
use crate::course::Run;
use crate::pieces::Writer;
use crate::sums::{Sum, Summed, count};

impl Writer<'_> {
    /// The sum over the rows of a tile.
    pub(crate) fn sum_up(&mut self, run: &Run, sum: Sum, tile: usize) -> Result<(), FissionError> {
        let graph = self.transfer.graph;
        let op = &graph.ops[run.op];
        let (Some(result), Some(Some(data))) = (op.results().next(), op.inputs.first()) else {
            return Err(FissionError::RunsOnce(op.name.clone()));
        };
        let inputs = self.operands(run)?;
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
}
