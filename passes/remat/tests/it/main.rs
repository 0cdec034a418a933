//! Tests of the pipeline.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod batch;
mod blocks;
mod budgets;
mod compare;
mod device;
mod members;
mod open_dims;
mod outside;
mod pages;
mod pipeline;
mod plans;
mod registry;
mod rivals;
mod support;
mod sweep;
mod tiles;
mod training_steps;
mod truth;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat::ortools::look_in(&remat_testing::ortools());
    remat_testing::run(remat_testing::within([
        ("batch", batch::trials()),
        ("blocks", blocks::trials()),
        ("budgets", budgets::trials()),
        ("compare", compare::trials()),
        ("device", device::trials()),
        ("members", members::trials()),
        ("open_dims", open_dims::trials()),
        ("outside", outside::trials()),
        ("pages", pages::trials()),
        ("pipeline", pipeline::trials()),
        ("plans", plans::trials()),
        ("registry", registry::trials()),
        ("sweep", sweep::trials()),
        ("tiles", tiles::trials()),
        ("truth", truth::trials()),
    ]))
}
