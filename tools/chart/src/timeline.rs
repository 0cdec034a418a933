//! What happens when: runs, transfers, and memory over time.

use plotters::prelude::*;

use crate::legend::{self, Area, HEAD, LABELS, MARGIN, Sample, tick};
use crate::{DrawError, DrawResult, svg};

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 560);
/// Height of the lanes.
const LANES: u32 = 120;
/// Most bars that are set off against their neighbors by a border; more would be borders only.
const MOST_BORDERS: usize = 400;

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
    const ALL: [Self; 4] = [Self::Run, Self::Again, Self::Out, Self::In];

    /// What the legend calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Run => "first run",
            Self::Again => "recompute",
            Self::Out => "page out",
            Self::In => "page in",
        }
    }

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
    svg(SIZE, |area| draw(area, title, timeline))
}

fn draw(area: &Area<'_>, title: &str, timeline: &Timeline) -> DrawResult {
    let (head, charts) = area.split_vertically(HEAD);
    let (lanes, memory) = charts.split_vertically(LANES);
    draw_head(&head, title, timeline)?;
    let ends = timeline.bars.iter().map(|bar| bar.end);
    let last = ends
        .chain(timeline.memory.iter().map(|&(time, _)| time))
        .fold(0.0, f64::max);
    let right = if last > 0.0 { last * 1.01 } else { 1.0 };
    draw_lanes(&lanes, timeline, right)?;
    draw_memory(&memory, timeline, last, right)
}

/// The title, and the names of what there is.
fn draw_head(area: &Area<'_>, title: &str, timeline: &Timeline) -> DrawResult {
    legend::title(area, title, SIZE.0)?;
    let mut x = i32::try_from(LABELS + MARGIN)?;
    let mut name = |text: &str, sample| {
        let place = (x, 54);
        x += legend::width(text);
        legend::entry(area, place, text, sample)
    };
    for kind in BarKind::ALL {
        if timeline.bars.iter().any(|bar| bar.kind == kind) {
            name(kind.name(), Sample::Box(kind.color()))?;
        }
    }
    if let Some((_, peak)) = highest(timeline) {
        let text = format!("memory, peak {} {}", tick(&peak), timeline.memory_unit);
        name(&text, Sample::Line(BLACK.stroke_width(1)))?;
    }
    if let Some(budget) = timeline.budget {
        let text = format!("budget, {} {}", tick(&budget), timeline.memory_unit);
        name(&text, Sample::Line(RED.stroke_width(1)))?;
    }
    Ok(())
}

/// Time and height of the peak, the first of several.
fn highest(timeline: &Timeline) -> Option<(f64, f64)> {
    let points = timeline.memory.iter().copied();
    points.reduce(|best, point| if point.1 > best.1 { point } else { best })
}

fn draw_lanes(area: &Area<'_>, timeline: &Timeline, right: f64) -> DrawResult {
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(0.0..right, 0.0..2.0)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_x_axis()
        .disable_y_axis()
        .draw()?;
    for (lane, name) in [(1, "processor"), (0, "bus")] {
        let (_, y) = chart.backend_coord(&(0.0, f64::from(lane) + 0.5));
        let (_, offset) = area.get_base_pixel();
        area.draw(&Text::new(name, (12, y - offset - 7), ("sans-serif", 14)))?;
    }
    let border = (timeline.bars.len() <= MOST_BORDERS).then(|| WHITE.stroke_width(1));
    for bar in &timeline.bars {
        let low = f64::from(bar.kind.lane()) + 0.1;
        let corners = [(bar.start, low), (bar.end, low + 0.8)];
        chart.draw_series([Rectangle::new(corners, bar.kind.color().filled())])?;
        if let Some(border) = border {
            let end = [(bar.end, low), (bar.end, low + 0.8)];
            chart.draw_series([PathElement::new(end, border)])?;
        }
    }
    Ok(())
}

fn draw_memory(area: &Area<'_>, timeline: &Timeline, last: f64, right: f64) -> DrawResult {
    let peak = highest(timeline);
    let most = peak.map(|(_, bytes)| bytes).into_iter().chain(timeline.budget);
    let top = most.fold(0.0, f64::max) * 1.08;
    let top = if top > 0.0 { top } else { 1.0 };
    let (time, memory) = (&timeline.time_unit, &timeline.memory_unit);
    let names = (&*format!("time, {time}"), &*format!("memory, {memory}"));
    let mut chart = legend::axes(area, (right, top), names)?;
    let next = timeline.memory.iter().skip(1).map(|&(time, _)| time).chain([last]);
    let steps = timeline.memory.iter().zip(next);
    let corners = steps.flat_map(|(&(from, bytes), to)| [(from, bytes), (to, bytes)]);
    chart.draw_series(LineSeries::new(corners, BLACK.stroke_width(1)))?;
    if let Some(budget) = timeline.budget {
        chart.draw_series(LineSeries::new([(0.0, budget), (right, budget)], RED.stroke_width(1)))?;
    }
    if let Some(peak) = peak {
        chart.draw_series([Circle::new(peak, 4, BLACK.filled())])?;
    }
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
        for words in [
            "net",
            "processor",
            "bus",
            "time, ms",
            "memory, KiB",
            "memory, peak 20 KiB",
            "budget, 25 KiB",
        ] {
            assert!(svg.contains(words), "`{words}` is not in the chart");
        }
        for kind in [BarKind::Run, BarKind::Out, BarKind::In, BarKind::Again] {
            let RGBColor(red, green, blue) = kind.color();
            let color = format!("#{red:02X}{green:02X}{blue:02X}");
            assert_eq!(
                svg.matches(&color).count(),
                2,
                "{kind:?}: its bar, and its sample in the legend"
            );
            assert!(svg.contains(kind.name()), "{kind:?}");
        }
    }

    #[test]
    fn the_legend_names_only_what_there_is() {
        let bar = Bar {
            kind: BarKind::Run,
            start: 0.0,
            end: 1.0,
        };
        let timeline = Timeline {
            bars: vec![bar],
            memory: vec![(0.0, 1.0)],
            ..Timeline::default()
        };
        let svg = super::timeline("net", &timeline).unwrap();
        assert!(svg.contains("first run"));
        assert!(!svg.contains("page out") && !svg.contains("budget"));
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        assert!(timeline("empty", &Timeline::default()).is_ok());
    }
}
