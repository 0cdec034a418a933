//! A front as an SVG chart: memory to the right, time upwards.

use anyhow::anyhow;
use plotters::prelude::*;
use remat::{Finding, Front, Model};

use crate::units;

/// Width and height in pixels.
const SIZE: (u32, u32) = (800, 500);

/// Draws peaks as a share of the baseline against overhead, both in per cent: plans as points of a falling line, impossible budgets and
/// those without a plan as crosses on the axis, the floor as a vertical line.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(crate) fn svg(model: &Model, front: &Front) -> anyhow::Result<String> {
    let mut text = String::new();
    draw(&mut text, model, front).map_err(|error| anyhow!("the chart cannot be drawn: {error}"))?;
    Ok(text)
}

type DrawResult = Result<(), Box<dyn std::error::Error>>;

fn draw(text: &mut String, model: &Model, front: &Front) -> DrawResult {
    let baseline = model.baseline().peak;
    let share = |bytes: u64| units::percent(bytes, baseline);
    let mut plans: Vec<(f64, f64)> = front
        .points
        .iter()
        .filter_map(|point| point.solution())
        .map(|solution| (share(solution.replay.peak), solution.overhead.percent()))
        .collect();
    // Without rematerialization.
    plans.push((100.0, 0.0));
    plans.sort_by(|a, b| a.0.total_cmp(&b.0));
    plans.dedup();
    let crosses = |wanted: fn(&Finding) -> bool| {
        let points = front.points.iter().filter(move |point| wanted(&point.finding));
        points
            .filter_map(|point| point.budget)
            .map(|bytes| (share(bytes), 0.0))
            .collect::<Vec<_>>()
    };
    let impossible = crosses(|finding| matches!(finding, Finding::Impossible { .. }));
    let not_found = crosses(|finding| matches!(finding, Finding::NotFound { .. }));
    let floor = share(front.floor);

    let lowest = impossible
        .iter()
        .chain(&not_found)
        .map(|point| point.0)
        .fold(floor, f64::min);
    let highest = plans.iter().map(|plan| plan.1).fold(0.0, f64::max);
    let left = ((lowest - 5.0) / 10.0).floor().max(0.0) * 10.0;
    let top = if highest > 0.0 { highest * 1.1 } else { 1.0 };

    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let title = format!("{}: memory against time", model.problem().name);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(left..102.0, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("peak memory, % of the baseline")
        .y_desc("added time, %")
        .label_style(("sans-serif", 14))
        .draw()?;
    chart
        .draw_series(LineSeries::new([(floor, 0.0), (floor, top)], RED.stroke_width(1)))?
        .label(format!("floor, {floor:.1} %"))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], RED));
    chart
        .draw_series(LineSeries::new(plans.iter().copied(), BLUE.stroke_width(2)))?
        .label(format!("plans of `{}`", front.solver))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE.stroke_width(2)));
    chart.draw_series(plans.iter().map(|&plan| Circle::new(plan, 3, BLUE.filled())))?;
    if !impossible.is_empty() {
        chart
            .draw_series(
                impossible
                    .iter()
                    .map(|&point| Cross::new(point, 5, RED.stroke_width(2))),
            )?
            .label("impossible")
            .legend(|(x, y)| Cross::new((x + 8, y), 5, RED.stroke_width(2)));
    }
    if !not_found.is_empty() {
        chart
            .draw_series(
                not_found
                    .iter()
                    .map(|&point| Cross::new(point, 5, BLACK.stroke_width(2))),
            )?
            .label("not found within the limits")
            .legend(|(x, y)| Cross::new((x + 8, y), 5, BLACK.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
