//! Figure 5 of the paper: how good the plan is after how many seconds.

use std::fmt::Write as _;

use plotters::prelude::*;
use remat_chart::{Area, DrawError, DrawResult};

use super::published::{Figures, Row};
use crate::measure::{Improvement, Run};
use crate::panels;

/// Width and height of one panel in pixels.
const PANEL: (u32, u32) = (440, 300);
/// The smallest time that is drawn.
const FIRST: f64 = 1e-3;

/// One graph under one budget.
pub(super) struct Panel {
    /// Name of the graph.
    pub(super) graph: String,
    /// The budget as it was asked for.
    pub(super) budget: String,
    /// What the solvers did.
    pub(super) runs: Vec<(String, Vec<Improvement>)>,
    /// The paper's Moccasin.
    pub(super) paper: Option<Figures>,
    /// When the last run ended at the latest.
    pub(super) seconds: f64,
}

impl Panel {
    pub(super) fn new(graph: &str, budget: &str, runs: &[Run], paper: Option<&Row>, seconds: f64) -> Self {
        Self {
            graph: graph.to_owned(),
            budget: budget.to_owned(),
            runs: runs
                .iter()
                .map(|run| (run.solver.clone(), run.improvements.clone()))
                .collect(),
            paper: paper.map(|row| row.moccasin),
            seconds,
        }
    }
}

/// Every improvement, one a line.
pub(super) fn csv(panels: &[Panel]) -> String {
    let mut text = "graph,budget,solver,seconds,increase_percent\n".to_owned();
    for Panel {
        graph, budget, runs, ..
    } in panels
    {
        for (solver, improvements) in runs {
            for improvement in improvements {
                let (seconds, increase) = (improvement.seconds, improvement.increase);
                let _ = writeln!(text, "{graph},{budget},{solver},{seconds:.6},{increase:.6}");
            }
        }
    }
    text
}

/// The panels in which something was found, in one drawing, two in a row.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(super) fn svg(panels: &[Panel]) -> Result<String, DrawError> {
    let found = |panel: &&Panel| panel.runs.iter().any(|(_, improvements)| !improvements.is_empty());
    let panels: Vec<&Panel> = panels.iter().filter(found).collect();
    panels::svg(&panels, PANEL, |area, panel| draw_panel(area, panel))
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> DrawResult {
    let all = || panel.runs.iter().flat_map(|(_, improvements)| improvements);
    let last = panel
        .paper
        .map_or(panel.seconds, |paper| paper.seconds.max(panel.seconds))
        * 1.5;
    let paper = panel.paper.map(|paper| paper.increase);
    let best = all()
        .map(|improvement| improvement.increase)
        .chain(paper)
        .fold(f64::MAX, f64::min);
    let worst = all()
        .map(|improvement| improvement.increase)
        .chain(paper)
        .fold(0.0, f64::max);
    // The first plans may be ten times as long as the last ones: the interesting part is near the end.
    let top = (4.0 * best.max(0.25)).min(worst.max(0.1) * 1.1);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}, {}", panel.graph, panel.budget), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(35)
        .y_label_area_size(45)
        .build_cartesian_2d((FIRST..last).log_scale(), 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("seconds")
        .y_desc("added time, %")
        .x_label_formatter(&|seconds| format!("{seconds}"))
        .draw()?;
    for (index, (solver, improvements)) in panel.runs.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart
            .draw_series(LineSeries::new(
                stairs(improvements, panel.seconds, top),
                color.stroke_width(2),
            ))?
            .label(solver)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
        let found = improvements.iter().map(|improvement| place(improvement, top));
        chart.draw_series(found.map(|point| Circle::new(point, 2, color.filled())))?;
    }
    if let Some(paper) = panel.paper {
        chart
            .draw_series([Cross::new(
                (paper.seconds, paper.increase.min(top)),
                4,
                BLACK.stroke_width(2),
            )])?
            .label("paper: Moccasin")
            .legend(|(x, y)| Cross::new((x + 7, y), 4, BLACK.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// Where a plan is drawn.
fn place(improvement: &Improvement, top: f64) -> (f64, f64) {
    (improvement.seconds.max(FIRST), improvement.increase.min(top))
}

/// A plan is the best until the next one is found.
fn stairs(improvements: &[Improvement], end: f64, top: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(2 * improvements.len() + 1);
    let mut before: Option<f64> = None;
    for improvement in improvements {
        let (x, y) = place(improvement, top);
        points.extend(before.map(|before| (x, before)));
        points.push((x, y));
        before = Some(y);
    }
    points.extend(before.map(|before| (end.max(FIRST), before)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let improvements = [(0.0, 9.0), (0.5, 3.0), (2.0, 2.5)];
        let improvements = improvements.map(|(seconds, increase)| Improvement { seconds, increase });
        Panel {
            graph: "net".to_owned(),
            budget: "80%".to_owned(),
            runs: vec![("search".to_owned(), improvements.to_vec())],
            paper: Some(Figures {
                increase: 2.4,
                peak: "1",
                seconds: 100.0,
            }),
            seconds: 10.0,
        }
    }

    #[test]
    fn a_plan_counts_until_the_next_one() {
        let points = stairs(&panel().runs[0].1, 10.0, 4.0);
        assert_eq!(
            points,
            [
                (FIRST, 4.0),
                (0.5, 4.0),
                (0.5, 3.0),
                (2.0, 3.0),
                (2.0, 2.5),
                (10.0, 2.5)
            ]
        );
        assert_eq!(stairs(&[], 10.0, 4.0), []);
    }

    #[test]
    fn every_panel_in_which_something_was_found_is_drawn() {
        let mut nothing = panel();
        nothing.runs[0].1.clear();
        let drawing = svg(&[panel(), panel(), nothing, panel()]).unwrap();
        assert_eq!(drawing.matches("net, 80%").count(), 3);
        assert_eq!(drawing.matches("paper: Moccasin").count(), 3);
    }

    #[test]
    fn the_file_has_a_line_for_every_improvement() {
        assert_eq!(csv(&[panel()]).lines().count(), 4);
    }
}
