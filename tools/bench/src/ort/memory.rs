//! By how much processes grow, and their heap: as a model came, and rewritten under the defaults, under the settings that are recommended for it,
//! and with a plan of its memory. What is predicted stands beside what was measured.

use std::path::Path;
use std::time::Duration;

use remat::LoadOptions;
use remat::solver::SolveControl;
use remat_formula::Ranges;
use remat_onnxruntime_deploy::{
    ArenaPlanRequest, ArenaPlanned, DeployError, Deployment, InferredSizes, Setting, SettingBytes, SettingsRequest,
    SettingsTried, plan_arena, try_settings,
};
use remat_onnxruntime_run::{
    ChildLimits, Host, MeasureOptions, Measurement, OptimizationLevel, SessionSettings, measure,
};

/// The columns. Bytes are above the loaded session, in the first run and in later ones.
pub(super) const HEADER: &[&str] = &[
    "model",
    "settings",
    "heap: predicted MB",
    "heap: measured MB",
    "process grows: predicted MB",
    "process grows: measured MB",
];

/// The columns for users: by how much the process grows as measured, in the first run and in later ones.
pub(super) const BRIEF_HEADER: &[&str] = &["model", "original", "rewritten", "`--settings`", "planned memory"];

/// Limits of a process that measures.
const LIMITS: ChildLimits<'static> = ChildLimits {
    time: Some(Duration::from_secs(300)),
    cancel: None,
};

const LEVEL: OptimizationLevel = OptimizationLevel::All;

/// What was found out of the memory of a written model.
pub(super) struct Memory {
    before: Measurement,
    settings: SettingsTried,
    arena: ArenaPlanned,
}

impl Memory {
    /// Measures the original model where nothing is set, tries settings on the file that was written, and plans its memory.
    ///
    /// # Errors
    /// If it does not run, or not as planned.
    pub(super) fn of(
        (input, written): (&Path, &Path),
        load: &LoadOptions,
        found: &Deployment,
        host: &Host,
    ) -> Result<Self, DeployError> {
        let control = SolveControl::new();
        let settings = SettingsRequest {
            model: written,
            level: LEVEL,
            dims: &load.dims,
            limits: LIMITS,
            predicted: found.prediction.peak_bytes,
            is_slow_without_arena: found.arena_off().is_some_and(|off| off.is_slow()),
        };
        Ok(Self {
            before: as_it_came(input, load, host)?,
            settings: try_settings(&settings, host, &control)?,
            arena: planned((input, written), load, true, host)?,
        })
    }

    /// A row for each way to run the model.
    pub(super) fn rows(&self, model: &str) -> Vec<Vec<String>> {
        let row = |settings: &str, predicted: SettingBytes, measured: SettingBytes| {
            let pair = |first, later| format!("{}, {}", megabytes(first), megabytes(later));
            vec![
                model.to_owned(),
                settings.to_owned(),
                pair(predicted.heap_first_bytes, predicted.heap_later_bytes),
                pair(measured.heap_first_bytes, measured.heap_later_bytes),
                pair(predicted.resident_first_bytes, predicted.resident_later_bytes),
                pair(measured.resident_first_bytes, measured.resident_later_bytes),
            ]
        };
        let mut rows = vec![row(
            "original, defaults",
            SettingBytes::default(),
            SettingBytes::of(&self.before),
        )];
        let tried = |setting| self.settings.of(setting);
        let best = self.settings.recommended;
        rows.extend(tried(Setting::Default).map(|tried| row("rewritten, defaults", tried.predicted, tried.measured)));
        rows.extend(tried(best).map(|tried| {
            let name = format!("rewritten, `--settings`: {}", called(tried.setting));
            row(&name, tried.predicted, tried.measured)
        }));
        let (predicted, measured) = self.planned();
        rows.push(row("rewritten, planned memory", predicted, measured));
        rows
    }

    /// What is predicted and measured with a plan. Its block is no part of the heap, and counts as such here.
    fn planned(&self) -> (SettingBytes, SettingBytes) {
        let arena = &self.arena.measured;
        let heap = Some(arena.block_bytes + arena.outside_bytes);
        let grows = heap.map(|heap| heap + arena.code_bytes);
        let predicted = SettingBytes {
            heap_first_bytes: Some(arena.block_bytes),
            heap_later_bytes: Some(arena.block_bytes),
            resident_first_bytes: grows,
            resident_later_bytes: grows,
        };
        let measured = SettingBytes {
            heap_first_bytes: heap,
            heap_later_bytes: heap,
            resident_first_bytes: arena.resident_first_bytes,
            resident_later_bytes: arena.resident_later_bytes,
        };
        (predicted, measured)
    }

    /// The row for users.
    pub(super) fn brief(&self, model: &str) -> Vec<String> {
        let growth = |bytes: SettingBytes| {
            let [first, later] = [bytes.resident_first_bytes, bytes.resident_later_bytes].map(megabytes);
            format!("{first}, {later}")
        };
        let of = |setting| {
            let tried = self.settings.of(setting);
            growth(tried.map(|tried| tried.measured).unwrap_or_default())
        };
        vec![
            model.to_owned(),
            growth(SettingBytes::of(&self.before)),
            of(Setting::Default),
            of(self.settings.recommended),
            growth(self.planned().1),
        ]
    }
}

/// What a model takes where nothing is set.
///
/// # Errors
/// If it does not run.
pub(super) fn as_it_came(input: &Path, load: &LoadOptions, host: &Host) -> Result<Measurement, DeployError> {
    let stock = SessionSettings {
        dims: load.dims.clone(),
        ..SessionSettings::stock()
    };
    Ok(measure(
        &host.runner(LIMITS),
        input,
        &stock,
        &MeasureOptions::default(),
    )?)
}

/// Plans the memory of a file that was written, and measures it: with the bits of the original or, where it was written so, near them.
///
/// # Errors
/// If it does not run, or not as planned.
pub(super) fn planned(
    (input, written): (&Path, &Path),
    load: &LoadOptions,
    keeps_bits: bool,
    host: &Host,
) -> Result<ArenaPlanned, DeployError> {
    let request = ArenaPlanRequest {
        model: written,
        original: input,
        keeps_bits,
        library: None,
        level: LEVEL,
        original_level: LEVEL,
        mapped_bytes: 0,
        weights: None,
        dims: &load.dims,
        ranges: &Ranges::default(),
        frequent: &[],
        other_loads: 0,
        inferred: &InferredSizes::default(),
        limits: LIMITS,
    };
    Ok(plan_arena(&request, host, &SolveControl::new())?)
}

fn called(setting: Setting) -> &'static str {
    match setting {
        Setting::Default => "the defaults",
        Setting::PatternOff => "memory pattern off",
        Setting::ArenaOff => "memory arena off",
        Setting::SharedAsRequested => "shared arena, as requested",
        Setting::SharedFirstRegion => "shared arena, first region",
    }
}

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}
