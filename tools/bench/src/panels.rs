//! Drawings of several panels, two in a row.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Where a panel is drawn.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) type DrawResult = Result<(), Box<dyn std::error::Error>>;

/// A drawing of panels, each of this width and height in pixels, as SVG.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(crate) fn svg<P>(
    panels: &[P],
    size: (u32, u32),
    draw_panel: impl Fn(&Area<'_>, &P) -> DrawResult,
) -> anyhow::Result<String> {
    let mut text = String::new();
    draw(&mut text, panels, size, draw_panel).map_err(|error| anyhow!("the chart cannot be drawn: {error}"))?;
    Ok(text)
}

fn draw<P>(
    text: &mut String,
    panels: &[P],
    (width, height): (u32, u32),
    draw_panel: impl Fn(&Area<'_>, &P) -> DrawResult,
) -> DrawResult {
    let rows = panels.len().div_ceil(2).max(1);
    let size = (2 * width, height * u32::try_from(rows)?);
    let area = SVGBackend::with_string(text, size).into_drawing_area();
    area.fill(&WHITE)?;
    for (place, panel) in area.split_evenly((rows, 2)).iter().zip(panels) {
        draw_panel(place, panel)?;
    }
    area.present()?;
    Ok(())
}
