//! Tables of devices in TOML.

use remat_cost::{Device, ProblemOptions, analytic, problem};
use remat_onnxruntime_sim::body_bytes;
use remat_plan::Objective;

use crate::{graph, judge, sample};

/// Devices of a table that are planned for.
const MOST_DEVICES: usize = 3;

/// Reads a table and plans a sample for its devices, with their second memories.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(devices) = Device::from_table(text) else {
        return false;
    };
    for device in devices.iter().take(MOST_DEVICES) {
        let graph = sample::graph();
        let profile = analytic(graph, device, body_bytes);
        let mut problem = match problem(graph, &profile, &ProblemOptions::default()) {
            Ok(problem) => problem,
            Err(error) => {
                assert!(graph::is_about_sizes(&error), "{error}");
                continue;
            }
        };
        problem.paging = device.second_memory;
        if problem.total_energy() > 0 {
            problem.objective = Objective::Energy;
        }
        // Times of transfers may be too large for any sum.
        if problem.validate().is_ok() {
            graph::apply(graph, &judge::plans(&problem));
        }
    }
    !devices.is_empty()
}
