//! Every network has the figures of the published program.

use remat_plan::{Structure, baseline};
use remat_verify::replay;

use super::*;

/// Nodes, edges, peak of the layers in their order, the most that one layer needs, and operations to four digits.
const FIGURES: [(TrainingNet, usize, usize, u64, u64, &str); 5] = [
    (TrainingNet::Linear, 27, 51, 7_416, 3_256, "2.643e5"),
    (TrainingNet::Resnet18Cifar, 133, 269, 2_453_760, 262_144, "3.165e8"),
    (TrainingNet::Vgg16Cifar, 81, 159, 2_465_832, 1_048_576, "1.995e9"),
    (TrainingNet::Transformer, 19, 37, 37_748_736, 31_457_280, "4.789e9"),
    (TrainingNet::Bert, 195, 411, 383_778_816, 31_457_280, "5.525e10"),
];

#[test]
fn nodes_edges_peak_bottleneck_and_operations_are_those_of_the_published_program() {
    for (net, nodes, edges, peak, bottleneck, operations) in FIGURES {
        let problem = net.problem(&Device::default());
        assert_eq!(problem.validate(), Ok(()));
        let read: usize = problem.ops.iter().map(|op| op.reads.len()).sum();
        let most = problem.bottleneck(&Structure::of(&problem)).unwrap().bytes;
        let found = replay(&problem, &baseline(&problem)).unwrap().peak;
        let name = net.name();
        assert_eq!(
            (problem.ops.len(), read, found, most),
            (nodes, edges, peak, bottleneck),
            "{name}"
        );
        assert_eq!(format!("{:.3e}", net.operations() as f64), operations, "{name}");
    }
}

/// Seconds and joules of a step, as the paper's device models have them.
#[test]
fn time_and_energy_on_the_papers_devices_are_those_of_its_models() {
    let figures = [
        (TrainingNet::Linear, "mkr1000", 1.586, 0.1047),
        (TrainingNet::Resnet18Cifar, "mkr1000", 1899.0, 125.3),
        (TrainingNet::Resnet18Cifar, "nrf52840", 49.7, 0.5457),
        (TrainingNet::Resnet18Cifar, "raspberry-pi-4", 0.158, 7.89),
        (TrainingNet::Bert, "raspberry-pi-4", 27.6, 1377.0),
    ];
    for (net, device, seconds, joules) in figures {
        let problem = net.problem(&Device::preset(device).unwrap());
        let is_near = |found: u64, unit: f64, expected: f64| (found as f64 / unit / expected - 1.0).abs() < 2e-3;
        let (time, energy) = (problem.total_duration(), problem.total_energy());
        assert!(is_near(time, 1e9, seconds), "{} on {device}: {time} ns", net.name());
        assert!(is_near(energy, 1e12, joules), "{} on {device}: {energy} pJ", net.name());
    }
}

#[test]
fn networks_are_found_by_their_names_and_no_others_are() {
    for net in TrainingNet::ALL {
        assert_eq!(TrainingNet::by_name(net.name()), Some(net));
    }
    assert_eq!(TrainingNet::by_name("alexnet"), None);
}
