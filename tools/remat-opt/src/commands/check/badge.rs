//! What a model takes as a badge, in the form of shields.io's endpoint.

use remat_files::document::to_json;
use serde::Serialize;

use super::model::Checked;
use crate::units;

/// <https://shields.io/badges/endpoint-badge>
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Badge {
    schema_version: u32,
    label: &'static str,
    message: String,
    color: &'static str,
}

/// The badge of a model, as JSON: green within its limits, red beyond, blue without any.
pub(super) fn badge(model: &Checked) -> String {
    to_json(&Badge {
        schema_version: 1,
        label: "runs in",
        message: units::bytes(model.bytes()),
        color: match (model.is_exceeded(), model.limit()) {
            (true, _) => "red",
            (false, Some(_)) => "brightgreen",
            (false, None) => "blue",
        },
    })
}
