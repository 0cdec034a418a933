//! Memory over the steps of several runs.

use plotters::prelude::*;

use crate::legend::{self, Area, LABELS, MARGIN, Sample, tick};
use crate::{COLORS, DrawError, DrawResult, svg};

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 420);
/// Height of the names above the chart.
const NAMES: u32 = 30;

/// Bytes that are taken during each step of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepCurve {
    /// What the run is called.
    pub name: String,
    /// Bytes, one figure for each step.
    pub bytes: Vec<u64>,
}

/// Draws bytes over steps as SVG, one line for each run, in the unit that fits the highest, and the budget.
///
/// # Errors
/// [`DrawError`].
pub fn memory_over_steps(curves: &[StepCurve], budget: Option<u64>) -> Result<String, DrawError> {
    svg(SIZE, |area| draw(area, curves, budget))
}

fn draw(area: &Area<'_>, curves: &[StepCurve], budget: Option<u64>) -> DrawResult {
    let (head, body) = area.split_vertically(NAMES);
    let highest = curves.iter().flat_map(|curve| &curve.bytes).copied().max().unwrap_or(0);
    let highest = highest.max(budget.unwrap_or(0));
    let (unit, scale) = legend::unit(highest);
    let scaled = |bytes: u64| bytes as f64 / scale as f64;
    let lines = || curves.iter().zip(COLORS.iter().rev().cycle().skip(COLORS.len() - 2));
    let mut x = i32::try_from(LABELS + MARGIN)?;
    for (curve, color) in lines() {
        let peak = curve.bytes.iter().copied().max().unwrap_or(0);
        let text = format!("{}, peak {} {unit}", curve.name, tick(&scaled(peak)));
        legend::entry(&head, (x, 16), &text, Sample::Line(color.stroke_width(2)))?;
        x += legend::width(&text);
    }
    if let Some(budget) = budget {
        let text = format!("budget, {} {unit}", tick(&scaled(budget)));
        legend::entry(&head, (x, 16), &text, Sample::Line(RED.stroke_width(1)))?;
    }
    let steps = curves.iter().map(|curve| curve.bytes.len()).max().unwrap_or(0).max(1);
    let top = if highest == 0 { 1.0 } else { scaled(highest) * 1.05 };
    let names = ("step", &*format!("memory, {unit}"));
    let mut chart = legend::axes(&body, (steps as f64, top), names)?;
    for (curve, color) in lines() {
        let corners = curve.bytes.iter().enumerate().flat_map(|(step, &bytes)| {
            let value = scaled(bytes);
            [(step as f64, value), ((step + 1) as f64, value)]
        });
        chart.draw_series(LineSeries::new(corners, color.stroke_width(2)))?;
    }
    if let Some(budget) = budget {
        let ends = [0.0, steps as f64].map(|step| (step, scaled(budget)));
        chart.draw_series(LineSeries::new(ends, RED.stroke_width(1)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_named_with_its_peak_and_the_budget_is_drawn() {
        let curves = [
            ("before", vec![0, 40 << 20, 30 << 20]),
            ("after", vec![20 << 20, 15 << 20]),
        ];
        let curves = curves.map(|(name, bytes)| StepCurve {
            name: name.to_owned(),
            bytes,
        });
        let drawn = memory_over_steps(&curves, Some(24 << 20)).unwrap();
        for words in [
            "before, peak 40 MiB",
            "after, peak 20 MiB",
            "budget, 24 MiB",
            "memory, MiB",
        ] {
            assert!(drawn.contains(words), "`{words}` is not in the chart");
        }
        assert!(drawn.matches("<polyline").count() >= 3, "two runs and the budget");
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        assert!(memory_over_steps(&[], None).is_ok());
    }
}
