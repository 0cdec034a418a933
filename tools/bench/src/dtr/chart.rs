//! The curves as a drawing, one panel for each log.

use plotters::prelude::*;
use remat::dtr::SimulateStatus;
use remat_chart::{Area, DrawError, DrawResult};

use super::replay::{Curve, Panel};
use crate::panels;

/// Width and height of one panel in pixels.
const PANEL: (u32, u32) = (440, 320);
/// Overheads that are drawn.
const RANGE: std::ops::Range<f64> = 0.98..2.0;

/// Overhead over the ratio of memory. Black is what constants take, grey what the largest op takes on top; a curve that ends in a cross ran
/// out of memory there, in a triangle it thrashed.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(super) fn svg(panels: &[Panel]) -> Result<String, DrawError> {
    panels::svg(panels, PANEL, draw_panel)
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> DrawResult {
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.name, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(35)
        .y_label_area_size(45)
        .build_cartesian_2d(0.0..1.0, RANGE)?;
    let band = |from: f64, to: f64, color: RGBAColor| {
        Rectangle::new([(from.min(1.0), RANGE.start), (to.min(1.0), RANGE.end)], color.filled())
    };
    chart.draw_series([
        band(0.0, panel.constants, BLACK.mix(0.8)),
        band(panel.constants, panel.floor, BLACK.mix(0.15)),
    ])?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("memory, share of the peak")
        .y_desc("overhead")
        .draw()?;
    for (index, curve) in panel.curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points = curve.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(curve.heuristic.to_string())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
        chart.draw_series(points.map(|point| Circle::new(point, 2, color.filled())))?;
        match end(curve) {
            Some((place, SimulateStatus::Oom)) => {
                chart.draw_series([Cross::new(place, 4, color.stroke_width(2))])?;
            }
            Some((place, _)) => {
                chart.draw_series([TriangleMarker::new(place, 5, color.filled())])?;
            }
            None => {}
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// Where and how a curve ends: at the ratio of the failure, as high as its last point.
fn end(curve: &Curve) -> Option<((f64, f64), SimulateStatus)> {
    let (ratio, status) = curve.failure?;
    let height = curve.points.last().map_or(1.0, |&(_, overhead)| overhead);
    Some(((ratio, height), status))
}
