//! A plan that is given: the model it was made for, opened again, and the execution order that its file was made for.

use std::path::Path;

use remat::{LoadOptions, Model, Setting, contradiction};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::{ChildLimits, Host};
use remat_plan::PlanFile;

use crate::DeployError;
use crate::bodies::apply::BodyWriter;
use crate::open::open_fused;
use crate::sizes::open_model;

/// Opens a model as it was read when the plan was made. Of `options`, what is set must not contradict the plan. `runtime` is where models run, and how
/// long they may, for plans that are about the graph which it makes of the model.
///
/// # Errors
/// Those of [`Model::open`] and [`LoadOptions::for_plan`]; [`DeployError::FusedPlan`] for a plan that needs the runtime where there is none.
pub fn open_for_plan(
    path: &Path,
    options: &LoadOptions,
    plan: &PlanFile,
    runtime: Option<(&Host, ChildLimits<'_>)>,
) -> Result<Model, DeployError> {
    let load = options.for_plan(plan)?;
    let order = order_for_plan(None, Some(plan))?;
    let setup = plan.setup.as_ref();
    let tiling = setup.and_then(|setup| setup.tiling.as_ref());
    if let Some(by) = setup.and_then(|setup| setup.fused_by.as_ref()) {
        let runtime = runtime.ok_or_else(|| DeployError::FusedPlan { by: by.clone() })?;
        return open_fused(runtime, path, (&load, order), by, plan);
    }
    let writer = BodyWriter { load: &load, order };
    let model = open_model(path, &load, runtime)?;
    let model = writer.bodies_of(&model, plan)?.unwrap_or(model);
    match tiling {
        Some(tiling) => Ok(model.tiled(tiling, &load)?),
        None => Ok(model),
    }
}

/// The execution orders that a file is made for: what is given, else what the file of the plan was made for, else any.
///
/// # Errors
/// `Contradiction` if the plan says something else.
pub fn order_for_plan(given: Option<OrderHint>, plan: Option<&PlanFile>) -> Result<OrderHint, DeployError> {
    let made_for = plan.and_then(|plan| plan.setup.as_ref()?.order_hint.as_deref());
    match (given, made_for) {
        (Some(given), Some(plan)) if given.name() != plan => {
            Err(contradiction(Setting::OrderHint, given.name(), plan).into())
        }
        (Some(given), _) => Ok(given),
        (None, Some("priority")) => Ok(OrderHint::Priority),
        (None, _) => Ok(OrderHint::Any),
    }
}

#[cfg(test)]
mod tests {
    use remat::solver::SolveControl;
    use remat::{ErrorKind, SolveRequest};
    use remat_plan::BudgetSpec;

    use super::*;

    fn model() -> std::path::PathBuf {
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
}
