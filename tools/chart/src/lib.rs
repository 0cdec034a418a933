//! Charts that several tools draw.

mod timeline;

use plotters::coord::Shift;
use plotters::prelude::*;
use thiserror::Error;

pub use timeline::{Bar, BarKind, Timeline, timeline};

/// Width and height in pixels, the list of names included.
const SIZE: (u32, u32) = (900, 500);
/// Width of the list of names.
const NAMES: u32 = 200;
/// Height of a line of the list of names.
const LINE: i32 = 20;
/// What is more than this many times as high as the highest point of the best curve is cut off.
const HIGHEST: f64 = 3.0;
/// As is nothing below this many per cent.
const LEAST_TOP: f64 = 5.0;

/// The drawing library failed, which it does not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the chart cannot be drawn: {0}")]
pub struct DrawError(pub(crate) String);

/// One line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What stands beside it.
    pub name: String,
    /// Budget as a share of the baseline's peak, and added time as a share of the baseline's, both in per cent.
    pub points: Vec<(f64, f64)>,
}

/// Draws added time over budgets as SVG, one line for each curve, the first one bold. `floor` is the budget in per cent below which
/// nothing can exist.
///
/// Heuristics may add many times what the best plans add: where a curve leaves the chart its points lie on the upper edge, as
/// triangles. A curve without points is named all the same.
///
/// # Errors
/// [`DrawError`].
pub fn memory_against_time(title: &str, floor: f64, curves: &[Curve]) -> Result<String, DrawError> {
    let mut text = String::new();
    draw(&mut text, title, floor, curves).map_err(|error| DrawError(error.to_string()))?;
    Ok(text)
}

pub(crate) type DrawResult = Result<(), Box<dyn std::error::Error>>;

fn draw(text: &mut String, title: &str, floor: f64, curves: &[Curve]) -> DrawResult {
    let lines = u32::try_from(curves.len() + 2)? * LINE.unsigned_abs();
    let area = SVGBackend::with_string(text, (SIZE.0, SIZE.1.max(lines + 60))).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, names) = area.split_horizontally(SIZE.0 - NAMES);
    let budgets = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let left = ((budgets().fold(floor, f64::min) - 3.0) / 10.0).floor().max(0.0) * 10.0;
    let right = budgets().fold(100.0, f64::max) + 2.0;
    let top = top(curves);
    let mut chart = ChartBuilder::on(&plot)
        .caption(title, ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(left..right, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("budget, % of the baseline's peak")
        .y_desc("added time, %")
        .label_style(("sans-serif", 14))
        .draw()?;
    chart.draw_series(LineSeries::new([(floor, 0.0), (floor, top)], BLACK.stroke_width(1)))?;
    // The first one last, so that it lies above the others.
    for (index, curve) in curves.iter().enumerate().rev() {
        let color = color(index);
        let mut points: Vec<_> = curve.points.iter().map(|&(x, y)| (x, y.min(top))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            color.stroke_width(width(index)),
        ))?;
        let (inside, cut): (Vec<_>, Vec<_>) = points.into_iter().partition(|&(_, y)| y < top);
        chart.draw_series(inside.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
        chart.draw_series(
            cut.into_iter()
                .map(|point| TriangleMarker::new(point, 5, color.filled())),
        )?;
    }
    name(&names, 0, &format!("floor, {floor:.1} %"), BLACK.stroke_width(1))?;
    for (index, curve) in curves.iter().enumerate() {
        let color = color(index);
        let text = if curve.points.is_empty() {
            format!("{} (nothing)", curve.name)
        } else {
            curve.name.clone()
        };
        name(&names, index + 1, &text, color.stroke_width(width(index)))?;
    }
    area.present()?;
    Ok(())
}

/// Hues as far from each other as can be, however many there are.
fn color(index: usize) -> HSLColor {
    let hue = (0.6 + index as f64 * 0.618_034).fract();
    HSLColor(hue, 0.8, if index.is_multiple_of(2) { 0.35 } else { 0.5 })
}

fn width(index: usize) -> u32 {
    if index == 0 { 3 } else { 1 }
}

/// The upper end of the chart.
fn top(curves: &[Curve]) -> f64 {
    let highest = |curve: &Curve| curve.points.iter().map(|point| point.1).fold(0.0, f64::max);
    let most = curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
    let furthest = curves.iter().filter(|curve| curve.points.len() == most);
    let best = furthest.map(highest).fold(f64::MAX, f64::min);
    let all = curves.iter().map(highest).fold(0.0, f64::max);
    (best * HIGHEST).max(LEAST_TOP).min(all.max(1.0) * 1.05)
}

fn name(area: &DrawingArea<SVGBackend<'_>, Shift>, line: usize, text: &str, style: ShapeStyle) -> DrawResult {
    let y = 50 + LINE * i32::try_from(line)?;
    area.draw(&PathElement::new([(5, y), (25, y)], style))?;
    area.draw(&Text::new(text.to_owned(), (32, y - 7), ("sans-serif", 14)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn every_curve_is_named_and_has_a_mark_for_each_point() {
        let curves = [
            curve("auto", &[(90.0, 1.0), (80.0, 2.0)]),
            curve("poor", &[(90.0, 500.0)]),
            curve("none", &[]),
        ];
        let svg = memory_against_time("net", 42.0, &curves).unwrap();
        for words in [
            "net",
            "floor, 42.0 %",
            "auto",
            "poor",
            "none (nothing)",
            "added time, %",
        ] {
            assert!(svg.contains(words), "`{words}` is not in the chart");
        }
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches("<polygon").count(), 1, "cut off at the upper edge");
    }

    #[test]
    fn poor_curves_do_not_flatten_the_good_ones() {
        let good = curve("good", &[(90.0, 4.0), (80.0, 8.0)]);
        let poor = curve("poor", &[(90.0, 900.0), (80.0, 900.0)]);
        assert!((top(&[good.clone(), poor]) - 24.0).abs() < 1e-9);
        assert!((top(&[good]) - 8.4).abs() < 1e-9);
        assert!(top(&[]) > 0.0);
    }
}
