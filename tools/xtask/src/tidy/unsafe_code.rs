//! Unsafe code stands in few files, which are named here, and says why it is sound.

use crate::workspace::{Finding, Source};

/// Files that may hold unsafe code, each with what it needs it for.
const ALLOWED: &[&str] = &[
    // Maps the model file into memory.
    "dialect/onnx/src/model.rs",
    // Loads OR-Tools, and calls the C interfaces of it and HiGHS.
    "passes/ortools/src/library.rs",
    "passes/ortools/src/library/load.rs",
    "passes/ortools/src/capi.rs",
    "passes/ortools/src/milp/highs_capi.rs",
    // Points the C library's standard output elsewhere.
    "passes/ortools/src/milp/quiet.rs",
    // Stands before the C library's allocator, in a shared library of its own; is read by name; and so is the runtime's version.
    "passes/onnxruntime/run/meter/heap_meter.rs",
    "passes/onnxruntime/run/src/meter.rs",
    "passes/onnxruntime/run/src/version.rs",
    // Calls the runtime, is called by it, maps memory and advises on it, and takes a signal; is read by name.
    "passes/onnxruntime/arena/src/address_space.rs",
    "passes/onnxruntime/arena/src/advice.rs",
    "passes/onnxruntime/arena/src/api.rs",
    "passes/onnxruntime/arena/src/cuda/entry.rs",
    "passes/onnxruntime/arena/src/cuda/library.rs",
    "passes/onnxruntime/arena/src/cuda/slots.rs",
    "passes/onnxruntime/arena/src/entry.rs",
    "passes/onnxruntime/arena/src/failing.rs",
    "passes/onnxruntime/arena/src/memory.rs",
    "passes/onnxruntime/arena/src/paging/file.rs",
    "passes/onnxruntime/arena/src/paging/kernels.rs",
    "passes/onnxruntime/arena/src/paging/operators.rs",
    "passes/onnxruntime/arena/src/session.rs",
    "passes/onnxruntime/arena/src/touches.rs",
    "passes/onnxruntime/run/src/planned.rs",
    // Calls the functions of the arena library for CUDA, and those of a CUDA runtime without a device.
    "passes/onnxruntime/arena/tests/cuda.rs",
    // Is called by programs in C; on devices they bring memory and the end of the program.
    "passes/planner-c/src/bare.rs",
    "passes/planner-c/src/entry.rs",
    // Reads pages into memory of PyTorch.
    "tools/python/src/pages.rs",
    // Reads the statistics of the runtime's allocators.
    "passes/onnxruntime/run/src/arena.rs",
    // Gives the runtime's environment an arena.
    "passes/onnxruntime/run/src/shared_arena.rs",
    // Views the runtime's tensors as bytes.
    "passes/onnxruntime/run/src/output.rs",
    // Calls MLIR, and is called by it.
    "dialect/mlir/src/calls.rs",
    "dialect/mlir/src/ffi.rs",
    "dialect/mlir/src/ffi/buffers.rs",
    "dialect/mlir/src/ffi/lowered.rs",
    "dialect/mlir/src/ffi/tiles.rs",
    "dialect/mlir/src/function.rs",
    "passes/mlir/passes/src/bridge.rs",
    "passes/mlir/plugin/src/entry.rs",
    // Quotes it in the tests below.
    "tools/xtask/src/tidy/unsafe_code.rs",
];

/// How many lines above a block its reason may stand.
const REASON_ABOVE: usize = 4;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    if ALLOWED.contains(&source.path.as_str()) {
        return without_reason(source);
    }
    let found = source.text.lines().enumerate().filter(|(_, line)| is_unsafe(line));
    found
        .map(|(index, _)| Finding::new(source, index + 1, "unsafe code outside the files that may hold it"))
        .collect()
}

/// Blocks and implementations without a comment that says why they are sound. Clippy looks at most files, but not at those that are no
/// part of a crate.
fn without_reason(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let starts = |line: &str| line.contains("unsafe {") || line.contains("unsafe impl");
    let is_bare = |&index: &usize| {
        let above = &lines[index.saturating_sub(REASON_ABOVE)..=index];
        is_unsafe(lines[index]) && starts(lines[index]) && !above.iter().any(|line| line.contains("SAFETY:"))
    };
    (0..lines.len())
        .filter(is_bare)
        .map(|index| Finding::new(source, index + 1, "unsafe code without a `SAFETY:` comment"))
        .collect()
}

/// Whether the keyword stands in code, not in a comment, a text or a longer word.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    [
        "unsafe {",
        "unsafe fn",
        "unsafe impl",
        "unsafe trait",
        "unsafe extern",
        "unsafe(",
    ]
    .iter()
    .any(|form| {
        code.match_indices(form).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '"')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn unsafe_code_is_found_wherever_it_stands() {
        for code in [
            // SAFETY: text.
            "let x = unsafe { *p };",
            "pub unsafe fn f() {}",
            "#[unsafe(no_mangle)]",
            "unsafe impl Send for X {}",
        ] {
            let found = check(&source("tools/some/src/a.rs", &format!("\n{code}\n")));
            assert_eq!(found.len(), 1, "{code}");
            assert_eq!(found[0].line, 2, "{code}");
        }
    }

    #[test]
    fn where_it_may_stand_it_says_why_it_is_sound() {
        let path = "passes/onnxruntime/run/src/meter.rs";
        let found = check(&source(path, "unsafe { g() }\n"));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1]);
        assert!(check(&source(path, "// SAFETY: `g` has no condition.\nunsafe { g() }\n")).is_empty());
        assert!(check(&source(path, "unsafe fn f() {}\n")).is_empty());
    }

    #[test]
    fn comments_and_lints_pass() {
        let text = "// unsafe { }\n#![deny(unsafe_code)]\nlet x = 1; // unsafe fn\n";
        assert!(check(&source("tools/some/src/a.rs", text)).is_empty());
        assert!(check(&source("docs/a.md", "unsafe { }")).is_empty());
    }
}
