//! What is printed of settings that were tried.

use remat_onnxruntime_deploy::{Setting, SettingTried, SettingsTried};

use crate::units::bytes;

/// A line for each setting, what is recommended, and the program that makes a session with it.
pub(super) fn lines(settings: &SettingsTried) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        "tried     bytes of heap, and by how much the process grows: first run, later runs (predicted)".to_owned(),
    ];
    lines.extend(settings.tried.iter().map(line));
    lines.push(format!("settings  {}", verdict(settings)));
    lines.push(String::new());
    lines.push(settings.python.trim_end().to_owned());
    lines
}

fn line(tried: &SettingTried) -> String {
    let (measured, predicted) = (&tried.measured, &tried.predicted);
    let heap = figures([
        (measured.heap_first_bytes, predicted.heap_first_bytes),
        (measured.heap_later_bytes, predicted.heap_later_bytes),
    ]);
    let growth = figures([
        (measured.resident_first_bytes, predicted.resident_first_bytes),
        (measured.resident_later_bytes, predicted.resident_later_bytes),
    ]);
    format!("          {}: heap {heap}; growth {growth}", name(tried))
}

/// Measured bytes, each with the predicted ones where there are any.
fn figures(runs: [(Option<u64>, Option<u64>); 2]) -> String {
    let known = |figure: Option<u64>| figure.map_or_else(|| "?".to_owned(), bytes);
    let both = runs.map(|(measured, predicted)| {
        let predicted = predicted.map(|predicted| format!(" ({})", bytes(predicted)));
        known(measured) + &predicted.unwrap_or_default()
    });
    both.join(", ")
}

fn name(tried: &SettingTried) -> String {
    let first = tried.options.environment_arena;
    let first = first.and_then(|arena| arena.initial_chunk_size_bytes);
    match tried.setting {
        Setting::Default => "the defaults".to_owned(),
        Setting::PatternOff => "memory pattern off".to_owned(),
        Setting::ArenaOff => "memory arena and pattern off".to_owned(),
        Setting::SharedAsRequested => "arena of the environment that grows as requested".to_owned(),
        Setting::SharedFirstRegion => format!(
            "arena of the environment, first region of {}",
            bytes(first.unwrap_or(0))
        ),
    }
}

/// What is recommended, beside the defaults.
fn verdict(settings: &SettingsTried) -> String {
    let grows = |setting: Setting| settings.of(setting).and_then(|tried| tried.measured.growth());
    let best = settings.of(settings.recommended);
    match (best, grows(settings.recommended), grows(Setting::Default)) {
        (Some(best), Some(growth), Some(stock)) if best.setting != Setting::Default => format!(
            "{}: the process grows by {} instead of {}",
            name(best),
            bytes(growth),
            bytes(stock)
        ),
        _ => "the defaults: with none that was tried does the process grow by less".to_owned(),
    }
}
