//! How many times the cost of the best known plans each solver takes.

use remat::{Comparison, Model};

use crate::table::Table;

/// One graph, compared.
pub(super) struct Compared {
    pub(super) name: String,
    pub(super) model: Model,
    pub(super) comparison: Comparison,
}

const HEADER: &[&str] = &["graph", "solver", "plans", "to best", "worst", "to bound", "most s"];

/// One row for each graph and solver. Ratios are of whole durations, as geometric means over the budgets for which the solver has a plan.
pub(super) fn table(all: &[Compared]) -> Table {
    Table::new(2, HEADER, all.iter().flat_map(rows).collect())
}

fn rows(compared: &Compared) -> Vec<Vec<String>> {
    let Compared {
        name,
        model,
        comparison,
    } = compared;
    let budgets = 0..comparison.budgets.len();
    let known: Vec<_> = budgets
        .filter_map(|budget| Some((budget, comparison.best(budget)?, comparison.bound(model, budget))))
        .collect();
    let row = |solver: &remat::ComparedSolver| {
        let found: Vec<_> = known
            .iter()
            .filter_map(|&(budget, best, bound)| {
                let duration = solver.runs[budget].solution()?.replay.duration;
                Some((ratio(duration, best), ratio(duration, bound)))
            })
            .collect();
        let slowest = solver
            .runs
            .iter()
            .map(|run| run.elapsed.as_secs_f64())
            .fold(0.0, f64::max);
        let mut row = vec![
            name.clone(),
            format!("`{}`", solver.name),
            format!("{} of {}", found.len(), known.len()),
        ];
        if found.is_empty() {
            row.resize(6, String::new());
        } else {
            let worst = found.iter().map(|ratios| ratios.0).fold(1.0, f64::max);
            row.extend([
                format!("{:.4}", geometric_mean(found.iter().map(|ratios| ratios.0))),
                format!("{worst:.4}"),
                format!("{:.4}", geometric_mean(found.iter().map(|ratios| ratios.1))),
            ]);
        }
        row.push(format!("{slowest:.3}"));
        row
    };
    comparison.solvers.iter().map(row).collect()
}

/// 1 where both are 0.
fn ratio(duration: u64, least: u64) -> f64 {
    if least == 0 {
        1.0
    } else {
        duration as f64 / least as f64
    }
}

/// Not a number where there is nothing.
fn geometric_mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = ratios.len() as f64;
    (ratios.map(f64::ln).sum::<f64>() / count).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_averaged_as_ratios() {
        assert!((geometric_mean([1.0, 4.0].into_iter()) - 2.0).abs() < 1e-12);
        assert!((geometric_mean([1.5].into_iter()) - 1.5).abs() < 1e-12);
        assert!((ratio(0, 0) - 1.0).abs() < 1e-12);
        assert!((ratio(3, 2) - 1.5).abs() < 1e-12);
    }
}
