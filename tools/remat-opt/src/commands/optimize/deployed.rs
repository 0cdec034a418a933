//! What is printed of a model that was made for ONNX Runtime.

use remat::deploy::{Check, Deployment};
use remat_files::shown;

use super::report;
use crate::cli::{OptimizeArgs, OrderHintArg};
use crate::units::{bytes, percent};

/// The lines a person wants at the end.
pub(super) fn text(args: &OptimizeArgs, found: &Deployment, seconds: f64) -> String {
    let mut lines = report::plan_lines(&found.model, &found.solution);
    for given_up in &found.abandoned {
        lines.push(format!("given up  {}: {}", given_up.variant, shown(&given_up.why)));
    }
    lines.push(format!(
        "promised  {} in ONNX Runtime with the memory arena off, {} with it ({} in later runs){}",
        bytes(found.promise.peak_bytes),
        bytes(found.promise.arena_bytes),
        bytes(found.promise.arena_steady_bytes),
        if found.promise.follows_plan {
            ""
        } else {
            "; the order is not quite that of the plan"
        },
    ));
    lines.push(format!(
        "          {}: {} clones marked, {} shapes hidden, {} readers, {} reserved",
        found.variant,
        found.lowering.clones,
        found.lowering.hidden,
        found.lowering.readers,
        bytes(found.lowering.reserved),
    ));
    if found.promise.learned_bytes > 0 {
        lines.push(format!(
            "          {} of it learned by measuring: bodies of loops, or layouts that the runtime changes to",
            bytes(found.promise.learned_bytes)
        ));
    }
    match &found.check {
        Some(check) => lines.extend(measured(check)),
        None => lines.push("measured  nothing".to_owned()),
    }
    lines.push(format!("time      {seconds:.2} s"));
    if let Some(output) = &args.output {
        lines.push(format!("written   {}", shown(output.display())));
    }
    lines.extend(advice(args, found));
    lines.join("\n") + "\n"
}

fn measured(check: &Check) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(before), Some(after)) = (check.before.exact, check.after.exact) {
        lines.push(format!(
            "measured  {} -> {} ({:.1} %), outputs bit-identical; time {:+.1} %, {:+.1} % where the arena is off",
            bytes(before),
            bytes(after),
            percent(after, before),
            100.0 * (check.time_ratio - 1.0),
            100.0 * (check.exact_time_ratio - 1.0),
        ));
    } else {
        let why = check.unmeasured.as_deref().unwrap_or("no figure");
        lines.push(format!(
            "measured  time {:+.1} %, outputs bit-identical; memory: {why}",
            100.0 * (check.time_ratio - 1.0)
        ));
    }
    let stock = check.before.stock.zip(check.after.stock);
    let steady = check.before.stock_steady.zip(check.after.stock_steady);
    for (what, figures) in [("first run", stock), ("later runs", steady)] {
        if let Some((before, after)) = figures {
            lines.push(format!(
                "          {} -> {} ({:.1} %) with the memory arena, {what}",
                bytes(before),
                bytes(after),
                percent(after, before)
            ));
        }
    }
    lines
}

/// What the user can set in the runtime to get more.
fn advice(args: &OptimizeArgs, found: &Deployment) -> Vec<String> {
    let mut lines = Vec::new();
    if args.target.order_hint == OrderHintArg::Priority {
        lines.push("in ONNX Runtime set: execution_order = PRIORITY_BASED".to_owned());
    }
    if !found.lowering.hides_shapes {
        lines.push("in ONNX Runtime set: enable_mem_reuse = False (shapes could not be hidden from it)".to_owned());
    }
    let after = found.check.as_ref().map(|check| check.after);
    if let Some((exact, stock)) = after
        .and_then(|after| after.exact.zip(after.stock))
        .filter(|(exact, stock)| stock > exact)
    {
        lines.push(format!(
            "in ONNX Runtime, enable_cpu_mem_arena = False and enable_mem_pattern = False give back {}",
            bytes(stock - exact)
        ));
    }
    lines
}
