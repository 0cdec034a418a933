//! The settings that PyTorch reads from `PYTORCH_CUDA_ALLOC_CONF`.

use remat_files::shown;
use thiserror::Error;

pub(crate) const MIB: u64 = 1 << 20;

/// The powers of two, in mebibytes, whose divisions can be set one by one; the last is for all that is larger.
const POWERS: usize = 16;

/// What the allocator is told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Segments grow, in pages of 2 MiB for small blocks and 20 MiB for others.
    pub expandable_segments: bool,
    /// Blocks of so many bytes and more are not split; absent: all may be.
    pub max_split_bytes: Option<u64>,
    /// Into how many parts the range between two powers of two is divided, to which sizes are rounded up, for sizes below 2 MiB, below 4 MiB, and so
    /// on; 0: not at all.
    pub divisions: [u64; POWERS],
    /// Share of the allowed bytes, in thousandths, beyond which blocks that were not used for long go back; 0: never. Only where there are allowed bytes.
    pub collection_permille: u64,
    /// What the process may reserve (`torch.cuda.set_per_process_memory_fraction`), in bytes; absent: all.
    pub allowed_bytes: Option<u64>,
}

/// Why settings cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SettingsError {
    /// A setting has a value that it cannot have.
    #[error("`{}` of the allocator's settings cannot be `{}`", shown(.key), shown(.value))]
    Value {
        /// The setting.
        key: String,
        /// Its value.
        value: String,
    },
    /// The simulation does not know what the setting does.
    #[error("`{}` of the allocator's settings is not simulated", shown(.0))]
    Unknown(String),
}

impl Settings {
    /// The settings in the form of the environment variable: `expandable_segments:True,max_split_size_mb:128`. What says nothing about sizes
    /// (pinned memory, locks) is passed over.
    ///
    /// # Errors
    /// [`SettingsError`] for values that PyTorch refuses, and for settings that change what is allocated in a way that is not simulated.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for (key, value) in pairs(text) {
            let wrong = || SettingsError::Value {
                key: key.to_owned(),
                value: value.to_owned(),
            };
            match key {
                "expandable_segments" => settings.expandable_segments = boolean(value).ok_or_else(wrong)?,
                "max_split_size_mb" => {
                    let mib: u64 = value.parse().map_err(|_| wrong())?;
                    // PyTorch takes what is not above its large segments, 20 MiB, for a mistake.
                    if mib <= 20 {
                        return Err(wrong());
                    }
                    settings.max_split_bytes = mib.checked_mul(MIB);
                }
                "roundup_power2_divisions" => settings.divisions = divisions(value).ok_or_else(wrong)?,
                "garbage_collection_threshold" => {
                    settings.collection_permille = permille(value)
                        .filter(|&share| 0 < share && share < 1000)
                        .ok_or_else(wrong)?;
                }
                "per_process_memory_fraction" | "large_segment_size_mb" => {
                    return Err(SettingsError::Unknown(key.to_owned()));
                }
                "backend" if value != "native" => return Err(wrong()),
                // They say how, not how much.
                "backend"
                | "release_lock_on_cudamalloc"
                | "release_lock_on_hipmalloc"
                | "pinned_use_cuda_host_register"
                | "pinned_use_hip_host_register"
                | "pinned_num_register_threads"
                | "pinned_use_background_threads"
                | "pinned_reserve_segment_size_mb"
                | "graph_capture_record_stream_reuse" => {}
                _ => return Err(SettingsError::Unknown(key.to_owned())),
            }
        }
        Ok(settings)
    }

    /// Into how many parts the range is divided in which a size lies; 0 and 1: into none.
    pub(crate) fn divisions_of(&self, bytes: u64) -> u64 {
        // As PyTorch counts: 2 MiB is the second.
        let place = (bytes.max(MIB) / MIB).ilog2();
        let place = usize::try_from(place).unwrap_or(POWERS).min(POWERS - 1);
        self.divisions[place]
    }

    /// What is not split any more.
    pub(crate) fn max_split(&self) -> u64 {
        self.max_split_bytes.unwrap_or(u64::MAX)
    }
}

/// `key:value` pairs; commas within brackets separate none.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut depth = 0_i32;
    let parts = text.split(move |sign| {
        depth += match sign {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        sign == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        (key.trim(), value.trim())
    })
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// A share below one in thousandths, rounded down.
fn permille(value: &str) -> Option<u64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let digits = format!("{fraction:0<3}");
    let thousandths: u64 = digits.get(..3)?.parse().ok()?;
    let is_number = fraction.bytes().all(|digit| digit.is_ascii_digit());
    Some(whole.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(1000)? + thousandths)
}

/// `4`, or `[256:1,512:2,>:8]`: by the power in mebibytes up to which they hold.
fn divisions(value: &str) -> Option<[u64; POWERS]> {
    let power = |text: &str| text.parse().ok().filter(|number: &u64| number.is_power_of_two());
    let Some(list) = value.strip_prefix('[') else {
        return Some([power(value)?; POWERS]);
    };
    let mut found = [0; POWERS];
    let mut from = 0;
    let mut last = 0;
    for entry in list.strip_suffix(']')?.split(',') {
        let (below, parts) = entry.split_once(':')?;
        let parts = power(parts.trim())?;
        let to = match below.trim() {
            ">" => POWERS,
            below => usize::try_from(power(below)?.ilog2()).ok()?.min(POWERS - 1) + 1,
        };
        found.iter_mut().take(to).skip(from).for_each(|entry| *entry = parts);
        (from, last) = (to.max(from), parts);
    }
    found.iter_mut().skip(from).for_each(|entry| *entry = last);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_pytorch_writes_them() {
        let settings =
            Settings::parse("expandable_segments:True, max_split_size_mb:64,garbage_collection_threshold:0.85")
                .unwrap();
        assert!(settings.expandable_segments);
        assert_eq!(
            (settings.max_split_bytes, settings.collection_permille),
            (Some(64 << 20), 850)
        );
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
        assert_eq!(
            Settings::parse("pinned_num_register_threads:8,").unwrap(),
            Settings::default()
        );
    }

    #[test]
    fn divisions_hold_for_all_sizes_or_by_power() {
        let all = Settings::parse("roundup_power2_divisions:4").unwrap();
        assert_eq!([1, 3 << 20, 1 << 40].map(|bytes| all.divisions_of(bytes)), [4; 3]);
        let some = Settings::parse("roundup_power2_divisions:[1:2,4:8,>:1]").unwrap();
        assert_eq!(
            [1, 1 << 20, 2 << 20, 4 << 20, 8 << 20].map(|bytes| some.divisions_of(bytes)),
            [2, 2, 8, 8, 1]
        );
    }

    #[test]
    fn what_pytorch_refuses_or_nobody_simulates_is_an_error() {
        for text in [
            "max_split_size_mb:20",
            "max_split_size_mb:x",
            "expandable_segments:true",
            "roundup_power2_divisions:3",
            "roundup_power2_divisions:[256:1",
            "garbage_collection_threshold:1.0",
            "backend:cudaMallocAsync",
        ] {
            assert!(
                matches!(Settings::parse(text), Err(SettingsError::Value { .. })),
                "{text}"
            );
        }
        assert_eq!(
            Settings::parse("colour:blue"),
            Err(SettingsError::Unknown("colour".to_owned()))
        );
    }
}
