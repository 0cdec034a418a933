//! Tables 2 and 3 of the paper: what each method finds, and how fast.

use remat::Model;
use remat::plan::BoundCovers;

use super::published::Row;
use crate::measure::Run;
use crate::table::Table;

const HEADER: &[&str] = &[
    "graph", "budget", "method", "median %", "min %", "max %", "peak", "first s", "best s", "bound %", "of", "gap %",
    "speed-up",
];

/// The table around the rows of all graphs.
pub(super) fn table(rows: Vec<Vec<String>>) -> Table {
    Table::new(3, HEADER, rows)
}

/// What the paper prints for each method.
pub(super) fn published(name: &str, budget: &str, row: &Row) -> Vec<Vec<String>> {
    let line = |(method, figures): (&str, super::published::PublishedRun)| {
        vec![
            name.to_owned(),
            budget.to_owned(),
            format!("paper: {method}"),
            format!("{:.1}", figures.increase),
            String::new(),
            String::new(),
            figures.peak.to_owned(),
            String::new(),
            format!("{:.1}", figures.seconds),
        ]
    };
    row.methods().map(line).collect()
}

/// What a solver found in `runs` of several seeds: the median one, beside the time added by the best and the worst. A run without a plan is worse than any
/// with one. The speed-up is the seconds of the paper's Moccasin over those of the median run until the increase it prints was reached.
pub(super) fn measured(
    name: &str,
    budget: &str,
    model: &Model,
    mut runs: Vec<Run>,
    paper: Option<&Row>,
) -> Vec<String> {
    let duration = |run: &Run| {
        run.result
            .as_ref()
            .map_or(u64::MAX, |solution| solution.replay.duration)
    };
    runs.sort_by_key(duration);
    let (Some(run), Some(best), Some(worst)) = (runs.get(runs.len().saturating_sub(1) / 2), runs.first(), runs.last())
    else {
        return Vec::new();
    };
    let increase = |run: &Run| match &run.result {
        Ok(solution) => format!("{:.3}", solution.overhead.percent()),
        Err(why) => why.clone(),
    };
    let mut row = vec![name.to_owned(), budget.to_owned(), format!("`{}`", run.solver)];
    row.extend([increase(run), increase(best), increase(worst)]);
    let Ok(solution) = &run.result else {
        return row;
    };
    row.push(solution.replay.peak.to_string());
    let seconds = |improvement: Option<&crate::measure::Improvement>| {
        improvement.map_or_else(String::new, |improvement| format!("{:.3}", improvement.seconds))
    };
    row.push(seconds(run.improvements.first()));
    row.push(seconds(run.improvements.last()));
    match &solution.certificate {
        Some(certificate) => {
            let bound = remat::Overhead {
                duration: certificate.bound,
                baseline: model.baseline().duration,
            };
            row.push(format!("{:.3}", bound.percent()));
            row.push(covers(certificate.bound_covers).to_owned());
            row.push(format!("{:.3}", 100.0 * certificate.gap.unwrap_or(0.0)));
        }
        None => row.extend([String::new(), String::new(), String::new()]),
    }
    row.push(paper.map_or_else(String::new, |paper| speed_up(run, paper)));
    row
}

/// The plans that a bound speaks about, in a word.
fn covers(covers: BoundCovers) -> &'static str {
    match covers {
        BoundCovers::AllPlans => "all",
        BoundCovers::FixedOrder => "order",
        BoundCovers::StageForm => "stages",
        BoundCovers::CandidateSet => "set",
    }
}

fn speed_up(run: &Run, paper: &Row) -> String {
    // The first millisecond is not measured well.
    let seconds = run.seconds_to(paper.moccasin.increase).map(|seconds| seconds.max(1e-3));
    seconds.map_or_else(
        || "not reached".to_owned(),
        |seconds| format!("{:.0}", paper.moccasin.seconds / seconds),
    )
}
