//! `remat-opt verify`: replays a plan with the independent checker, or runs a rewritten model beside its original.

use serde_json::json;

use crate::cli::{ReportFormat, VerifyArgs};
use crate::units;

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let extension = args.plan.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        return super::verify_models::run(args);
    }
    let file = super::read_plan(&args.plan)?;
    let mut options = args.load.options(&args.input)?;
    options.accounting = Some(options.accounting.unwrap_or(file.accounting));
    let model = remat::Model::open(&args.input, &options)?;
    let result = remat::check_plan(&model, &file);
    if args.report.format == ReportFormat::Json {
        let report = match &result {
            Ok(solution) => json!({
                "valid": true,
                "peak_bytes": solution.replay.peak,
                "duration": solution.replay.duration,
                "recomputes": solution.plan.recomputes(),
                "violations": [],
            }),
            Err(remat::Error::PlanRejected(rejection)) => json!({
                "valid": false,
                "violations": rejection.violations.iter().map(violation).collect::<Vec<_>>(),
                "suppressed": rejection.suppressed,
            }),
            Err(_) => serde_json::Value::Null,
        };
        if !report.is_null() {
            super::print(&format!("{report:#}\n"))?;
        }
    }
    let solution = result?;
    if args.report.format == ReportFormat::Text {
        let budget = solution
            .problem
            .budget
            .map_or("no budget".to_owned(), |b| format!("budget {}", units::bytes(b)));
        super::print(&format!(
            "valid: peak {} ({budget}), overhead {:+.2} %, {} recomputes in {} steps\n",
            units::bytes(solution.replay.peak),
            solution.overhead.percent(),
            solution.plan.recomputes(),
            solution.plan.steps.len(),
        ))?;
    }
    Ok(())
}

fn violation(violation: &remat::verify::Violation) -> serde_json::Value {
    json!({ "code": violation.code.to_string(), "step": violation.step, "message": violation.message })
}
