//! What `--format json` prints: one object, with the name and version of its form, warnings, and what went wrong.
//!
//! Every form has a schema in `docs/schema`. A version changes when a field is renamed, removed or means something else; new fields do
//! not change it.

use remat::{FRONT_FORMAT, FrontFile};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use crate::commands;
use crate::console;
use crate::failure::{FailureBody, FailureDocument};

/// What one command reports.
pub(crate) trait Body: Serialize + JsonSchema {
    /// Name and version of its form, the value of the field `format`.
    const FORMAT: &'static str;
    /// Whether the body brings that field itself.
    const HAS_FORMAT: bool = false;
}

/// A report.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document<B> {
    /// Name and version of this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(flatten)]
    body: B,
    /// What was said as a warning on the way.
    warnings: Vec<String>,
    /// Why the exit status is not 0 although there is a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody>,
}

impl<B: Body> Document<B> {
    pub(crate) fn new(body: B, error: Option<FailureBody>) -> Self {
        Self {
            format: (!B::HAS_FORMAT).then_some(B::FORMAT),
            body,
            warnings: console::warnings_so_far(),
            error,
        }
    }
}

/// The schema of each form, by its name; that of the front, which `sweep -o` writes, is among them.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        of::<commands::optimize::Report>(),
        of::<commands::optimize::ModuleReport>(),
        of::<commands::inspect::Report>(),
        of::<commands::sweep::Report>(),
        of::<commands::compare::Report>(),
        of::<commands::max_batch::Report>(),
        of::<commands::profile::Report>(),
        of::<commands::verify::Report>(),
        of::<commands::verify_models::Report>(),
        of::<commands::simulate::Report>(),
        of::<commands::reduce::Report>(),
        of::<commands::explain::Report>(),
        tagged(FailureDocument::FORMAT, schema_for!(FailureDocument)),
        tagged(FRONT_FORMAT, schema_for!(FrontFile)),
    ]
}

fn of<B: Body>() -> (&'static str, Schema) {
    let mut schema = schema_for!(Document<B>);
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
