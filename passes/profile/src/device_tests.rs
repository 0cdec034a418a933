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

#[test]
fn a_table_with_an_unknown_class_or_field_is_rejected() {
    let table = "device = []\n[efficiency.cpu]\nconv = { compute_permille = 1, memory_permille = 1 }\n";
    assert!(parse(table).is_ok());
    assert!(parse(&table.replace("conv", "convolution")).is_err());
    assert!(parse(&table.replace("memory_permille", "memory")).is_err());
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
    ");
}
