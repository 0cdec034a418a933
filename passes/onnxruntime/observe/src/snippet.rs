//! A session with some settings, as a program in Python.

use std::path::Path;

use remat_onnxruntime_run::OptimizationLevel;

use crate::setting::SettingOptions;

/// A program that makes the session; it ends with a line break.
pub(crate) fn python(model: &Path, level: OptimizationLevel, options: &SettingOptions) -> String {
    let mut lines = vec!["import onnxruntime".to_owned(), String::new()];
    if let Some(arena) = options.environment_arena {
        let entries = arena.entries().into_iter();
        let entries: Vec<String> = entries.map(|(name, value)| format!("\"{name}\": {value}")).collect();
        lines.push(format!("arena = onnxruntime.OrtArenaCfg({{{}}})", entries.join(", ")));
        lines.push("kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR".to_owned());
        lines.push("memory = onnxruntime.OrtMemoryInfo(\"Cpu\", kind, 0, onnxruntime.OrtMemType.DEFAULT)".to_owned());
        lines.push("onnxruntime.create_and_register_allocator(memory, arena)  # one for the process".to_owned());
    }
    lines.push("options = onnxruntime.SessionOptions()".to_owned());
    let level = match level {
        OptimizationLevel::All => None,
        OptimizationLevel::Extended => Some("ORT_ENABLE_EXTENDED"),
        OptimizationLevel::Basic => Some("ORT_ENABLE_BASIC"),
        OptimizationLevel::Off => Some("ORT_DISABLE_ALL"),
    };
    lines.extend(
        level.map(|level| format!("options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}")),
    );
    lines.push(format!(
        "options.intra_op_num_threads = {}  # as measured; with more, kernels take more",
        options.intra_op_num_threads
    ));
    if !options.enable_cpu_mem_arena {
        lines.push("options.enable_cpu_mem_arena = False".to_owned());
    }
    if !options.enable_mem_pattern {
        lines.push("options.enable_mem_pattern = False".to_owned());
    }
    let entries = options.config_entries.iter();
    lines.extend(entries.map(|(key, value)| format!("options.add_session_config_entry(\"{key}\", \"{value}\")")));
    lines.push(format!(
        "session = onnxruntime.InferenceSession({}, options, providers=[\"CPUExecutionProvider\"])",
        quoted(&model.display().to_string())
    ));
    lines.join("\n") + "\n"
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use remat_onnxruntime_run::{ExtendStrategy, SharedArena};

    use super::*;

    #[test]
    fn the_program_sets_what_differs_from_the_default_and_nothing_else() {
        let plain = SettingOptions {
            enable_cpu_mem_arena: true,
            enable_mem_pattern: true,
            intra_op_num_threads: 1,
            config_entries: BTreeMap::new(),
            environment_arena: None,
        };
        let text = python("a.onnx".as_ref(), OptimizationLevel::All, &plain);
        assert!(
            !text.contains("enable_") && !text.contains("Arena") && !text.contains("level"),
            "{text}"
        );
        let shared = SettingOptions {
            enable_mem_pattern: false,
            config_entries: BTreeMap::from([("session.use_env_allocators", "1")]),
            environment_arena: Some(SharedArena {
                extend_strategy: ExtendStrategy::NextPowerOfTwo,
                initial_chunk_size_bytes: Some(4096),
                max_dead_bytes_per_chunk: 256,
            }),
            ..plain
        };
        let text = python("a.onnx".as_ref(), OptimizationLevel::Basic, &shared);
        for line in [
            "{\"arena_extend_strategy\": 0, \"initial_chunk_size_bytes\": 4096, \"max_dead_bytes_per_chunk\": 256}",
            "options.enable_mem_pattern = False\n",
            "options.add_session_config_entry(\"session.use_env_allocators\", \"1\")\n",
            "ORT_ENABLE_BASIC\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn names_of_files_are_literals_whatever_they_hold() {
        assert_eq!(quoted("a\"b\\c\nd\u{e9}"), "\"a\\\"b\\\\c\\u000ad\u{e9}\"");
    }
}
