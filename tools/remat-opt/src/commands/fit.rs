//! `remat-opt fit`: whether a training step of PyTorch fits a GPU. It runs a script of Python, so the Python package has it; here it is named.

use std::ffi::OsString;

use anyhow::bail;
use clap::Args;

use crate::args::{Arguments, Talk};

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct FitArgs {
    /// As `remat-opt fit --help` of the Python package says.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

impl Arguments for FitArgs {
    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        bail!(
            "`fit` runs in Python, beside the script that it is asked about: `pip install 'remat-opt[torch]'`, then `remat-opt fit --help`, with `fit` as \
             the first word"
        )
    }
}
