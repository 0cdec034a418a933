//! What is resident at a step agrees with the trace.

use remat_plan::Plan;
use remat_verify::{replay, resident_at};

use remat_testing::net::{Net, example, op, storage, transient};
use remat_testing::plans::{RECOMPUTING, plan};

#[test]
fn resident_storages_and_workspace_add_up_to_the_trace() {
    let problem = example()
        .with(|problem| {
            let gemm = op(problem, "gemm");
            problem.ops[gemm].workspace = 7;
            problem.paging = Some(remat_testing::net::paging());
        })
        .done();
    let paged = RECOMPUTING.replace("free a, compute relu", "page_out a, compute relu, page_in a, free a");
    let plan = plan(&problem, &paged.replace("compute add", "recompute conv, compute add"));
    // The view is run again after neither the free nor the duplicate is in its way.
    let replay = replay(&problem, &plan).unwrap();
    for at in &replay.trace {
        let bytes: u64 = resident_at(&problem, &plan, at.step)
            .iter()
            .map(|(_, bytes)| bytes)
            .sum();
        let workspace = if at.step == 2 { 7 } else { 0 };
        assert_eq!(bytes + workspace, at.during, "step {}", at.step);
    }
    let left = resident_at(&problem, &plan, plan.steps.len());
    assert_eq!(left, [(storage(&problem, "y"), 100)]);
}

#[test]
fn a_twin_stands_twice() {
    let problem = Net::new().input("x").op("a", 1, &["x"], &[("ta", transient(3))]).done();
    let plan = plan(&problem, "compute a, recompute a");
    let ta = storage(&problem, "ta");
    assert_eq!(resident_at(&problem, &plan, 1), [(ta, 3), (ta, 3)]);
}

#[test]
fn nothing_is_resident_in_an_empty_plan() {
    assert_eq!(resident_at(&example().done(), &Plan::default(), 0), []);
}
