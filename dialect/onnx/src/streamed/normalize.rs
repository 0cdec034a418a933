//! From moments to what is multiplied by and added, and that applied.

use remat_ir::{Attribute, ElementType};

use super::nodes::{Nodes, RANK};
use super::state::unsupported;
use crate::OnnxError;

impl Nodes<'_, '_> {
    pub(super) fn normalizer(&mut self) -> Result<(), OnnxError> {
        let op = self.op;
        let element = self.statistics(self.result)?;
        let moments = self.operand(0)?;
        let channels = *self.dims(self.result)?.get(1).unwrap_or(&0);
        let int = |name: &str| {
            op.attributes
                .get(name)
                .and_then(Attribute::as_int)
                .filter(|&value| value > 0)
        };
        let (Some(count), Some(groups), Some(Attribute::Float(epsilon))) =
            (int("count"), int("groups"), op.attributes.get("epsilon"))
        else {
            return Err(unsupported(op, "it has no count, groups or epsilon"));
        };
        let each = channels
            .checked_div(groups)
            .filter(|&each| each > 0 && each * groups == channels);
        let each =
            each.ok_or_else(|| unsupported(op, &format!("{groups} groups do not divide {channels} channels")))?;
        let numbers = Vectors { groups, each, element };
        let [mean, squares] = self.halves(moments, RANK)?;
        let count = self.numbers("count", element, &[], &[count as f64]);
        let epsilon = self.numbers("epsilon", element, &[], &[f64::from(*epsilon)]);
        let (mean, variance) = if each == 1 {
            let variance = self.add("Div", "variance", &[&squares, &count]);
            (mean, variance)
        } else {
            // Within a group, as if its channels were parts of equal size.
            let means = self.reshape("means", &mean, &[0, groups, each, 1]);
            let squares = self.reshape("sums", &squares, &[0, groups, each, 1]);
            let mean = self.reduce("ReduceMean", "mean", &means, 2..3);
            let between = self.add("Sub", "between", &[&means, &mean]);
            let between = self.add("Mul", "squared", &[&between, &between]);
            let within = self.add("Div", "variances", &[&squares, &count]);
            let both = self.add("Add", "added", &[&within, &between]);
            (mean, self.reduce("ReduceMean", "variance", &both, 2..3))
        };
        let variance = self.add("Add", "raised", &[&variance, &epsilon]);
        let deviation = self.add("Sqrt", "deviation", &[&variance]);
        let [factor, summand] = match self.has_numbers() {
            true => {
                let (scale, base) = self.scale_and_base(&numbers)?;
                let factor = self.add("Div", "factor", &[&scale, &deviation]);
                let taken = self.add("Mul", "taken", &[&mean, &factor]);
                [factor, self.add("Sub", "summand", &[&base, &taken])]
            }
            false => {
                let shape = self.integers("channels", &[groups, each, 1]);
                let inverse = self.add("Reciprocal", "factor", &[&deviation]);
                [inverse, mean].map(|half| match each {
                    1 => half,
                    _ => self.add("Expand", "of_channels", &[&half, &shape]),
                })
            }
        };
        let halves = [(factor, "factors"), (summand, "summands")];
        let halves = halves.map(|(half, suffix)| match each {
            1 => half,
            _ => self.reshape(suffix, &half, &[0, channels, 1, 1]),
        });
        self.keep(halves);
        Ok(())
    }

    /// By what the normalized channels are multiplied and what is added then, of which a runtime makes constants when it loads the model.
    fn scale_and_base(&mut self, numbers: &Vectors) -> Result<(String, String), OnnxError> {
        let (mut scale, own_scale) = self.vector(1, "scale", numbers)?;
        let (mut base, _) = self.vector(2, "bias", numbers)?;
        let is_left_out = |place: usize| self.op.inputs.get(place).copied().flatten().is_none();
        let (no_factor, no_summand) = (is_left_out(3), is_left_out(4));
        if no_factor && !own_scale {
            let shape = self.integers("channels", &[numbers.groups, numbers.each, 1]);
            scale = self.add("Expand", "scales", &[&scale, &shape]);
        }
        if !no_factor {
            let (factor, _) = self.vector(3, "gamma", numbers)?;
            scale = self.add("Mul", "scales", &[&scale, &factor]);
            base = self.add("Mul", "biases", &[&base, &factor]);
        }
        if !no_summand {
            let (summand, _) = self.vector(4, "beta", numbers)?;
            base = self.add("Add", "base", &[&base, &summand]);
        }
        Ok((scale, base))
    }

    /// An operand with an element for each channel or each group, by group and channel of it; whether it has one for each channel.
    fn vector(&mut self, place: usize, suffix: &str, numbers: &Vectors) -> Result<(String, bool), OnnxError> {
        let operand = self.operand(place)?;
        let dims = self.dims(operand)?;
        let elements = dims.iter().try_fold(1i64, |all, &dim| all.checked_mul(dim));
        let (groups, each) = (numbers.groups, numbers.each);
        let is_by_channel = elements == Some(groups * each);
        if !is_by_channel && elements != Some(groups) {
            let what = format!("operand {place} has neither an element for each channel nor one for each group");
            return Err(unsupported(self.op, &what));
        }
        let shape = [groups, if is_by_channel { each } else { 1 }, 1];
        let cast = self.cast(operand, numbers.element)?;
        Ok((self.reshape(suffix, &cast, &shape), is_by_channel))
    }

    pub(super) fn normalize(&mut self) -> Result<(), OnnxError> {
        let (image, normalizer) = (self.operand(0)?, self.operand(1)?);
        let rank = self.dims(image)?.len();
        let element = self.statistics(normalizer)?;
        let [factor, summand] = self.halves(normalizer, rank)?;
        let pixels = self.cast(image, element)?;
        if self.op.inputs.len() == 2 {
            let scaled = self.add("Mul", "scaled", &[&pixels, &factor]);
            return self.last_of(element, "Add", "moved", &[&scaled, &summand]);
        }
        let apart = self.add("Sub", "apart", &[&pixels, &summand]);
        let mut at = self.add("Mul", "normalized", &[&apart, &factor]);
        let scale = self.operand(2)?;
        let mut other = self.cast(scale, element)?;
        let mut op_type = "Mul";
        if self.op.inputs.len() > 3 {
            let bias = self.operand(3)?;
            at = self.add(op_type, "scaled", &[&at, &other]);
            (op_type, other) = ("Add", self.cast(bias, element)?);
        }
        self.last_of(element, op_type, "moved", &[&at, &other])
    }

    /// Whether channels or groups have numbers of their own; else the mean is subtracted first, and a factor and a summand of each element follow.
    fn has_numbers(&self) -> bool {
        self.op.inputs.len() > 1
    }
}

/// Numbers by group and channel of it.
struct Vectors {
    groups: i64,
    each: i64,
    element: ElementType,
}
