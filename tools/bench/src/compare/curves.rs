//! Overhead over memory, one curve for each solver.

use std::fmt::Write as _;

use remat::Overhead;
use remat_chart::{Curve, DrawError, memory_against_time};

use super::ratios::Compared;

/// The chart of one graph.
///
/// # Errors
/// If the drawing library fails, which it does not in memory.
pub(super) fn svg(compared: &Compared) -> Result<String, DrawError> {
    let baseline = compared.model.baseline().peak;
    let share = |bytes: u64| 100.0 * bytes as f64 / baseline.max(1) as f64;
    let comparison = &compared.comparison;
    let curves = comparison.curves(&compared.model).map(|(name, points)| Curve {
        name: name.to_owned(),
        points,
    });
    let curves: Vec<Curve> = curves.collect();
    memory_against_time(&compared.name, share(comparison.floor), &curves, &[])
}

/// Every run, one a line; figures are empty where there is no plan.
pub(super) fn csv(all: &[Compared]) -> String {
    let mut text = "graph,budget,solver,found,peak,overhead_percent,bound_percent,seconds\n".to_owned();
    for Compared {
        name,
        model,
        comparison,
    } in all
    {
        for (index, (budget, _)) in comparison.budgets.iter().enumerate() {
            for solver in &comparison.solvers {
                let run = &solver.runs[index];
                let seconds = run.elapsed.as_secs_f64();
                let figures = run.solution().map_or_else(
                    || ",,".to_owned(),
                    |solution| {
                        let bound = solution.certificate.as_ref().map(|certificate| Overhead {
                            duration: certificate.bound,
                            baseline: model.baseline().duration,
                        });
                        let bound = bound.map_or_else(String::new, |bound| format!("{:.6}", bound.percent()));
                        let (peak, overhead) = (solution.replay.peak, solution.overhead.percent());
                        format!("{peak},{overhead:.6},{bound}")
                    },
                );
                let _ = writeln!(
                    text,
                    "{name},{budget},{},{},{figures},{seconds:.3}",
                    solver.name,
                    run.found()
                );
            }
        }
    }
    text
}
