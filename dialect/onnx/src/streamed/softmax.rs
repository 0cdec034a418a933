//! Exponentials that are summed up, what they weigh, and what is divided by their sum.

use remat_ir::Attribute;

use super::nodes::Nodes;
use super::state::unsupported;
use crate::OnnxError;

impl Nodes<'_, '_> {
    /// Along the axis that the op states; of what they weigh, too.
    pub(super) fn exponentials(&mut self, weighs: bool) -> Result<(), OnnxError> {
        let op = self.op;
        let element = self.statistics(self.result)?;
        let data = self.operand(0)?;
        let rank = self.dims(data)?.len();
        let axis = op.attributes.get("axis").and_then(Attribute::as_int);
        let axis = axis
            .and_then(|axis| usize::try_from(axis).ok())
            .filter(|&axis| axis < rank);
        let axis = axis.ok_or_else(|| unsupported(op, "its operand has no such axis"))?;
        let rows = self.cast(data, element)?;
        let most = self.reduce("ReduceMax", "most", &rows, axis..axis + 1);
        // Where all is minus infinity, as behind a mask, nothing is added to what other parts have.
        let least = self.numbers("least", element, &[], &[f64::from(f32::MIN)]);
        let most = self.add("Max", "finite", &[&most, &least]);
        let apart = self.add("Sub", "apart", &[&rows, &most]);
        let exponentials = self.add("Exp", "powers", &[&apart]);
        let sum = self.reduce("ReduceSum", "sum", &exponentials, axis..axis + 1);
        let mut kept = vec![most, sum];
        if weighs {
            let weighed = self.operand(1)?;
            let weighed = self.cast(weighed, element)?;
            kept.push(self.add("MatMul", "weighed", &[&exponentials, &weighed]));
        }
        self.keep_values(kept)
    }

    /// Sums are of exponentials of what differs from one maximum each: they are made those of the largest one.
    pub(super) fn combine_exponentials(&mut self) -> Result<(), OnnxError> {
        let parts = (0..self.op.inputs.len()).map(|place| self.kept_values(place));
        let parts = parts.collect::<Result<Vec<Vec<String>>, OnnxError>>()?;
        let [first, _, ..] = &parts[..] else {
            let kept = self.kept_values(0)?;
            return self.keep_values(kept);
        };
        let values = first.len();
        let mosts: Vec<&str> = parts.iter().map(|part| part[0].as_str()).collect();
        let most = self.add("Max", "most", &mosts);
        let mut scaled: Vec<Vec<String>> = vec![Vec::new(); values];
        for part in &parts {
            let apart = self.add("Sub", "apart", &[&part[0], &most]);
            let scale = self.add("Exp", "scale", &[&apart]);
            for (value, scaled) in part.iter().zip(&mut scaled).skip(1) {
                scaled.push(self.add("Mul", "scaled", &[value, &scale]));
            }
        }
        let mut kept = vec![most];
        for scaled in &scaled[1..] {
            let scaled: Vec<&str> = scaled.iter().map(String::as_str).collect();
            kept.push(self.add("Sum", "sum", &scaled));
        }
        self.keep_values(kept)
    }

    pub(super) fn soften(&mut self) -> Result<(), OnnxError> {
        let kept = self.kept_values(1)?;
        let data = self.operand(0)?;
        let element = self.statistics(self.operand(1)?)?;
        let rows = self.cast(data, element)?;
        let apart = self.add("Sub", "apart", &[&rows, &kept[0]]);
        if self.op.attributes.get("log") == Some(&Attribute::Int(1)) {
            let log = self.add("Log", "log", &[&kept[1]]);
            return self.last_of(element, "Sub", "less", &[&apart, &log]);
        }
        let exponentials = self.add("Exp", "powers", &[&apart]);
        self.last_of(element, "Div", "shares", &[&exponentials, &kept[1]])
    }

    pub(super) fn weighed(&mut self) -> Result<(), OnnxError> {
        let kept = self.kept_values(0)?;
        let element = self.statistics(self.operand(0)?)?;
        let [_, sum, weighed] = &kept[..] else {
            return Err(unsupported(self.op, "its operand weighs nothing"));
        };
        self.last_of(element, "Div", "divided", &[weighed, sum])
    }
}
