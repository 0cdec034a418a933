//! Which processors a file belongs to that was made for this one.

use std::collections::BTreeSet;
use std::fs;

/// What kernels of ONNX Runtime on a processor depend on, by its name in `/proc/cpuinfo`: x86-64, then 64-bit Arm.
const FEATURES: [&str; 22] = [
    "sse4_1",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimdhp",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
    "sme",
];

/// This processor, as a line of text: its architecture, and every feature that counts, with `!` before those that it lacks.
pub(super) fn this() -> Option<String> {
    Some(described(
        std::env::consts::ARCH,
        &fs::read_to_string("/proc/cpuinfo").ok()?,
    ))
}

fn described(architecture: &str, cpuinfo: &str) -> String {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let features: BTreeSet<&str> = lines
        .filter(|(name, _)| matches!(name.trim(), "flags" | "Features"))
        .flat_map(|(_, features)| features.split_whitespace())
        .collect();
    let all = FEATURES.iter().map(|feature| match features.contains(feature) {
        true => format!(" {feature}"),
        false => format!(" !{feature}"),
    });
    architecture.to_owned() + &all.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_found_by_their_whole_names() {
        let cpuinfo = "processor\t: 0\nmodel name\t: avx512f\nflags\t\t: fpu avx2 fma avx512_vnni\n";
        let found = described("x86_64", cpuinfo);
        assert!(
            found.starts_with("x86_64 !sse4_1 !avx !f16c fma avx2 !avx512f"),
            "{found}"
        );
        assert!(found.contains(" avx512_vnni !avx_vnni"), "{found}");
    }
}
