//! What the binaries of all targets share.

use remat_fuzz::{Rng, TARGETS, Target, mutate};

pub use libfuzzer_sys;

/// The target of that name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.expect("a target of `remat-fuzz` has this name")
}

/// Changes `data[..size]` in place: every second time in a way that knows the form, else as libFuzzer does. Returns the new size.
#[must_use]
pub fn change(target: &Target, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    if seed % 2 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let mut rng = Rng::new(u64::from(seed));
    let changed = mutate(target.form, &data[..size], &data[..size], &mut rng);
    let size = changed.len().min(most);
    data[..size].copy_from_slice(&changed[..size]);
    size
}

/// The binary of a target.
#[macro_export]
macro_rules! fuzz {
    ($name:literal) => {
        static TARGET: std::sync::LazyLock<&'static remat_fuzz::Target> =
            std::sync::LazyLock::new(|| $crate::target($name));

        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            (TARGET.body)(data);
        });

        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::change(&TARGET, data, size, max_size, seed)
        });
    };
}
