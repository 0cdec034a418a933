//! What the library says on the error stream.

use std::ffi::c_int;
use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::blocks::Misfit;
use crate::formula::{Formula, OpenDim};
use crate::ledger::Request;
use crate::{ArenaPlanFile, THREADS};

/// Writes a line to the error stream. Where nobody can read it, nothing can be done.
pub(crate) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "remat: {what}");
}

/// Writes a message of the runtime to the error stream, if it is severe enough.
pub(crate) fn pass_on(severity: c_int, least: c_int, id: &str, place: &str, message: &str) {
    if severity < least {
        return;
    }
    let letter = usize::try_from(severity)
        .ok()
        .and_then(|place| "VIWEF".chars().nth(place))
        .unwrap_or('?');
    let _ = writeln!(std::io::stderr(), "[{letter}:onnxruntime:{id}, {place}] {message}");
}

/// What a session has, and what its plans are for.
#[derive(Debug)]
pub(crate) struct Purpose {
    /// The file of the plans.
    path: String,
    /// What they are for, as words.
    made_for: String,
    /// Numbers of threads that they are for, where it matters.
    threads: Option<RangeInclusive<u64>>,
    /// The session's threads within a node: 0 for what the runtime chooses, negative where that is not known.
    session_threads: AtomicI64,
}

impl Purpose {
    /// That of the plans in a file.
    pub(crate) fn new(path: &str, file: &ArenaPlanFile) -> Self {
        let range = |dim: &OpenDim| match dim.least == dim.most {
            true => format!("{} = {}", dim.name, dim.least),
            false => format!("{} = {}..{}", dim.name, dim.least, dim.most),
        };
        let dims = file
            .dims
            .iter()
            .map(|dim| format!("{}, ", range(dim)))
            .collect::<String>();
        let inputs = file.plans.first().map(|plan| {
            plan.inputs
                .iter()
                .map(|input| shown(input, &file.dims))
                .collect::<Vec<_>>()
        });
        let provider = file.cuda.as_ref().map(|cuda| match cuda.is_recorded {
            true => "the CUDA provider as recorded, ",
            false => "the CUDA provider as predicted, ",
        });
        let made_for = format!(
            "{}the model file {}, {dims}optimization level {}, ONNX Runtime {}, inputs {}",
            provider.unwrap_or_default(),
            file.model,
            file.level,
            file.runtime,
            inputs.unwrap_or_default().join(", "),
        );
        let threads = file
            .dims
            .iter()
            .find(|dim| dim.name == THREADS)
            .map(|dim| dim.least..=dim.most);
        Self {
            path: path.to_owned(),
            made_for,
            threads,
            session_threads: AtomicI64::new(-1),
        }
    }

    /// Takes the number of threads from a message of the runtime, if it says so.
    pub(crate) fn learn(&self, message: &str) {
        if let Some(threads) = threads_of(message) {
            self.session_threads.store(threads, Ordering::Relaxed);
        }
    }

    /// A line about an allocation of a run, or of loading, that the plans did not serve.
    pub(crate) fn complaint(&self, misfit: Misfit, of: &str) -> String {
        let what = match misfit {
            Misfit::Missed { place, bytes } => {
                format!("it has no buffer of {bytes} bytes as number {} of {of}", place + 1)
            }
            Misfit::Refused { place, bytes } => {
                format!("the place of buffer {} of {of}, {bytes} bytes, was taken", place + 1)
            }
        };
        let threads = self.session_threads.load(Ordering::Relaxed);
        let has = match (u64::try_from(threads), &self.threads) {
            (Ok(0), Some(_)) => "; this session sets no intra_op_num_threads".to_owned(),
            (Ok(threads), Some(range)) if !range.contains(&threads) => {
                format!("; this session has intra_op_num_threads = {threads}")
            }
            _ => String::new(),
        };
        format!(
            "`{}` does not fit: {what}. It is for {}{has}. Outputs stay right, but memory is not as planned",
            self.path, self.made_for
        )
    }
}

/// `x [batch, 3]`.
fn shown((name, shape): &(String, Vec<Formula>), dims: &[OpenDim]) -> String {
    let dim = |formula: &Formula| {
        let named = dims
            .iter()
            .enumerate()
            .find(|(place, _)| *formula == Formula::variable(*place));
        named.map_or_else(|| formula.to_string(), |(_, dim)| dim.name.clone())
    };
    format!("{name} [{}]", shape.iter().map(dim).collect::<Vec<_>>().join(", "))
}

/// Why a run is ended: the message of its status.
pub(crate) fn refusal(request: &Request, reserved: u64) -> String {
    let Request {
        bytes,
        need,
        limit,
        waits,
        ..
    } = request;
    let why = match (need > limit, waits) {
        (true, _) => "so it never fits",
        (false, true) => "and no other run goes on that would make room (outputs that are held count)",
        (false, false) => "and it does not wait for others",
    };
    format!(
        "remat: a run needs {need} bytes, {bytes} more than it has; the process has {reserved} in use, and the limit is {limit} \
         (`remat.arena.limit`), {why}"
    )
}

/// Whether a session says in a message that nodes run at one time, in threads of a pool.
pub(crate) fn is_parallel(message: &str) -> bool {
    message.starts_with("Session Options") && message.contains("execution_mode:1")
}

/// The number of threads within a node in the message with which the runtime states a session's options.
fn threads_of(message: &str) -> Option<i64> {
    let options = message.strip_prefix("Session Options")?;
    let (_, pool) = options.split_once("intra_op_param:")?;
    let (_, size) = pool.split_once("thread_pool_size: ")?;
    size.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArenaPlan;

    fn purpose() -> Purpose {
        let dim = |name: &str, most| OpenDim {
            name: name.to_owned(),
            least: 1,
            most,
        };
        let shape = vec![Formula::variable(0), Formula::constant(3)];
        let plan = ArenaPlan {
            inputs: vec![("x".to_owned(), shape), ("t".to_owned(), Vec::new())],
            orders: 1,
            first: 0,
            buffers: Vec::new(),
        };
        let file = ArenaPlanFile {
            model: "blake3:00".to_owned(),
            runtime: "1.31.1".to_owned(),
            level: "all".to_owned(),
            dims: vec![dim("batch", 64), dim(THREADS, 4), dim("one", 1)],
            plans: vec![plan],
            ..ArenaPlanFile::default()
        };
        Purpose::new("small.onnx.arena", &file)
    }

    #[test]
    fn a_complaint_says_what_the_plan_is_for_and_what_the_session_has() {
        let purpose = purpose();
        let missed = Misfit::Missed { place: 6, bytes: 4096 };
        let before = purpose.complaint(missed, "a run");
        for part in [
            "`small.onnx.arena`",
            "no buffer of 4096 bytes as number 7 of a run",
            "blake3:00",
            "batch = 1..64, intra_op_num_threads = 1..4, one = 1, ",
            "inputs x [batch, 3], t []",
        ] {
            assert!(before.contains(part), "`{part}` is not in: {before}");
        }
        assert!(!before.contains("this session has"), "{before}");
        purpose.learn("Session Options {  execution_mode:0 intra_op_param:OrtThreadPoolParams { thread_pool_size: 8 auto_set_affinity: 0 } inter_op_param:OrtThreadPoolParams { thread_pool_size: 0 }");
        assert!(
            purpose
                .complaint(missed, "a run")
                .contains("this session has intra_op_num_threads = 8")
        );
        purpose.learn("Session Options { intra_op_param:OrtThreadPoolParams { thread_pool_size: 0 }");
        assert!(
            purpose
                .complaint(missed, "a run")
                .contains("sets no intra_op_num_threads")
        );
        purpose.learn("Session Options { intra_op_param:OrtThreadPoolParams { thread_pool_size: 4 }");
        let refused = purpose.complaint(Misfit::Refused { place: 0, bytes: 64 }, "a run");
        assert!(refused.contains("buffer 1 of a run, 64 bytes, was taken"), "{refused}");
        assert!(!refused.contains("this session"), "{refused}");
    }

    #[test]
    fn a_refusal_says_what_is_needed_what_is_in_use_and_why_nobody_waits() {
        let request = Request {
            thread: 1,
            bytes: 200,
            rather: 200,
            stage: crate::ledger::Stage::Known,
            need: 300,
            limit: 1000,
            waits: false,
            begins: true,
            enters: true,
        };
        let text = refusal(&request, 900);
        for part in [
            "needs 300 bytes, 200 more",
            "has 900 in use",
            "limit is 1000",
            "does not wait",
        ] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        let waits = Request { waits: true, ..request };
        assert!(refusal(&waits, 900).contains("no other run goes on"));
        assert!(refusal(&Request { need: 1001, ..waits }, 900).contains("never fits"));
        assert!(is_parallel(
            "Session Options {  execution_mode:1 execution_order:DEFAULT"
        ));
        assert!(!is_parallel(
            "Session Options {  execution_mode:0 execution_order:DEFAULT"
        ));
    }

    #[test]
    fn messages_of_another_form_teach_nothing() {
        for message in [
            "",
            "Session Options {",
            "Session Options intra_op_param:{ thread_pool_size: x",
            "thread_pool_size: 3",
        ] {
            assert_eq!(threads_of(message), None, "{message}");
        }
    }
}
