//! Schedules of the networks of the POET paper.

use remat_plan::{Step, StorageId};
use remat_schedule::{PlanPeaks, Schedule, WriteError, encode, plan_of};
use remat_testing::TrainingNet;

use super::{linear, planned};

#[test]
fn a_schedule_of_resnet18_takes_a_few_hundred_bytes() {
    for (device, solver, percent) in [("mkr1000", "capuchin", 60), ("raspberry-pi-4", "paging:recomputes", 60)] {
        let (problem, plan, figures) = planned(TrainingNet::Resnet18Cifar, device, percent, solver);
        let bytes = encode(&problem, &plan, figures, None).unwrap();
        assert!(
            bytes.len() < 550,
            "{} bytes for {} steps",
            bytes.len(),
            plan.steps.len()
        );
        let schedule = Schedule::open(&bytes).unwrap();
        assert_eq!(plan_of(&problem, &schedule), Ok(plan));
        assert!(schedule.peak() <= problem.budget.unwrap());
    }
}

#[test]
fn a_schedule_is_for_one_model() {
    let (problem, plan, figures) = linear();
    let bytes = encode(&problem, &plan, figures, None).unwrap();
    let other = TrainingNet::Vgg16Cifar.problem(&remat_cost::Device::default());
    let error = plan_of(&other, &Schedule::open(&bytes).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schedule is for 27 ops, and `vgg16-cifar` has 81"
    );
}

#[test]
fn steps_that_name_nothing_are_not_written() {
    let (problem, mut plan, _) = linear();
    plan.steps = vec![Step::Free(StorageId::new(problem.storages.len()))];
    let error = encode(&problem, &plan, PlanPeaks::default(), None).unwrap_err();
    assert!(
        matches!(
            error,
            WriteError::Unknown {
                step: 0,
                what: "storage",
                ..
            }
        ),
        "{error}"
    );
    plan.steps = vec![Step::Compute(remat_plan::OpId::new(27))];
    let error = encode(&problem, &plan, PlanPeaks::default(), None).unwrap_err();
    assert!(
        matches!(error, WriteError::Unknown { what: "op", id: 27, .. }),
        "{error}"
    );
}
