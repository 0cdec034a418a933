//! Which settings of a session come closest to the least memory without a library of ours: each is predicted from recorded runs, then measured.
//!
//! Runs are recorded once as they are, and once with the memory pattern. An arena that is simulated on them ([`replay`]) says what each
//! setting takes; it also finds the size of a first region in which all runs fit. What the runtime takes beside its allocator is the
//! difference of the measured heap without an arena and the recorded buffers.

use std::collections::BTreeMap;
use std::path::Path;

use remat_onnxruntime_arena::LIBRARY;
use remat_onnxruntime_run::{
    ArenaLibrary, ChildLimits, ExtendStrategy, Host, MeasureOptions, Measurement, OptimizationLevel, RecordOptions,
    RecordedRun, Runner, SessionSettings, SharedArena, measure, record,
};
use remat_onnxruntime_sim::{
    ArenaSettings, BufferLife, Growth, RegionOrder, Replayed, lowest_first_region, most_bytes, replay,
};
use remat_solve::SolveControl;

use crate::error::ArenaPlanError;
use crate::plan::{LIBRARY_NAME, scratch_folder, tell, unwritten};
use crate::setting::{GRAIN, Setting, SettingBytes, SettingOptions, SettingTried, SettingsTried};
use crate::snippet::python;

/// Runs after the first that are measured.
const LATER_RUNS: u32 = 3;
/// Seed of the inputs.
const SEED: u64 = 0;
/// The largest first region that the runtime's interface takes.
const MOST_FIRST_BYTES: u64 = i32::MAX as u64;

/// Share of a growth, as a divisor, and bytes by which another one is no larger.
const GROWTH_SHARE: u64 = 50;
const GROWTH_BYTES: u64 = 1 << 20;

/// The largest growth of a process that counts as no larger than another one: what measurements of one thing differ by.
#[must_use]
pub fn no_larger_growth(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / GROWTH_SHARE + GROWTH_BYTES)
}

/// What settings are looked for.
#[derive(Clone, Debug)]
pub struct SettingsRequest<'a> {
    /// The file that sessions load.
    pub model: &'a Path,
    /// The level of the sessions.
    pub level: OptimizationLevel,
    /// Values of symbolic dimensions.
    pub dims: &'a BTreeMap<String, u64>,
    /// Limits of each process that runs the model.
    pub limits: ChildLimits<'a>,
    /// The peak that is predicted of the file with the arena off, in bytes.
    pub predicted: u64,
    /// Whether turning the arena off is known to take more time than allowed: then that is not recommended.
    pub is_slow_without_arena: bool,
}

/// Tries settings on a file that was written, and recommends the one with which the process grows least; the default where none is better by
/// more than measurements differ.
///
/// # Errors
/// [`ArenaPlanError::NoLibrary`] if this program has no library to record runs with; [`ArenaPlanError::Runtime`] if the model does not run.
pub fn try_settings(
    request: &SettingsRequest<'_>,
    host: &Host,
    control: &SolveControl<'_>,
) -> Result<SettingsTried, ArenaPlanError> {
    let runner = host.runner(request.limits);
    tell(control, "runs are recorded");
    let plain = lives(&request.recorded(&runner, false)?);
    let patterned = lives(&request.recorded(&runner, true)?);
    let split = ArenaSettings {
        largest_waste: GRAIN,
        pattern: false,
        ..ArenaSettings::default()
    };
    let mut measured: Vec<(Setting, Measurement, SettingOptions)> = Vec::new();
    for setting in Setting::ALL {
        // What a session keeps in an arena of the environment was seen in the setting before.
        let kept = measured
            .last()
            .map_or(0, |(_, measured, _)| measured.arena_kept.unwrap_or(0));
        let region = || lowest_first_region(kept, &plain, &split).filter(|&bytes| bytes <= MOST_FIRST_BYTES);
        let first_region = (setting == Setting::SharedFirstRegion).then(region).flatten();
        let Some(options) = setting.options(first_region) else {
            continue;
        };
        tell(control, "settings are tried");
        measured.push((setting, request.measure(&runner, &options)?, options));
    }
    let taken = |setting: Setting| measured.iter().find(|(other, ..)| *other == setting);
    let outside = Outside::of(taken(Setting::ArenaOff).map(|(_, measured, _)| measured), &plain);
    let tried = measured.iter().map(|(setting, measured, options)| SettingTried {
        setting: *setting,
        predicted: match (setting, options.environment_arena) {
            (Setting::Default, arena) => outside.beside(&Taken::of(measured, &patterned, arena)),
            (Setting::ArenaOff, _) => SettingBytes {
                heap_first_bytes: Some(request.predicted),
                heap_later_bytes: Some(request.predicted),
                ..SettingBytes::default()
            },
            (_, arena) => outside.beside(&Taken::of(measured, &plain, arena)),
        },
        measured: SettingBytes::of(measured),
        median_ns: measured.median_ns,
        options: options.clone(),
    });
    let tried: Vec<SettingTried> = tried.collect();
    let is_right = |setting: Setting| {
        let stock = taken(Setting::Default).map(|(_, measured, _)| measured);
        let other = taken(setting).map(|(_, measured, _)| measured);
        stock.zip(other).is_some_and(|(a, b)| a.first_difference(b).is_none())
    };
    let is_slow = |setting: Setting| request.is_slow_without_arena && setting == Setting::ArenaOff;
    let allowed = |setting: Setting| is_right(setting) && !is_slow(setting);
    let recommended = recommended(&tried, allowed);
    let best = tried.iter().find(|tried| tried.setting == recommended);
    let python = best.map_or_else(String::new, |best| python(request.model, request.level, &best.options));
    Ok(SettingsTried {
        recommended,
        python,
        tried,
    })
}

/// The allowed setting with which the process grows least; the default where that grows by no more.
fn recommended(tried: &[SettingTried], allowed: impl Fn(Setting) -> bool) -> Setting {
    let growth = |tried: &SettingTried| Some((tried.measured.growth()?, tried.setting));
    let stock = tried.iter().find(|tried| tried.setting == Setting::Default);
    let stock = stock.and_then(|stock| stock.measured.growth());
    let allowed = tried.iter().filter(|tried| allowed(tried.setting));
    let least = allowed.filter_map(growth).min_by_key(|&(bytes, _)| bytes);
    match stock.zip(least) {
        Some((stock, (bytes, setting))) if stock > no_larger_growth(bytes) => setting,
        _ => Setting::Default,
    }
}

impl SettingsRequest<'_> {
    fn settings(&self) -> SessionSettings {
        SessionSettings {
            level: self.level,
            dims: self.dims.clone(),
            ..SessionSettings::stock()
        }
    }

    fn recorded(&self, runner: &Runner<'_>, keeps_pattern: bool) -> Result<Vec<RecordedRun>, ArenaPlanError> {
        let content = LIBRARY.ok_or(ArenaPlanError::NoLibrary)?;
        let scratch = scratch_folder()?;
        let library = scratch.path().join(LIBRARY_NAME);
        remat_files::write(&library, content).map_err(|error| unwritten(&library, &error))?;
        let settings = SessionSettings {
            arena_library: Some(ArenaLibrary {
                library,
                plan: None,
                keeps_pattern,
            }),
            ..self.settings()
        };
        let recorded = record(runner, self.model, &settings, &RecordOptions::default())?;
        Ok(recorded
            .recordings
            .into_iter()
            .flat_map(|recording| recording.runs)
            .collect())
    }

    fn measure(&self, runner: &Runner<'_>, options: &SettingOptions) -> Result<Measurement, ArenaPlanError> {
        let settings = SessionSettings {
            arena: options.enable_cpu_mem_arena,
            memory_pattern: options.enable_mem_pattern,
            threads: options.intra_op_num_threads,
            shared_arena: options.environment_arena,
            ..self.settings()
        };
        let options = MeasureOptions {
            runs: LATER_RUNS,
            seeds: vec![SEED],
            time: None,
        };
        Ok(measure(runner, self.model, &settings, &options)?)
    }
}

/// The recorded runs as the simulation has them.
fn lives(runs: &[RecordedRun]) -> Vec<Vec<BufferLife>> {
    let of = |run: &RecordedRun| {
        let buffers = run.buffers.iter().map(|buffer| BufferLife {
            bytes: buffer.bytes,
            first: buffer.first,
            last: buffer.last,
        });
        buffers.collect()
    };
    runs.iter().map(of).collect()
}

/// The simulated arena of a session; without one of the environment, its own.
fn simulated(arena: Option<SharedArena>) -> ArenaSettings {
    let stock = ArenaSettings {
        pattern: false,
        ..ArenaSettings::default()
    };
    let Some(arena) = arena else { return stock };
    ArenaSettings {
        growth: match arena.extend_strategy {
            ExtendStrategy::NextPowerOfTwo => Growth::NextPowerOfTwo,
            ExtendStrategy::SameAsRequested => Growth::SameAsRequested,
        },
        initial_bytes: arena.initial_chunk_size_bytes.unwrap_or(stock.initial_bytes),
        largest_waste: arena.max_dead_bytes_per_chunk,
        ..stock
    }
}

/// What runs take of an arena at most, wherever its regions lie: above what the session holds before them.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// Bytes that the arena holds, and that are written, in the first run.
    first: [u64; 2],
    /// The same in later runs.
    later: [u64; 2],
}

impl Taken {
    /// By simulation; `loaded` says what the session keeps in the arena.
    fn of(loaded: &Measurement, runs: &[Vec<BufferLife>], arena: Option<SharedArena>) -> Self {
        let settings = simulated(arena);
        let kept = loaded.arena_kept.unwrap_or(0);
        let mut most = Self::default();
        for regions in RegionOrder::ALL {
            let taken = replay(kept, runs, &ArenaSettings { regions, ..settings });
            let before = taken.first().copied().unwrap_or_default();
            // An arena that is set up for the runs is theirs from the start.
            let held = if arena.is_some() { kept } else { before.held };
            let above = |taken: &Replayed| [taken.held.saturating_sub(held), taken.touched - before.touched];
            let larger = |one: [u64; 2], other: [u64; 2]| [one[0].max(other[0]), one[1].max(other[1])];
            most.first = larger(most.first, taken.get(1).map_or([0, 0], above));
            most.later = larger(most.later, taken.last().map_or([0, 0], above));
        }
        most
    }
}

/// What runs take beside the buffers of the runtime's allocator, in bytes.
#[derive(Clone, Copy)]
struct Outside {
    first: u64,
    later: u64,
    /// Pages of files: the code of kernels for the most part.
    files: u64,
}

impl Outside {
    /// The heap that was measured without an arena, less the recorded buffers.
    fn of(measured: Option<&Measurement>, runs: &[Vec<BufferLife>]) -> Self {
        let exact = measured.map(SettingBytes::of).unwrap_or_default();
        let buffers = |run: Option<&Vec<BufferLife>>| run.map_or(0, |run| most_bytes(run, 1));
        Self {
            first: exact
                .heap_first_bytes
                .unwrap_or(0)
                .saturating_sub(buffers(runs.first())),
            later: exact.heap_later_bytes.unwrap_or(0).saturating_sub(buffers(runs.last())),
            files: measured
                .and_then(|measured| measured.resident)
                .map_or(0, |resident| resident.files),
        }
    }

    fn beside(self, taken: &Taken) -> SettingBytes {
        let ([first_held, first_written], [later_held, later_written]) = (taken.first, taken.later);
        SettingBytes {
            heap_first_bytes: Some(first_held + self.first),
            heap_later_bytes: Some(later_held + self.later),
            resident_first_bytes: Some(first_written + self.first + self.files),
            resident_later_bytes: Some(later_written + self.later + self.files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn tried(growths: &[(Setting, u64)]) -> Vec<SettingTried> {
        let one = |&(setting, growth): &(Setting, u64)| SettingTried {
            setting,
            options: setting.options(Some(MIB)).expect("there is a first region"),
            predicted: SettingBytes::default(),
            measured: SettingBytes {
                resident_first_bytes: Some(growth),
                resident_later_bytes: Some(growth),
                ..SettingBytes::default()
            },
            median_ns: 1,
        };
        growths.iter().map(one).collect()
    }

    #[test]
    fn the_setting_with_which_the_process_grows_least_is_recommended() {
        let all = tried(&[
            (Setting::Default, 90 * MIB),
            (Setting::ArenaOff, 70 * MIB),
            (Setting::SharedFirstRegion, 80 * MIB),
        ]);
        assert_eq!(recommended(&all, |_| true), Setting::ArenaOff);
        let but_slow = |setting| setting != Setting::ArenaOff;
        assert_eq!(recommended(&all, but_slow), Setting::SharedFirstRegion);
    }

    #[test]
    fn the_default_is_recommended_where_no_other_gains_or_growth_is_not_known() {
        let mut all = tried(&[(Setting::Default, 70 * MIB), (Setting::ArenaOff, 71 * MIB)]);
        assert_eq!(recommended(&all, |_| true), Setting::Default);
        all[1].measured = SettingBytes {
            resident_first_bytes: Some(69 * MIB),
            resident_later_bytes: Some(69 * MIB),
            ..SettingBytes::default()
        };
        assert_eq!(
            recommended(&all, |_| true),
            Setting::Default,
            "within what measurements differ by"
        );
        all[0].measured = SettingBytes::default();
        assert_eq!(recommended(&all, |_| true), Setting::Default);
    }
}
