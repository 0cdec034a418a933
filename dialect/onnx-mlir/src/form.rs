//! The forms, and their options.

use std::fmt;
use std::str::FromStr;

/// The form of an ONNX model as MLIR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `torch.operator "onnx.…"` over `!torch.vtensor`: what torch-mlir and IREE import.
    Torch,
    /// Ops of the `onnx` dialect in generic form: what onnx-mlir compiles.
    OnnxMlir,
    /// Ops of the `onnx` dialect in generic form, with `remat.recompute` and `remat.dealloc` between them.
    Remat,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Torch, Self::OnnxMlir, Self::Remat];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::OnnxMlir => "onnx-mlir",
            Self::Remat => "remat",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = || Self::ALL.map(Self::name).join("`, `");
        let found = Self::ALL.into_iter().find(|form| form.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a form: known are `{}`", known()))
    }
}

/// The optimization barriers that keep the compiler that reads the `torch` form from merging a recompute with the op it repeats.
///
/// The other forms have one kind each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Barriers {
    /// Ops of IREE around an operand of the recompute. Only IREE reads the result.
    #[default]
    Iree,
    /// Nothing: any reader of the form accepts the text, and its common subexpression elimination undoes the plan.
    None,
}

/// How a model is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The form.
    pub form: Form,
    /// For [`Form::Torch`]: what marks recomputes.
    pub barriers: Barriers,
}

impl Options {
    /// The form with the options that its compilers expect.
    #[must_use]
    pub fn new(form: Form) -> Self {
        Self {
            form,
            barriers: Barriers::default(),
        }
    }
}
