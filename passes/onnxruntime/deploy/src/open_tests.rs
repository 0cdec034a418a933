use remat::solver::SolveControl;
use remat::{ErrorKind, SolveRequest};
use remat_plan::BudgetSpec;

use super::*;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test/models/mlp_tiny_train.onnx")
}

fn plan() -> PlanFile {
    let model = Model::open(&model(), &LoadOptions::default()).expect("the model opens");
    let request = SolveRequest {
        budget: BudgetSpec::None,
        max_overhead: None,
        solver: "search".to_owned(),
    };
    let solution = remat::solve(&model, &request, &SolveControl::new()).expect("there is a plan");
    solution.plan_file(&model)
}

#[test]
fn the_order_that_a_file_was_made_for_is_that_of_the_next_one() {
    let mut file = plan();
    assert_eq!(order_for_plan(None, Some(&file)).ok(), Some(OrderHint::Any));
    file.setup.as_mut().expect("it has one").order_hint = Some("priority".to_owned());
    assert_eq!(order_for_plan(None, Some(&file)).ok(), Some(OrderHint::Priority));
    let error = order_for_plan(Some(OrderHint::Any), Some(&file)).expect_err("it differs");
    assert!(error.to_string().contains("`any` contradicts the plan"), "{error}");
}

#[test]
fn a_plan_for_a_fused_graph_asks_for_the_runtime() {
    let mut file = plan();
    file.setup.as_mut().expect("it has one").fused_by = Some("ONNX Runtime 1.2.3".to_owned());
    let error = open_for_plan(&model(), &LoadOptions::default(), &file, None).expect_err("there is no runtime");
    assert!(error.to_string().contains("ONNX Runtime 1.2.3"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Input);
}
