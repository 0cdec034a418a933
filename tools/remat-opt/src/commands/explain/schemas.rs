//! The schema of every form that `--format json` prints, and of every file that is JSON.

use remat::plan::{PLAN_FORMAT, PlanFile, Problem};
use remat::profile::{PROFILE_FORMAT, ProfileFile};
use remat::{FRONT_FORMAT, FrontFile};
use schemars::{Schema, schema_for};

use crate::commands;
use crate::commands::check::{BASELINE_FORMAT, BaselineFile};
use crate::document::{Body, Document};
use crate::failure::FailureDocument;

use super::report::Report;

/// The schema of each form, by its name; that of a problem, whose file names no form, is the last.
pub(super) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        of::<commands::optimize::Report>(),
        of::<commands::optimize::ModuleReport>(),
        of::<commands::optimize::SettingsReport>(),
        of::<commands::optimize::CudaReport>(),
        of::<commands::inspect::Report>(),
        of::<commands::sweep::Report>(),
        of::<commands::compare::Report>(),
        of::<commands::max_batch::Report>(),
        of::<commands::profile::Report>(),
        of::<commands::check::Report>(),
        of::<commands::verify::Report>(),
        of::<commands::verify::ModelsReport>(),
        of::<commands::place::Report>(),
        of::<commands::simulate::Report>(),
        of::<commands::reduce::Report>(),
        of::<Report>(),
        tagged(FailureDocument::FORMAT, schema_for!(FailureDocument)),
        tagged(BASELINE_FORMAT, schema_for!(BaselineFile)),
        tagged(FRONT_FORMAT, schema_for!(FrontFile)),
        tagged(PLAN_FORMAT, schema_for!(PlanFile)),
        tagged(PROFILE_FORMAT, schema_for!(ProfileFile)),
        ("problem", schema_for!(Problem)),
    ]
}

fn of<B: Body>() -> (&'static str, Schema) {
    let mut schema = schema_for!(Document<'_, B>);
    // What brings a format of its own is written as a file, too, which has no warnings.
    if B::HAS_FORMAT
        && let Some(required) = schema.get_mut("required").and_then(|value| value.as_array_mut())
    {
        required.retain(|name| name != "warnings");
    }
    tagged(B::FORMAT, schema)
}

/// The schema says the one value that `format` has, and is called by it.
fn tagged(format: &'static str, mut schema: Schema) -> (&'static str, Schema) {
    schema.insert("title".to_owned(), format.into());
    if let Some(properties) = schema.get_mut("properties").and_then(|value| value.as_object_mut()) {
        let described = serde_json::json!({ "description": "Name and version of this form.", "const": format });
        properties.insert("format".to_owned(), described);
    }
    if let Some(required) = schema.get_mut("required").and_then(|value| value.as_array_mut())
        && !required.iter().any(|name| name == "format")
    {
        required.insert(0, "format".into());
    }
    (format, schema)
}
