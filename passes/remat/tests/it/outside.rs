//! `auto` on the graphs of the papers, and with a second memory on exported training steps.

use crate::rivals::assert_auto_wins;
use crate::training_steps::{assert_planned, training_steps};
use remat::{LoadOptions, Model};
use remat_testing::{Need, Trial, trial, workspace};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(
            auto_is_never_worse_than_a_rival_on_the_graphs_of_the_papers,
            Need::Graphs
        ),
        trial!(
            exported_training_steps_are_planned_within_budget_and_deadline,
            Need::Models
        ),
    ]
}

fn auto_is_never_worse_than_a_rival_on_the_graphs_of_the_papers() {
    // The larger ones are for the benchmarks.
    for name in ["cm_vgg16_train", "cm_fcn8_train", "cm_mobilenet_train", "rl_n100"] {
        let path = workspace().join("../shared/graphs").join(name).with_extension("json");
        let model = Model::open(&path, &LoadOptions::default()).expect("the graph opens");
        assert_auto_wins(&model, &["90%", "70%"], 1_000, 0);
    }
}

fn exported_training_steps_are_planned_within_budget_and_deadline() {
    let paths = training_steps(&workspace().join("../shared/models"));
    assert!(!paths.is_empty());
    for path in paths {
        assert_planned(&path);
    }
}
