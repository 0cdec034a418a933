//! The linear network of the paper's proofs: `n` ops forward, `n` back, everything of size and time 1.

use std::fmt::Write;

use remat_dtr::{SimulateOptions, SimulateStatus, read_log, simulate};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(square_root_memory_costs_what_the_reference_pays),
        trial!(logarithmic_memory_costs_what_the_reference_pays),
    ]
}

const START: &str = "{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}\n";

fn call(log: &mut String, arguments: &[String], result: &str) {
    let arguments: Vec<String> = arguments.iter().map(|name| format!("\"{name}\"")).collect();
    let arguments = arguments.join(",");
    writeln!(
        log,
        r#"{{"ARGS":[{arguments}],"INSTRUCTION":"CALL","NAME":"op","RESULT":["{result}"],"TIME":"1"}}
{{"INSTRUCTION":"MEMORY","MEMORY":"1","NAME":"{result}"}}
{{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"{result}"}}"#
    )
    .expect("as written above");
}

fn release(log: &mut String, name: &str) {
    writeln!(log, r#"{{"INSTRUCTION":"RELEASE","NAME":"{name}"}}"#).expect("as written above");
}

/// Forward op `i` reads the result before it; backward op `i` reads the result before its forward op and the gradient after it.
fn network(n: usize) -> String {
    let mut log = START.to_owned();
    for i in 1..=n {
        let arguments: Vec<String> = (i > 1).then(|| format!("t{}", i - 1)).into_iter().collect();
        call(&mut log, &arguments, &format!("t{i}"));
    }
    release(&mut log, &format!("t{n}"));
    for i in (1..=n).rev() {
        let before = (i > 1).then(|| format!("t{}", i - 1));
        let after = (i < n).then(|| format!("g{}", i + 1));
        let arguments: Vec<String> = before.iter().chain(&after).cloned().collect();
        call(&mut log, &arguments, &format!("g{i}"));
        for name in before.iter().chain(&after) {
            release(&mut log, name);
        }
    }
    log
}

fn recomputes(n: usize, budget: u64, heuristic: &str) -> u64 {
    let trace = read_log(network(n).as_bytes()).expect("as written above");
    let options = SimulateOptions {
        heuristic: heuristic.parse().expect("a known form"),
        budget: Some(budget),
        thrash_limit: 100.0,
        ..SimulateOptions::default()
    };
    let result = simulate(&trace, &options);
    assert_eq!(result.status, SimulateStatus::Ok, "{heuristic} on {n}");
    result.recomputes
}

const SIZES: [usize; 4] = [16, 64, 100, 256];

fn square_root_memory_costs_what_the_reference_pays() {
    let extra = |heuristic| SIZES.map(|n| recomputes(n, (2.0 * (n as f64).sqrt()).ceil() as u64, heuristic));
    assert_eq!(extra("dtr"), [8, 49, 80, 230]);
    assert_eq!(extra("dtr-eq"), [8, 49, 80, 230]);
    assert_eq!(extra("dtr-local"), [11, 161, 355, 1982]);
    assert_eq!(extra("lru"), [11, 161, 355, 1982]);
    assert_eq!(extra("msps"), [9, 60, 100, 304]);
}

fn logarithmic_memory_costs_what_the_reference_pays() {
    let extra = |heuristic| SIZES.map(|n| recomputes(n, (n as f64).log2().ceil() as u64, heuristic));
    assert_eq!(extra("dtr"), [57, 196, 325, 1107]);
    assert_eq!(extra("dtr-eq"), [57, 196, 325, 1107]);
    assert_eq!(extra("msps"), [29, 159, 313, 888]);
}
