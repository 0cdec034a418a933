//! Training steps whose optimizer updates parameters in place.

use remat_plan::{OpId, OrderMode, Plan, Problem, Step};
use remat_solve::{SolveControl, minimize_peak};
use remat_testing::net::{Net, Place, kept, op, transient};
use remat_verify::replay;

const LAYERS: usize = 6;
const ACTIVATION: u64 = 100;
const GRADIENT: u64 = 150;

/// What becomes of gradients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gradients {
    /// They are graph outputs.
    Outputs,
    /// An update at the end of the step reads each; whoever reads its parameter runs once.
    ReadersRunOnce,
    /// The same, and readers may run again before the update.
    ReadersRunBefore,
}

/// Layers whose activations all wait for the backward pass; `forwardN` and `backN` read the parameter `wN`.
fn step(gradients: Gradients) -> Problem {
    let mut net = Net::new().input("x0");
    for layer in 0..LAYERS {
        net = net.input(&format!("w{layer}"));
    }
    let name = |what: &str, layer: usize| format!("{what}{layer}");
    for layer in 0..LAYERS {
        let (x, w, y) = (name("x", layer), name("w", layer), name("x", layer + 1));
        net = net.op(&name("forward", layer), 10, &[&x, &w], &[(&y, transient(ACTIVATION))]);
    }
    let loss = name("x", LAYERS);
    net = net.op("loss", 1, &[&loss], &[(&name("d", LAYERS), transient(ACTIVATION))]);
    let is_output = gradients == Gradients::Outputs;
    for layer in (0..LAYERS).rev() {
        let (x, w) = (name("x", layer), name("w", layer));
        let (d, before, g) = (name("d", layer + 1), name("d", layer), name("g", layer));
        let made = if is_output { kept(GRADIENT) } else { transient(GRADIENT) };
        net = net.op(&name("gradient", layer), 10, &[&x, &d], &[(&g, made)]);
        net = net.op(&name("back", layer), 10, &[&d, &w], &[(&before, transient(ACTIVATION))]);
    }
    if is_output {
        return net.done();
    }
    for layer in 0..LAYERS {
        let (w, g, new) = (name("w", layer), name("g", layer), name("new", layer));
        let (forward, back, update) = (name("forward", layer), name("back", layer), name("update", layer));
        net = net.op(&update, 1, &[&w, &g], &[(&new, Place::View(&w))]);
        net = net.with(|problem| {
            let id = op(problem, &update);
            problem.ops[id].recomputable = false;
            if gradients == Gradients::ReadersRunOnce {
                for reader in [&forward, &back].map(|reader| op(problem, reader)) {
                    problem.ops[reader].recomputable = false;
                }
            }
        });
        net = net.never_after(&forward, &update).never_after(&back, &update);
    }
    net.done()
}

fn lowest(problem: &Problem) -> (u64, Plan) {
    let control = SolveControl::new().step_limit(100_000);
    let outcome = minimize_peak(problem, None, &control);
    let plan = outcome.plan.expect("there is always a plan");
    let replayed = replay(problem, &plan).expect("the plan is valid");
    (replayed.peak, plan)
}

#[test]
fn gradients_die_at_their_update_and_activations_are_recomputed_before_it() {
    let [outputs, once, (before, plan)] = [
        Gradients::Outputs,
        Gradients::ReadersRunOnce,
        Gradients::ReadersRunBefore,
    ]
    .map(|gradients| lowest(&step(gradients)));
    // All gradients at once; all activations at once; neither.
    assert!(outputs.0 >= LAYERS as u64 * GRADIENT, "{}", outputs.0);
    assert!(once.0 >= LAYERS as u64 * ACTIVATION, "{}", once.0);
    assert!(before < outputs.0.min(once.0), "{before}");
    assert!(plan.steps.iter().any(|step| matches!(step, Step::Recompute(_))));
}

#[test]
fn in_fixed_order_readers_run_again_before_the_updates_at_the_end() {
    let mut problem = step(Gradients::ReadersRunBefore);
    problem.order = OrderMode::Fixed;
    let (_, plan) = lowest(&problem);
    let place = |wanted: OpId| plan.runs().position(|op| op == wanted);
    let first_update = place(op(&problem, "update0"));
    let last = plan
        .runs()
        .enumerate()
        .filter(|&(_, run)| run == op(&problem, "forward0"))
        .last();
    assert!(last.map(|(at, _)| at) < first_update);
}
