//! Measured times in JSON.

use remat_cost::{ProblemOptions, ProfileFile, analytic, problem};
use remat_onnxruntime_sim::body_bytes;

use crate::{graph, judge, sample};

/// Reads a profile, applies it to a sample, and plans that.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(file) = ProfileFile::from_json(text) else {
        return false;
    };
    assert_eq!(ProfileFile::from_json(&file.to_json()).as_ref(), Ok(&file));
    let graph = sample::graph();
    let mut profile = analytic(graph, &graph::device(), body_bytes);
    let before = profile.clone();
    if profile.apply_file(graph, &file).is_err() {
        assert_eq!(profile, before, "a profile that is refused changes nothing");
        return true;
    }
    match problem(graph, &profile, &ProblemOptions::default()) {
        Ok(problem) => graph::apply(graph, &judge::plans(&problem)),
        Err(error) => assert!(graph::is_about_sizes(&error), "{error}"),
    }
    true
}
