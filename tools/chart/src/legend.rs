//! Names beside samples of what they name.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Height of a title with a list of names below it.
pub(crate) const HEAD: u32 = 70;
/// Room for labels to the left of a chart.
pub(crate) const LABELS: u32 = 80;
/// Room around a chart.
pub(crate) const MARGIN: u32 = 10;
/// Height of a line of names.
pub(crate) const LINE: i32 = 20;
/// Width of a sample.
const SAMPLE: i32 = 20;
/// Between a sample and its name.
const GAP: i32 = 7;
/// Height of the letters.
const FONT: i32 = 14;
/// Width of a letter at most, as far as it can be known without the font of the reader.
const LETTER: i32 = 8;

/// An area of pixels.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart in an area.
pub(crate) type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// What drawing comes to.
pub(crate) type DrawResult = Result<(), Box<dyn std::error::Error>>;

/// What stands before a name.
#[derive(Clone, Copy)]
pub(crate) enum Sample {
    /// A piece of a line.
    Line(ShapeStyle),
    /// A filled box.
    Box(RGBColor),
    /// A triangle, as at the upper edge of a chart.
    Triangle,
    /// A cross.
    Cross(ShapeStyle),
}

/// Draws a name with its sample; `y` is the middle of the line.
pub(crate) fn entry(area: &Area<'_>, (x, y): (i32, i32), text: &str, sample: Sample) -> DrawResult {
    match sample {
        Sample::Line(style) => area.draw(&PathElement::new([(x, y), (x + SAMPLE, y)], style))?,
        Sample::Box(color) => area.draw(&Rectangle::new([(x, y - 6), (x + SAMPLE, y + 6)], color.filled()))?,
        Sample::Cross(style) => area.draw(&Cross::new((x + SAMPLE / 2, y), 5, style))?,
        Sample::Triangle => area.draw(&TriangleMarker::new((x + SAMPLE / 2, y), 5, BLACK.filled()))?,
    }
    area.draw(&Text::new(
        text.to_owned(),
        (x + SAMPLE + GAP, y - FONT / 2),
        ("sans-serif", FONT),
    ))?;
    Ok(())
}

/// A title in the middle above everything, `width` pixels wide.
pub(crate) fn title(area: &Area<'_>, title: &str, width: u32) -> DrawResult {
    let centered = Pos::new(HPos::Center, VPos::Top);
    let style = TextStyle::from(("sans-serif", 20).into_font()).pos(centered);
    area.draw(&Text::new(title.to_owned(), (i32::try_from(width / 2)?, 12), style))?;
    Ok(())
}

/// A chart from 0 on, with its axes and what they are of.
pub(crate) fn axes<'a>(
    area: &Area<'a>,
    (right, top): (f64, f64),
    (x, y): (&str, &str),
) -> Result<Chart<'a>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(40)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .label_style(("sans-serif", 14))
        .draw()?;
    Ok(chart)
}

/// How far to the right the next entry of a row stands.
pub(crate) fn width(text: &str) -> i32 {
    let letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX / LETTER / 2);
    SAMPLE + GAP + letters * LETTER + 2 * GAP
}

/// The unit in which sizes up to `most` bytes are drawn: its name and its bytes.
#[must_use]
pub fn unit(most: u64) -> (&'static str, u64) {
    match most {
        most if most >= 10 << 30 => ("GiB", 1 << 30),
        most if most >= 10 << 20 => ("MiB", 1 << 20),
        most if most >= 10 << 10 => ("KiB", 1 << 10),
        _ => ("bytes", 1),
    }
}

/// A figure at a tick: whole numbers have no fraction.
pub(crate) fn tick(value: &f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_no_more_digits_than_they_need() {
        assert_eq!(
            [50.0, 0.25, 7.5, 0.0, -0.001].map(|value| tick(&value)),
            ["50", "0.25", "7.5", "0", "0"]
        );
    }
}
