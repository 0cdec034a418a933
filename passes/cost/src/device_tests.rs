use super::*;

#[test]
fn every_preset_names_its_source_and_an_efficiency_family() {
    for device in Device::presets() {
        assert!(!device.source.is_empty(), "{}", device.name);
        assert!(!device.efficiencies.is_empty(), "{}", device.name);
        assert!(device.launch_ns > 0 && device.memory_bytes_per_s > 0, "{}", device.name);
        assert!(device.alignment.is_power_of_two(), "{}", device.name);
    }
}

#[test]
fn presets_are_found_by_name_and_names_are_unique() {
    for device in Device::presets() {
        assert_eq!(Device::preset(&device.name).as_ref(), Some(device));
    }
    assert_eq!(Device::preset("abacus"), None);
    assert_eq!(Device::default().name, Device::DEFAULT);
}

#[test]
fn nothing_reaches_more_than_the_peak() {
    for device in Device::presets() {
        for &class in KernelClass::ALL {
            let efficiency = device.efficiency(class);
            assert!(
                (1..=1_000).contains(&efficiency.compute_permille),
                "{} {class:?}",
                device.name
            );
            assert!(
                (1..=1_000).contains(&efficiency.memory_permille),
                "{} {class:?}",
                device.name
            );
        }
    }
}

/// A board of one's own.
const BOARD: &str = r#"
[[device]]
name = "my-board"
description = "a board with 64 KB and an SD card"
source = "measured"
family = "as-measured"
peak = { bits64 = 1_000, bits32 = 2_000, bits16 = 2_000, bits8 = 2_000 }
memory_bytes_per_s = 1_000_000
vector_bytes = 4
launch_ns = 0
view_ns = 0
alignment = 4
cpu_kernels = false
memory_bytes = 65_536
energy = { fj_per_operation = 1_000 }

[device.second_memory]
mode = "sync"
page_out = { bytes_per_s = 1_000 }
page_in = { latency_ns = 5, bytes_per_s = 2_000, energy_pj_per_byte = 7 }

[efficiency.mine]
conv = { compute_permille = 1_000, memory_permille = 10 }
"#;

#[test]
fn a_table_of_ones_own_adds_devices() {
    let devices = Device::from_table(BOARD).unwrap();
    let [board] = &devices[..] else { panic!("{devices:?}") };
    assert_eq!((board.name.as_str(), board.memory_bytes), ("my-board", Some(65_536)));
    assert_eq!(board.second_memory.unwrap().page_in.energy_pj_per_byte, 7);
    assert_eq!(board.efficiency(KernelClass::Conv).compute_permille, 1_000);
    let mine = Device::from_table(&BOARD.replace("as-measured", "mine")).unwrap();
    assert_eq!(mine[0].efficiency(KernelClass::Conv).memory_permille, 10);
    assert_eq!(Device::from_table(""), Ok(Vec::new()));
}

#[test]
fn a_device_is_had_back_from_its_figures() {
    let board = Device::from_table(BOARD).unwrap().remove(0);
    for device in Device::presets().iter().chain([&board]) {
        assert_eq!(
            Device::from_figures(&device.figures()).as_ref(),
            Ok(device),
            "{}",
            device.name
        );
    }
}

#[test]
fn figures_that_no_device_has_are_refused() {
    let figures = Device::from_table(BOARD).unwrap()[0].figures();
    let with = |key: &str, value: serde_json::Value| {
        let mut figures = figures.clone();
        figures[key] = value;
        Device::from_figures(&figures).unwrap_err().to_string()
    };
    assert!(with("alignment", 5.into()).contains("`alignment` of device `my-board` must be a power of two"));
    assert!(with("color", "red".into()).contains("color"));
    assert!(with("efficiencies", 7.into()).contains("line"));
    assert!(Device::from_figures(&"cpu".into()).is_err());
}

#[test]
fn mistakes_in_a_table_are_told_with_key_and_line() {
    let mistakes = [
        ("peak =", "peaks ="),
        ("view_ns = 0\n", ""),
        ("alignment = 4", "alignment = \"four\""),
        ("alignment = 4", "alignment = 6"),
        ("bits8 = 2_000", "bits8 = 0"),
        ("memory_bytes_per_s = 1_000_000", "memory_bytes_per_s = -1"),
        ("bytes_per_s = 2_000", "bytes_per_s = 0"),
        ("mode = \"sync\"", "mode = \"always\""),
        ("\"as-measured\"", "\"theirs\""),
        ("my-board", "mkr1000"),
        ("source = \"measured\"", "source = \"\""),
        ("conv =", "convolution ="),
        ("memory_permille = 10 ", "memory_permille = 1_001 "),
        ("[[device]]", "[[device]"),
    ];
    let told = mistakes.map(|(right, wrong)| {
        let table = BOARD.replacen(right, wrong, 1);
        assert_ne!(table, BOARD, "{right}");
        Device::from_table(&table).unwrap_err().to_string()
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_device_table_reads() {
    let row = |device: &Device| {
        let Device {
            name,
            peak,
            memory_bytes_per_s,
            launch_ns,
            alignment,
            ..
        } = device;
        let Peak {
            bits64,
            bits32,
            bits16,
            bits8,
        } = peak;
        let giga = |value: u64| value as f64 / 1e9;
        format!(
            "{name}: {} / {} / {} / {} Gop/s, {} GB/s, launch {launch_ns} ns, aligned to {alignment}",
            giga(*bits64),
            giga(*bits32),
            giga(*bits16),
            giga(*bits8),
            giga(*memory_bytes_per_s),
        )
    };
    let rows: Vec<String> = Device::presets().iter().map(row).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    cpu: 59.2 / 118.4 / 118.4 / 236.8 Gop/s, 100 GB/s, launch 2500 ns, aligned to 64
    cpu-4: 236.8 / 473.6 / 473.6 / 947.2 Gop/s, 250 GB/s, launch 6000 ns, aligned to 64
    cortex-a76: 19.2 / 38.4 / 76.8 / 153.6 Gop/s, 30 GB/s, launch 5000 ns, aligned to 64
    cortex-m7: 0.14 / 0.96 / 1.92 / 1.92 Gop/s, 1.92 GB/s, launch 2000 ns, aligned to 16
    a100: 9700 / 19500 / 312000 / 624000 Gop/s, 2039 GB/s, launch 5000 ns, aligned to 256
    h100: 34000 / 67000 / 989000 / 1979000 Gop/s, 3350 GB/s, launch 4000 ns, aligned to 256
    h200: 34000 / 67000 / 989000 / 1979000 Gop/s, 4800 GB/s, launch 4000 ns, aligned to 256
    apple-m2: 100 / 3600 / 3600 / 3600 Gop/s, 100 GB/s, launch 10000 ns, aligned to 256
    mkr1000: 0.00008 / 0.000166667 / 0.000166667 / 0.000166667 Gop/s, 0.192 GB/s, launch 2000 ns, aligned to 4
    nrf52840: 0.00064 / 0.006369832 / 0.006369832 / 0.006369832 Gop/s, 0.256 GB/s, launch 2000 ns, aligned to 4
    raspberry-pi-4: 1 / 2 / 2 / 2 Gop/s, 12.8 GB/s, launch 5000 ns, aligned to 64
    raspberry-pi-4-uncached: 1 / 2 / 2 / 2 Gop/s, 12.8 GB/s, launch 5000 ns, aligned to 64
    jetson-tx2: 20.8 / 665.6 / 1331.2 / 1331.2 Gop/s, 59.7 GB/s, launch 10000 ns, aligned to 256
    desktop: 1152 / 2304 / 2304 / 4608 Gop/s, 500 GB/s, launch 8000 ns, aligned to 64
    ");
}

#[test]
fn energy_is_rounded_to_picojoules_and_nothing_where_it_is_not_known() {
    let device = |energy| Device {
        energy,
        ..Device::default()
    };
    let energy = Energy {
        fj_per_operation: 300,
        fj_per_byte: 100,
    };
    assert_eq!(device(Some(energy)).energy_pj(4, 2), 1);
    assert_eq!(device(Some(energy)).energy_pj(4, 3), 2);
    assert_eq!(
        device(Some(energy)).energy_pj(u64::MAX, u64::MAX),
        7_378_697_629_483_820_646
    );
    assert_eq!(device(None).energy_pj(u64::MAX, 1), 0);
}

#[test]
fn second_memories_read() {
    let row = |device: &Device| {
        let paging = device.second_memory?;
        let way = |way: remat_plan::Transfer| {
            let mega = way.bytes_per_s as f64 / 1e6;
            let nano = way.energy_pj_per_byte as f64 / 1e3;
            format!("{mega} MB/s after {} us at {nano} nJ/B", way.latency_ns / 1_000)
        };
        let per_operation = device.energy?.fj_per_operation as f64 / 1e6;
        let (name, mode) = (&device.name, paging.mode);
        let (out, back) = (way(paging.page_out), way(paging.page_in));
        Some(format!(
            "{name}: {per_operation} nJ per operation, {mode:?}, out {out}, in {back}"
        ))
    };
    let rows: Vec<String> = Device::presets().iter().filter_map(row).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    h200: 0.010448 nJ per operation, Dma, out 55000 MB/s after 10 us at 0.16 nJ/B, in 55000 MB/s after 10 us at 0.16 nJ/B
    mkr1000: 396 nJ per operation, Sync, out 4.44 MB/s after 113 us at 74.324 nJ/B, in 4.61651 MB/s after 109 us at 71.483 nJ/B
    nrf52840: 1.7241 nJ per operation, Sync, out 4.44 MB/s after 113 us at 74.324 nJ/B, in 4.61651 MB/s after 109 us at 71.483 nJ/B
    raspberry-pi-4: 24.928 nJ per operation, Dma, out 24.5 MB/s after 18 us at 6.122 nJ/B, in 45.5 MB/s after 5 us at 3.297 nJ/B
    raspberry-pi-4-uncached: 1.5 nJ per operation, Dma, out 17.1 MB/s after 4235 us at 184.211 nJ/B, in 45.5 MB/s after 5 us at 69.231 nJ/B
    jetson-tx2: 0.001918 nJ per operation, Dma, out 94.37 MB/s after 2396 us at 3.274 nJ/B, in 108.5 MB/s after 540 us at 2.848 nJ/B
    desktop: 0.073785 nJ per operation, Dma, out 6900 MB/s after 30 us at 0.87 nJ/B, in 7450 MB/s after 60 us at 0.805 nJ/B
    ");
}
