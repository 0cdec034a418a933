//! What is found over parts, and put together.

use remat_ir::ElementType;

use super::nodes::{Nodes, RANK};
use super::state::{counts, unsupported};
use crate::OnnxError;

impl Nodes<'_, '_> {
    pub(super) fn moments(&mut self) -> Result<(), OnnxError> {
        let image = self.operand(0)?;
        let rank = self.dims(image)?.len();
        if rank < 3 {
            return Err(unsupported(self.op, "its operand has no pixels"));
        }
        let element = self.statistics(self.result)?;
        let pixels = self.cast(image, element)?;
        let mean = self.reduce_rows(["ReduceMean"; 2], "mean", &pixels, rank);
        let apart = self.add("Sub", "apart", &[&pixels, &mean]);
        let squares = self.reduce_rows(["ReduceSumSquare", "ReduceSum"], "squares", &apart, rank);
        let halves = [(mean, "means"), (squares, "sums")];
        let halves = halves.map(|(half, suffix)| match rank {
            RANK => half,
            _ => self.reshape(suffix, &half, &[0, 0, 1, 1]),
        });
        self.keep(halves);
        Ok(())
    }

    /// Each row of the images of `operand`, then the rows: kernels add up one number after the other.
    fn reduce_rows(&mut self, [of_rows, of_all]: [&str; 2], suffix: &str, operand: &str, rank: usize) -> String {
        let rows = self.reduce(of_rows, &format!("{suffix}_of_rows"), operand, rank - 1..rank);
        match rank {
            3 => rows,
            _ => self.reduce(of_all, suffix, &rows, 2..rank - 1),
        }
    }

    /// As Chan, Golub and LeVeque do (Algorithms for Computing the Sample Variance, 1983, equation 2.1), for any number of parts.
    pub(super) fn combine_moments(&mut self) -> Result<(), OnnxError> {
        let counts = counts(self.op)?;
        let element = self.statistics(self.result)?;
        let parts = (0..counts.len()).map(|place| {
            let part = self.operand(place)?;
            self.halves(part, RANK)
        });
        let parts = parts.collect::<Result<Vec<[String; 2]>, OnnxError>>()?;
        let [first, rest @ ..] = &parts[..] else { return Ok(()) };
        if rest.is_empty() {
            self.keep(first.clone());
            return Ok(());
        }
        let [means, sums] = [0, 1].map(|half| parts.iter().map(|part| part[half].as_str()).collect::<Vec<&str>>());
        let means = self.concat("means", &means, 2);
        let sums = self.concat("sums", &sums, 2);
        let rows = [i64::try_from(counts.len()).unwrap_or(i64::MAX), 1];
        let all: i64 = counts.iter().sum();
        let shares: Vec<f64> = counts.iter().map(|&count| count as f64 / all as f64).collect();
        let sizes: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let shares = self.numbers("shares", element, &rows, &shares);
        let sizes = self.numbers("counts", element, &rows, &sizes);
        let apart = self.add("Sub", "apart", &[&means, &first[0]]);
        let weighted = self.add("Mul", "weighted", &[&apart, &shares]);
        let shift = self.reduce("ReduceSum", "shift", &weighted, 2..3);
        let mean = self.add("Add", "mean", &[&first[0], &shift]);
        let between = self.add("Sub", "between", &[&apart, &shift]);
        let between = self.add("Mul", "squared", &[&between, &between]);
        let between = self.add("Mul", "sized", &[&between, &sizes]);
        let squares = self.add("Add", "added", &[&sums, &between]);
        let squares = self.reduce("ReduceSum", "squares", &squares, 2..3);
        self.keep([mean, squares]);
        Ok(())
    }

    pub(super) fn combine_means(&mut self) -> Result<(), OnnxError> {
        let counts = counts(self.op)?;
        let wanted = self.element(self.result)?;
        let element = match wanted {
            ElementType::Float16 | ElementType::Bfloat16 => ElementType::Float32,
            ElementType::Float32 | ElementType::Float64 => wanted,
            _ => return Err(unsupported(self.op, "means of integers are not put together")),
        };
        let all: i64 = counts.iter().sum();
        let is_even = counts.iter().all(|&count| count == counts[0]);
        let mut means = Vec::with_capacity(counts.len());
        for (place, &count) in counts.iter().enumerate() {
            let part = self.operand(place)?;
            let mut mean = self.cast(part, element)?;
            if !is_even {
                let share = self.numbers("share", element, &[], &[count as f64 / all as f64]);
                mean = self.add("Mul", "weighted", &[&mean, &share]);
            }
            means.push(mean);
        }
        let means: Vec<&str> = means.iter().map(String::as_str).collect();
        let op_type = if is_even { "Mean" } else { "Sum" };
        self.last_of(element, op_type, "mean", &means)
    }
}
