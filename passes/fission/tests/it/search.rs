//! The search on a small network.

use remat_cost::Device;
use remat_fission::{Axis, Exactness, SearchOptions, apply, search};

use crate::chains::unet;

fn options(device: &Device) -> SearchOptions<'_> {
    let mut options = SearchOptions::new(device);
    options.evaluations = Some(300);
    options
}

#[test]
fn the_peak_of_a_unet_falls_and_every_tiling_of_the_front_computes_the_same() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let net = unet(8, 32);
    let report = search(&net.graph(), &options(&device)).unwrap();
    let (first, last) = (&report.front[0], &report.front[report.front.len() - 1]);
    assert!(first.tiling.stretches.is_empty() && first.time_ppm == 1_000_000);
    assert!(last.peak * 10 < first.peak * 7, "{} of {}", last.peak, first.peak);
    for pair in report.front.windows(2) {
        assert!(pair[0].peak > pair[1].peak && pair[0].time_ppm < pair[1].time_ppm);
    }
    for candidate in &report.front {
        assert!(net.check(&candidate.tiling).is_ok());
    }
}

#[test]
fn the_same_number_of_steps_gives_the_same_front() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let graph = unet(8, 32).graph();
    for evaluations in [1, 40, 120] {
        let mut options = options(&device);
        options.evaluations = Some(evaluations);
        let report = search(&graph, &options).unwrap();
        assert!(report.evaluations <= evaluations);
        assert_eq!(report, search(&graph, &options).unwrap());
    }
}

#[test]
fn what_is_not_allowed_is_not_found() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let graph = unet(8, 32).graph();
    let mut options = options(&device);
    options.axes = vec![Axis::Columns];
    options.tiles = vec![2];
    options.again = false;
    let report = search(&graph, &options).unwrap();
    assert!(report.front.len() > 1);
    for candidate in &report.front {
        assert!(candidate.tiling.again.is_empty());
        for stretch in &candidate.tiling.stretches {
            assert_eq!((stretch.axis, stretch.tiles), (Axis::Columns, 2));
        }
        assert!(apply(&graph, &candidate.tiling, Exactness::Exact { threads: 1 }).is_ok());
    }
    let slowest = report.front[report.front.len() - 1].time_ppm;
    let most = (slowest - 1_000_000) / 2_000;
    options.most_overhead_permille = Some(most);
    let report = search(&graph, &options).unwrap();
    assert!(
        report
            .front
            .iter()
            .all(|candidate| candidate.time_ppm <= 1_000_000 + 1_000 * most)
    );
    let stop = std::sync::atomic::AtomicBool::new(true);
    options.cancelled = Some(&stop);
    let report = search(&graph, &options).unwrap();
    assert!(!report.is_finished && report.front.len() == 1);
}
