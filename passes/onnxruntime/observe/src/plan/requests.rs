//! The requests of a session with the CUDA provider, recorded on a device: a JSON file that `remat_opt.record_requests` writes.

use std::collections::{BTreeMap, BTreeSet};

use remat_onnxruntime_run::{RecordedBuffer, RecordedRun, Recording};
use serde::Deserialize;

/// What the file says it is.
const FORMAT: &str = "remat-requests/1";

/// What no device has: more bytes than this, all requests of a list together, were not recorded.
const MOST_BYTES: u64 = 1 << 50;

/// A file of requests. Events are bytes that are requested, or, negative, the number of a request of the same list that is freed, from -1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    model: String,
    runtime: String,
    level: String,
    load: Vec<i64>,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    dims: BTreeMap<String, u64>,
    inputs: Vec<(String, Vec<i64>)>,
    events: Vec<i64>,
}

/// Requests that were recorded.
#[derive(Debug)]
pub(super) struct RecordedRequests {
    /// Hash of the model, as `ALGORITHM:HEX`.
    pub(super) model: String,
    /// Version of the runtime.
    pub(super) runtime: String,
    /// Its graph optimization level.
    pub(super) level: String,
    /// What the session requested while it loaded.
    pub(super) load: RecordedRun,
    /// Its runs by shape, in their order.
    pub(super) shapes: Vec<Recording>,
}

impl RecordedRequests {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!("its format is `{}`, and `{FORMAT}` is read", file.format));
        }
        for (what, text) in [
            ("model", &file.model),
            ("runtime", &file.runtime),
            ("level", &file.level),
        ] {
            if text.is_empty() || text.contains(char::is_control) {
                return Err(format!("`{what}` is not a word"));
            }
        }
        if file.runs.is_empty() {
            return Err("no run was recorded".to_owned());
        }
        let load = run(&file.load).map_err(|why| format!("load: {why}"))?;
        let mut shapes: Vec<Recording> = Vec::new();
        let names: BTreeSet<&String> = file.runs.iter().flat_map(|run| run.dims.keys()).collect();
        for (number, one) in file.runs.iter().enumerate() {
            if one.dims.len() != names.len() {
                return Err(format!("run {number} states other dimensions than others do"));
            }
            if one.inputs.iter().flat_map(|(_, shape)| shape).any(|&extent| extent < 0) {
                return Err(format!("run {number} has an input with a negative extent"));
            }
            let ran = run(&one.events).map_err(|why| format!("run {number}: {why}"))?;
            match shapes.iter_mut().find(|shape| shape.dims == one.dims) {
                Some(shape) if shape.inputs == one.inputs => shape.runs.push(ran),
                Some(_) => {
                    return Err(format!(
                        "run {number} has other inputs than one with the same dimensions"
                    ));
                }
                None => shapes.push(Recording {
                    dims: one.dims.clone(),
                    inputs: one.inputs.clone(),
                    runs: vec![ran],
                    weights: Vec::new(),
                }),
            }
        }
        Ok(Self {
            model: file.model,
            runtime: file.runtime,
            level: file.level,
            load,
            shapes,
        })
    }
}

/// The buffers among events.
fn run(events: &[i64]) -> Result<RecordedRun, String> {
    let mut buffers: Vec<RecordedBuffer> = Vec::new();
    let mut requested = 0_u64;
    for (time, &event) in (0..).zip(events) {
        if let Ok(bytes @ 1..) = u64::try_from(event) {
            requested = requested.saturating_add(bytes);
            if requested > MOST_BYTES {
                return Err(format!("event {time}, {event}, requests more than any device has"));
            }
            buffers.push(RecordedBuffer {
                bytes,
                first: time,
                last: None,
            });
            continue;
        }
        let freed = usize::try_from(event.unsigned_abs())
            .ok()
            .and_then(|number| number.checked_sub(1));
        let freed = freed
            .and_then(|number| buffers.get_mut(number))
            .filter(|buffer| buffer.last.is_none());
        let Some(freed) = freed else {
            return Err(format!("event {time}, {event}, frees nothing that is live"));
        };
        freed.last = Some(time);
    }
    Ok(RecordedRun {
        buffers,
        end: events.len() as u64,
        threads: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"format": "remat-requests/1", "model": "blake3:00", "runtime": "1.31.1", "level": "all", "load": [1000, 512, -2],
        "runs": [{"dims": {"n": 2}, "inputs": [["x", [2, 3]]], "events": [64, 32, -1, 16]},
                 {"dims": {"n": 2}, "inputs": [["x", [2, 3]]], "events": [64, -1]},
                 {"dims": {"n": 4}, "inputs": [["x", [4, 3]]], "events": [128, -1]}]}"#;

    #[test]
    fn runs_are_grouped_by_shape_and_what_is_never_freed_stays() {
        let read = RecordedRequests::parse(TEXT).expect("it is well-formed");
        let lasts: Vec<Option<u64>> = read.load.buffers.iter().map(|buffer| buffer.last).collect();
        assert_eq!((lasts, read.load.end), (vec![None, Some(2)], 3));
        let runs: Vec<usize> = read.shapes.iter().map(|shape| shape.runs.len()).collect();
        assert_eq!(runs, [2, 1]);
    }

    #[test]
    fn what_cannot_have_been_recorded_is_refused() {
        for (from, to, why) in [
            ("requests/1", "requests/2", "its format is"),
            ("blake3:00", "", "`model` is not a word"),
            ("512, -2]", "512, -3]", "load: event 2, -3, frees nothing"),
            ("512, -2]", "512, 0]", "load: event 2, 0, frees nothing"),
            (
                "1000, 512",
                "9223372036854775807, 9223372036854775807",
                "load: event 0, 9223372036854775807, requests more",
            ),
            ("[64, -1]", "[64, -1, -1]", "run 1: event 2, -1, frees nothing"),
            (r#""dims": {"n": 4}"#, r#""dims": {}"#, "run 2 states other dimensions"),
            (r#""dims": {"n": 4}"#, r#""dims": {"n": 2}"#, "run 2 has other inputs"),
            ("[4, 3]", "[-4, 3]", "negative extent"),
            ("\"level\"", "\"levels\"", "unknown field `levels`"),
        ] {
            let error = RecordedRequests::parse(&TEXT.replacen(from, to, 1)).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        assert!(RecordedRequests::parse(&TEXT[..TEXT.len() - 2]).is_err());
    }
}
