//! Runs `test/filetests/rewrite/*.remat`: a graph, a plan, and the rewritten graph or the error.
//!
//! ```text
//! graph "g" { ... }
//!
//! // plan: paper reserved NAME ...      (both words may be missing; `placed`: in a block, each interval above those before)
//! compute a
//! free b
//!
//! // rewritten:                         (or `// error:`)
//! graph "g" { ... }
//! ```
//!
//! With `REMAT_BLESS=1` the last part is written instead of compared.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "it/support.rs"]
#[expect(dead_code, reason = "the tests beside these use the rest")]
mod support;

use std::path::Path;

use remat_ir::{Graph, OpId};
use remat_plan::{Accounting, Block, BlockPlacement, PlacedInterval};
use remat_rewrite::rewrite_placed;
use remat_testing::plans::plan;
use remat_verify::{Interval, intervals};
use support::problem;

const PLAN: &str = "// plan:";
const REWRITTEN: &str = "// rewritten:";
const ERROR: &str = "// error:";

/// What the plan makes of the graph: the last part of the file.
fn outcome(graph: &str, options: &str, steps: &str) -> datatest_stable::Result<String> {
    let (accounting, reserved) = options.split_once("reserved").unwrap_or((options, ""));
    let is_placed = accounting.trim() == "placed";
    let accounting = match accounting.trim() {
        "" | "placed" => Accounting::Runtime,
        "paper" => Accounting::Paper,
        other => return Err(format!("unknown accounting `{other}`").into()),
    };
    let reserved: Vec<&str> = reserved.split_whitespace().collect();
    let graph = Graph::parse(graph)?;
    let mut problem = problem(&graph, accounting, |_| 0);
    if is_placed {
        problem.ops[OpId::new(0)].workspace = 24;
    }
    let plan = plan(
        &problem,
        &steps
            .split_whitespace()
            .collect::<Vec<_>>()
            .chunks(2)
            .map(|step| step.join(" "))
            .collect::<Vec<_>>()
            .join(","),
    );
    let checked = remat_verify::replay(&problem, &plan);
    let replay = checked.as_ref().ok().filter(|_| is_placed);
    let placement = replay.map(|replay| stacked(&intervals(&problem, &plan, replay)));
    match rewrite_placed(&graph, &problem, &plan, placement.as_ref(), &|name| {
        reserved.contains(&name)
    }) {
        Ok(new) => {
            checked?;
            Ok(format!("{REWRITTEN}\n{new}"))
        }
        Err(_) if checked.is_ok() => Err("the checker accepts the plan".into()),
        Err(error) => Ok(format!("{ERROR}\n{error}\n")),
    }
}

/// Every interval above the ones before.
fn stacked(needed: &[Interval]) -> BlockPlacement {
    const ALIGNMENT: u64 = 8;
    let mut end: u64 = 0;
    let place = |interval: &Interval| {
        let offset = end;
        end = (offset + interval.bytes).next_multiple_of(ALIGNMENT);
        PlacedInterval {
            step: interval.steps.start,
            what: interval.what,
            offset,
        }
    };
    let intervals = needed.iter().map(place).collect();
    BlockPlacement {
        block: Block {
            bytes: end,
            alignment: ALIGNMENT,
            outputs_bytes: None,
            certificate: None,
        },
        intervals,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the harness hands the text over")]
fn behaves_as_it_says(path: &Path, text: String) -> datatest_stable::Result<()> {
    let (graph, rest) = text.split_once(PLAN).ok_or("no plan")?;
    let (options, rest) = rest.split_once('\n').ok_or("no steps")?;
    let end = [REWRITTEN, ERROR].iter().filter_map(|mark| rest.find(mark)).min();
    let end = end.ok_or("neither a rewritten graph nor an error")?;
    let (steps, expected) = rest.split_at(end);
    let graph_text: String = graph
        .lines()
        .filter(|line| !line.starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let found = outcome(graph_text.trim(), options, steps)?;
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("REMAT_BLESS").is_some() {
        let kept = &text[..text.len() - expected.len()];
        return Ok(std::fs::write(path, format!("{kept}{found}"))?);
    }
    Err(format!("expected {expected}\nfound {found}").into())
}

datatest_stable::harness! {
    { test = behaves_as_it_says, root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/filetests/rewrite"), pattern = r".*\.remat$" },
}
