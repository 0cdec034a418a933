//! Drawings of several panels, two in a row.

use remat_chart::{Area, DrawError, DrawResult};

/// A drawing of panels, each of this width and height in pixels, as SVG.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(crate) fn svg<P>(
    panels: &[P],
    (width, height): (u32, u32),
    draw_panel: impl Fn(&Area<'_>, &P) -> DrawResult,
) -> Result<String, DrawError> {
    let rows = panels.len().div_ceil(2).max(1);
    let size = (2 * width, height * u32::try_from(rows).unwrap_or(u32::MAX));
    remat_chart::svg(size, |area| {
        let places = area.split_evenly((rows, 2));
        places
            .iter()
            .zip(panels)
            .try_for_each(|(place, panel)| draw_panel(place, panel))
    })
}
