//! The child's side of [`crate::runner`]: one request is answered, then the process ends.

use std::io::{BufRead, Write};

use serde::Serialize;

use crate::closeness::compare_close_here;
use crate::compare::{compare_bits_here, compare_time_here};
use crate::ledger::{Taken, measure_process_here};
use crate::measure::measure_here;
use crate::optimize::optimize_here;
use crate::process;
use crate::profile::profile_here;
use crate::record::record_here;
use crate::runner::{ANSWER, Request, Task};
use crate::sizes::compare_sizes_here;
use crate::{Runtime, RuntimeError};

/// Answers one request, as the child. `input` and `output` are its standard streams.
///
/// # Errors
/// Those of the two streams. Whatever goes wrong with the model is part of the answer.
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    process::die_with(request.parent)?;
    let before = Taken::now();
    let runtime = Runtime::load(&request.library);
    let settings = &request.settings;
    let answer = match &request.task {
        Task::Measure { model, options } => json(&runtime.and_then(|r| measure_here(&r, model, settings, options))),
        Task::CompareTime { base, other, options } => {
            json(&runtime.and_then(|r| compare_time_here(&r, base, other, settings, options)))
        }
        Task::CompareBits { base, other, seed } => {
            json(&runtime.and_then(|r| compare_bits_here(&r, base, other, settings, *seed)))
        }
        Task::CompareClose { base, other, options } => {
            json(&runtime.and_then(|r| compare_close_here(&r, (base, other), settings, options)))
        }
        Task::CompareSizes { base, other, options } => {
            json(&runtime.and_then(|r| compare_sizes_here(&r, (base, other), settings, options)))
        }
        Task::Profile {
            model,
            runs,
            seed,
            given,
        } => json(&runtime.and_then(|r| profile_here(&r, model, settings, *runs, *seed, given))),
        Task::Record { model, options } => json(&runtime.and_then(|r| record_here(&r, model, settings, options))),
        Task::Version => json(&runtime.map(|r| r.version().to_owned())),
        Task::Optimize { model, out, form } => {
            json(&runtime.and_then(|r| optimize_here(&r, model, settings.level, (out, *form))))
        }
        Task::Ledger { model, options } => {
            json(&runtime.and_then(|r| measure_process_here(&r, model, (settings, before), options)))
        }
    }?;
    writeln!(output, "{ANSWER}{answer}")?;
    output.flush()
}

fn json<T: Serialize>(result: &Result<T, RuntimeError>) -> serde_json::Result<String> {
    serde_json::to_string(result)
}
