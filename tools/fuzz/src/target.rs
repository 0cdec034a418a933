//! Which targets there are.

use crate::{arena, device, graph, log, nodelink, onnx, plan, problem, profile, schedule};

/// What bytes of a target look like, for what changes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Any bytes.
    Bytes,
    /// Lines of text.
    Text,
    /// One JSON document.
    Json,
    /// An ONNX model.
    Onnx,
}

/// A reader with everything that follows it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, that of its corpus and of its binary.
    pub name: &'static str,
    /// The form of its inputs.
    pub form: Form,
    /// Where seeds lie besides those of its own, from the root of the repository: folders and files.
    pub seeds: &'static [&'static str],
    /// What is done with an input; returns whether the reader accepted it. Panics where an invariant does not hold.
    pub body: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "onnx_import",
        form: Form::Onnx,
        seeds: &["test/models/features"],
        body: onnx::import,
    },
    Target {
        name: "onnx_export",
        form: Form::Onnx,
        seeds: &["test/models/features"],
        body: onnx::export,
    },
    Target {
        name: "shape_inference",
        form: Form::Onnx,
        seeds: &["test/models/features"],
        body: onnx::shapes,
    },
    Target {
        name: "problem",
        form: Form::Json,
        seeds: &[],
        body: problem::body,
    },
    Target {
        name: "plan",
        form: Form::Json,
        seeds: &["test/plans/valid", "test/plans/invalid"],
        body: plan::body,
    },
    Target {
        name: "node_link",
        form: Form::Json,
        seeds: &["test/cli/training_chain.json"],
        body: nodelink::body,
    },
    Target {
        name: "text",
        form: Form::Text,
        seeds: &["test/filetests/ir"],
        body: graph::body,
    },
    Target {
        name: "arena_plan",
        form: Form::Text,
        seeds: &[],
        body: arena::body,
    },
    Target {
        name: "log",
        form: Form::Text,
        seeds: &["test/dtr-logs", "test/dtr-logs/invalid"],
        body: log::body,
    },
    Target {
        name: "profile",
        form: Form::Json,
        seeds: &[],
        body: profile::body,
    },
    Target {
        name: "device",
        form: Form::Text,
        seeds: &["passes/cost/src/devices.toml"],
        body: device::body,
    },
    Target {
        name: "schedule",
        form: Form::Bytes,
        seeds: &[],
        body: schedule::body,
    },
];
