//! What happens when: runs, transfers, and memory over time.

use plotters::prelude::*;

use crate::{DrawError, DrawResult};

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 520);
/// Share of the height that the lanes take, in pixels.
const LANES: u32 = 160;

/// What a bar of a timeline stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarKind {
    /// A first run.
    Run,
    /// A further run.
    Again,
    /// A transfer to the second memory.
    Out,
    /// A transfer back.
    In,
}

/// Something that takes time, in the unit of the chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// What it is.
    pub kind: BarKind,
    /// Its beginning.
    pub start: f64,
    /// Its end.
    pub end: f64,
}

/// A timeline: bars, and memory as steps that hold from their time on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Runs and transfers.
    pub bars: Vec<Bar>,
    /// Time and memory, ascending by time.
    pub memory: Vec<(f64, f64)>,
    /// The budget, in the unit of memory.
    pub budget: Option<f64>,
    /// Name of the unit of time.
    pub time_unit: String,
    /// Name of the unit of memory.
    pub memory_unit: String,
}

impl BarKind {
    /// The lane: processor or bus.
    fn lane(self) -> i32 {
        match self {
            Self::Run | Self::Again => 1,
            Self::Out | Self::In => 0,
        }
    }

    fn color(self) -> RGBColor {
        match self {
            Self::Run => RGBColor(70, 110, 170),
            Self::Again => RGBColor(200, 90, 60),
            Self::Out => RGBColor(120, 150, 90),
            Self::In => RGBColor(180, 140, 50),
        }
    }
}

/// Draws a timeline as SVG: above the processor and the bus, below memory and the budget.
///
/// # Errors
/// [`DrawError`].
pub fn timeline(title: &str, timeline: &Timeline) -> Result<String, DrawError> {
    let mut text = String::new();
    draw(&mut text, title, timeline).map_err(|error| DrawError(error.to_string()))?;
    Ok(text)
}

fn draw(text: &mut String, title: &str, timeline: &Timeline) -> DrawResult {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (lanes, memory) = area.split_vertically(LANES);
    let ends = timeline.bars.iter().map(|bar| bar.end);
    let last = ends
        .chain(timeline.memory.iter().map(|&(time, _)| time))
        .fold(0.0, f64::max);
    let right = if last > 0.0 { last * 1.01 } else { 1.0 };
    let mut chart = ChartBuilder::on(&lanes)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..right, 0.0..2.0)?;
    let name = |value: &f64| {
        if *value < 1.0 {
            "bus".to_owned()
        } else {
            "processor".to_owned()
        }
    };
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_x_axis()
        .y_labels(2)
        .y_label_formatter(&name)
        .label_style(("sans-serif", 14))
        .draw()?;
    chart.draw_series(timeline.bars.iter().map(|bar| {
        let low = f64::from(bar.kind.lane()) + 0.1;
        Rectangle::new([(bar.start, low), (bar.end, low + 0.8)], bar.kind.color().filled())
    }))?;
    let highest = timeline.memory.iter().map(|&(_, bytes)| bytes);
    let top = highest.chain(timeline.budget).fold(1.0, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(&memory)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(format!("time, {}", timeline.time_unit))
        .y_desc(format!("memory, {}", timeline.memory_unit))
        .label_style(("sans-serif", 14))
        .draw()?;
    let next = timeline.memory.iter().skip(1).map(|&(time, _)| time).chain([last]);
    let steps = timeline.memory.iter().zip(next);
    let corners = steps.flat_map(|(&(from, bytes), to)| [(from, bytes), (to, bytes)]);
    chart.draw_series(LineSeries::new(corners, BLACK.stroke_width(1)))?;
    if let Some(budget) = timeline.budget {
        chart.draw_series(LineSeries::new([(0.0, budget), (right, budget)], RED.stroke_width(1)))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_is_drawn_in_its_color_and_lane_and_axes_have_their_units() {
        let bar = |kind, start, end| Bar { kind, start, end };
        let svg = timeline(
            "net",
            &Timeline {
                bars: vec![
                    bar(BarKind::Run, 0.0, 1.0),
                    bar(BarKind::Out, 1.0, 3.0),
                    bar(BarKind::In, 3.0, 4.0),
                    bar(BarKind::Again, 4.0, 5.0),
                ],
                memory: vec![(0.0, 10.0), (1.0, 20.0), (4.0, 5.0)],
                budget: Some(25.0),
                time_unit: "ms".to_owned(),
                memory_unit: "KiB".to_owned(),
            },
        );
        let svg = svg.unwrap();
        for words in ["net", "processor", "bus", "time, ms", "memory, KiB"] {
            assert!(svg.contains(words), "`{words}` is not in the chart");
        }
        for kind in [BarKind::Run, BarKind::Out, BarKind::In, BarKind::Again] {
            let RGBColor(red, green, blue) = kind.color();
            let color = format!("#{red:02X}{green:02X}{blue:02X}");
            assert_eq!(svg.matches(&color).count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        assert!(timeline("empty", &Timeline::default()).is_ok());
    }
}
