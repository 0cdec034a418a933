//! Charts that several tools draw.

mod block;
mod legend;
mod memory;
mod timeline;

use plotters::prelude::*;
use thiserror::Error;

pub use block::{BlockChart, Taken, TakenBy, block};
pub use legend::unit;
use legend::{Area, DrawResult, LINE, Sample, tick};
pub use memory::{StepCurve, memory_over_steps};
pub use timeline::{Bar, BarKind, Timeline, timeline};

/// Width and height in pixels, the list of names included.
const SIZE: (u32, u32) = (960, 500);
/// Width of the list of names.
const NAMES: u32 = 220;
/// Where the list of names begins.
const FIRST_NAME: i32 = 50;
/// What is more than this many times as high as the highest point of the best curve is cut off.
const HIGHEST: f64 = 3.0;
/// As is nothing below this many per cent.
const LEAST_TOP: f64 = 5.0;
/// Colors that are told apart on white, by people who see colors differently too; the first is that of the curve that matters most.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 92, 175),
    RGBColor(213, 94, 0),
    RGBColor(0, 140, 100),
    RGBColor(204, 105, 165),
    RGBColor(120, 80, 30),
    RGBColor(80, 170, 220),
    RGBColor(190, 150, 0),
    RGBColor(90, 90, 90),
];

/// The drawing library failed, which it does not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the chart cannot be drawn: {0}")]
pub struct DrawError(String);

/// A drawing of this width and height in pixels, as SVG.
///
/// # Errors
/// [`DrawError`].
fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> DrawResult) -> Result<String, DrawError> {
    let mut text = String::new();
    let drawn = || {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
        Ok(())
    };
    let drawn: DrawResult = drawn();
    drawn.map_err(|error| DrawError(error.to_string()))?;
    // Names come from files; XML has no control characters but these.
    let is_text = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let letters = text
        .chars()
        .map(|letter| if is_text(letter) { letter } else { '\u{fffd}' });
    Ok(letters.collect())
}

/// One line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What stands beside it.
    pub name: String,
    /// Budget as a share of the baseline's peak, and added time as a share of the baseline's, both in per cent.
    pub points: Vec<(f64, f64)>,
}

/// Draws added time over budgets as SVG, one line for each curve, the first one bold, and crosses, each kind in a color of its own. `floor`
/// is the budget in per cent below which nothing can exist.
///
/// Heuristics may add many times what the best plans add: where a curve leaves the chart its points lie on the upper edge, as
/// triangles. Curves of the same points are one line with several names; a curve without points is left out.
///
/// # Errors
/// [`DrawError`].
pub fn memory_against_time(title: &str, floor: f64, curves: &[Curve], crosses: &[Curve]) -> Result<String, DrawError> {
    let groups = groups(curves);
    let crosses: Vec<&Curve> = crosses.iter().filter(|kind| !kind.points.is_empty()).collect();
    let names = groups.iter().map(|group| group.names.len()).sum::<usize>() + crosses.len() + 2;
    let lines = u32::try_from(names).unwrap_or(u32::MAX / 100);
    let height = lines * LINE.unsigned_abs() + FIRST_NAME.unsigned_abs() + 10;
    svg((SIZE.0, SIZE.1.max(height)), |area| {
        draw(area, (title, floor, top(curves)), &groups, &crosses)
    })
}

/// Curves that are one line.
struct Group<'a> {
    names: Vec<&'a str>,
    points: Vec<(f64, f64)>,
}

/// Those of the same points together, in the order of the first of each; without those that have none.
fn groups(curves: &[Curve]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for curve in curves.iter().filter(|curve| !curve.points.is_empty()) {
        let mut points = curve.points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        match groups.iter_mut().find(|group| group.points == points) {
            Some(group) => group.names.push(&curve.name),
            None => groups.push(Group {
                names: vec![&curve.name],
                points,
            }),
        }
    }
    groups
}

fn draw(
    area: &Area<'_>,
    (title, floor, top): (&str, f64, f64),
    groups: &[Group<'_>],
    crosses: &[&Curve],
) -> DrawResult {
    let (plot, names) = area.split_horizontally(SIZE.0 - NAMES);
    let crossed = || crosses.iter().flat_map(|kind| &kind.points);
    let budgets = || {
        groups
            .iter()
            .flat_map(|group| &group.points)
            .chain(crossed())
            .map(|point| point.0)
    };
    let left = ((budgets().fold(floor, f64::min) - 3.0) / 10.0).floor().max(0.0) * 10.0;
    let right = budgets().fold(100.0, f64::max) + 2.0;
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
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .label_style(("sans-serif", 14))
        .draw()?;
    chart.draw_series(LineSeries::new([(floor, 0.0), (floor, top)], BLACK.stroke_width(1)))?;
    let mut is_cut = false;
    // The first one last, so that it lies above the others.
    for (index, group) in groups.iter().enumerate().rev() {
        let points = group.points.iter().map(|&(x, y)| (x, y.min(top)));
        chart.draw_series(LineSeries::new(points.clone(), style(index)))?;
        let (inside, cut): (Vec<_>, Vec<_>) = points.partition(|&(_, y)| y < top);
        is_cut |= !cut.is_empty();
        let size = if index == 0 { 5 } else { 3 };
        chart.draw_series(
            inside
                .into_iter()
                .map(|point| Circle::new(point, size, color(index).filled())),
        )?;
        chart.draw_series(
            cut.into_iter()
                .map(|point| TriangleMarker::new(point, 5, color(index).filled())),
        )?;
    }
    for (index, kind) in crosses.iter().enumerate() {
        let style = cross(index);
        chart.draw_series(kind.points.iter().map(|&point| Cross::new(point, 5, style)))?;
    }
    let floor = format!("floor, {floor:.1} %");
    name_all(&names, &floor, groups, crosses, is_cut)
}

/// The list of names.
fn name_all(area: &Area<'_>, floor: &str, groups: &[Group<'_>], crosses: &[&Curve], is_cut: bool) -> DrawResult {
    let mut places = (0..).map(|line| (5, FIRST_NAME + LINE * line));
    let mut name = |text: &str, sample| match places.next() {
        Some(place) => legend::entry(area, place, text, sample),
        None => Ok(()),
    };
    name(floor, Sample::Line(BLACK.stroke_width(1)))?;
    for (index, group) in groups.iter().enumerate() {
        for text in &group.names {
            name(text, Sample::Line(style(index)))?;
        }
    }
    for (index, kind) in crosses.iter().enumerate() {
        name(&kind.name, Sample::Cross(cross(index)))?;
    }
    if is_cut {
        name("more than the chart shows", Sample::Triangle)?;
    }
    Ok(())
}

/// Red, then black.
fn cross(kind: usize) -> ShapeStyle {
    [RED, BLACK][kind % 2].stroke_width(2)
}

fn color(index: usize) -> RGBColor {
    COLORS[index % COLORS.len()]
}

/// The first one bold; a second round through the colors is thinner.
fn style(index: usize) -> ShapeStyle {
    let width = match index {
        0 => 4,
        _ if index < COLORS.len() => 2,
        _ => 1,
    };
    color(index).stroke_width(width)
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
    fn control_characters_of_a_title_are_no_part_of_the_drawing() {
        let svg = memory_against_time("a\u{1b}[31m\u{7}b", 10.0, &[], &[]).expect("it is drawn");
        assert!(svg.contains("a\u{fffd}[31m\u{fffd}b"), "{svg}");
        assert!(!svg.contains(|letter: char| letter.is_control() && letter != '\n' && letter != '\t'));
    }

    #[test]
    fn every_curve_with_points_is_named_and_has_a_mark_for_each() {
        let curves = [
            curve("auto", &[(90.0, 1.0), (80.0, 2.0)]),
            curve("poor", &[(90.0, 500.0)]),
            curve("nothing", &[]),
        ];
        let svg = memory_against_time("net", 42.0, &curves, &[curve("impossible", &[(40.0, 0.0)])]).unwrap();
        for words in ["net", "floor, 42.0 %", "auto", "poor", "impossible", "added time, %"] {
            assert!(svg.contains(words), "`{words}` is not in the chart");
        }
        assert!(!svg.contains("nothing"), "it has no result");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(
            svg.matches("<polygon").count(),
            2,
            "cut off at the upper edge, and said in the legend"
        );
    }

    #[test]
    fn curves_of_the_same_points_are_one_line_with_both_names() {
        let both = [curve("auto", &[(90.0, 1.0)]), curve("search", &[(90.0, 1.0)])];
        let svg = memory_against_time("net", 42.0, &both, &[]).unwrap();
        assert!(svg.contains("auto") && svg.contains("search"));
        assert_eq!(svg.matches("<circle").count(), 1);
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
