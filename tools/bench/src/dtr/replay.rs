//! Logs replayed under smaller and smaller budgets.

use std::path::Path;

use anyhow::Context;
use remat::dtr::{Heuristic, SimulateOptions, SimulateStatus, Trace, base_peak, read_log, simulate};

/// Ratios of the base peak, in tenths.
const TENTHS: [u32; 10] = [10, 9, 8, 7, 6, 5, 4, 3, 2, 1];

/// One log.
pub(super) struct Replays {
    pub(super) name: String,
    pub(super) curves: Vec<Curve>,
}

/// One heuristic on one log, up to its first failure.
pub(super) struct Curve {
    pub(super) heuristic: Heuristic,
    /// Time as a multiple of that without a budget, from the largest budget down.
    pub(super) overheads: Vec<f64>,
    pub(super) failure: Option<SimulateStatus>,
}

/// Replays a log with each heuristic.
pub(super) fn replays(path: &Path, heuristics: &[Heuristic], trials: u64) -> anyhow::Result<Replays> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let trace = read_log(&bytes).with_context(|| path.display().to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let peak = base_peak(&trace);
    let curves = heuristics
        .iter()
        .map(|&heuristic| curve(&trace, peak, heuristic, trials));
    Ok(Replays {
        name: name.split('.').next().unwrap_or_default().to_owned(),
        curves: curves.collect(),
    })
}

fn curve(trace: &Trace, peak: u64, heuristic: Heuristic, trials: u64) -> Curve {
    let trials = if heuristic == Heuristic::Random {
        trials.max(1)
    } else {
        1
    };
    let mut curve = Curve {
        heuristic,
        overheads: Vec::new(),
        failure: None,
    };
    for tenths in TENTHS {
        let replays = (0..trials).map(|seed| {
            let options = SimulateOptions {
                heuristic,
                budget: Some((f64::from(tenths) / 10.0 * peak as f64) as u64),
                seed,
                ..SimulateOptions::default()
            };
            simulate(trace, &options)
        });
        let replays: Vec<_> = replays.collect();
        let failed = replays.iter().find(|replay| replay.status != SimulateStatus::Ok);
        if let Some(failed) = failed {
            curve.failure = Some(failed.status);
            break;
        }
        let sum: f64 = replays.iter().map(|replay| replay.overhead).sum();
        curve.overheads.push(sum / trials as f64);
    }
    curve
}
