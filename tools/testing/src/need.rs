//! What a test may need, and whether it is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use remat_files::{SharedLibrary, Surroundings};

/// Names of needs that must be met, separated by commas: `.ci/run` sets it to all that it installs.
pub const REQUIRED: &str = "REMAT_TESTS_REQUIRE";

/// A processor without an operating system, as Rust names it: `rustup target add` installs its library.
pub const BARE_METAL: &str = "thumbv7em-none-eabi";

/// Where it is set, what takes too long for every change is tested too: all models, budgets and seeds.
const NIGHTLY: &str = "REMAT_NIGHTLY";

/// Whether what takes too long for every change is tested too, as the environment variable `REMAT_NIGHTLY` says.
#[must_use]
pub fn is_nightly() -> bool {
    std::env::var_os(NIGHTLY).is_some()
}

/// What the repository does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The graphs of the Moccasin and Checkmate papers, in `../shared/graphs`.
    Graphs,
    /// Exported networks, in `../shared/models`.
    Models,
    /// The logs of the DTR paper, in `../shared/dtr-logs`.
    DtrLogs,
    /// Buffers to be placed, MiniMalloc's and recorded ones, in `../shared/offsets`.
    Offsets,
    /// A heap meter in C, in `../shared/tools`.
    HeapMeterInC,
    /// ONNX Runtime's library, where [`runtime_library`] says.
    OnnxRuntime,
    /// OR-Tools' library, where [`ortools`] says.
    OrTools,
    /// The virtual environment that `third_party/fetch.sh` makes.
    Python,
    /// The test data of the Python package `onnx`, in that environment.
    OnnxTestData,
    /// A C compiler, `cc`.
    CCompiler,
    /// Rust's core library for [`BARE_METAL`], and the compiler itself, `rustc`.
    BareMetal,
    /// Time: the test takes too long for every change.
    Nightly,
}

impl Need {
    /// Its name in [`REQUIRED`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Graphs => "graphs",
            Self::Models => "models",
            Self::DtrLogs => "dtr-logs",
            Self::Offsets => "offsets",
            Self::HeapMeterInC => "heap-meter-in-c",
            Self::OnnxRuntime => "onnxruntime",
            Self::OrTools => "ortools",
            Self::Python => "python",
            Self::OnnxTestData => "onnx-test-data",
            Self::CCompiler => "cc",
            Self::BareMetal => "bare-metal",
            Self::Nightly => "nightly",
        }
    }

    /// Why the need is not met; `None` if it is.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        let root = workspace();
        let path = match self {
            Self::Graphs => root.join("../shared/graphs"),
            Self::Models => root.join("../shared/models"),
            Self::DtrLogs => root.join("../shared/dtr-logs"),
            Self::Offsets => root.join("../shared/offsets"),
            Self::HeapMeterInC => root.join("../shared/tools/heap_peak.c"),
            Self::OnnxRuntime => runtime_library(),
            Self::OrTools => return without_ortools(),
            Self::Python => root.join("third_party/venv/bin/python"),
            Self::OnnxTestData => return onnx_test_data().is_none().then(|| "no test data of `onnx`".to_owned()),
            Self::CCompiler => return without_program("cc"),
            Self::BareMetal => return without_bare_metal(),
            Self::Nightly => return (!is_nightly()).then(|| format!("`{NIGHTLY}=1` runs it")),
        };
        (!path.exists()).then(|| format!("no `{}`", shortened(&path, &root)))
    }

    /// Whether [`REQUIRED`] names it.
    pub(crate) fn is_required(self) -> bool {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        required.split(',').any(|name| name.trim() == self.name())
    }
}

/// The root of the repository.
#[must_use]
pub fn workspace() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).unwrap_or(folder).to_path_buf()
}

/// ONNX Runtime's library: what `REMAT_ORT_LIBRARY` names, else the one that `third_party/fetch.sh` brings.
#[must_use]
pub fn runtime_library() -> PathBuf {
    let fetched = || workspace().join("third_party/onnxruntime/lib/libonnxruntime.so");
    std::env::var_os("REMAT_ORT_LIBRARY").map_or_else(fetched, PathBuf::from)
}

/// Where OR-Tools' library lies: what `REMAT_ORTOOLS_LIBRARY` names, else the wheel that `third_party/fetch.sh` installs.
#[must_use]
pub fn ortools() -> Surroundings {
    Surroundings {
        named: std::env::var_os("REMAT_ORTOOLS_LIBRARY").map(PathBuf::from),
        checkout: Some(workspace()),
        ..Surroundings::default()
    }
}

/// The test data of the Python package `onnx`: what `REMAT_ONNX_TESTDATA` names, else that of the virtual environment.
#[must_use]
pub fn onnx_test_data() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("REMAT_ONNX_TESTDATA") {
        return Some(path.into());
    }
    let libraries = std::fs::read_dir(workspace().join("third_party/venv/lib")).ok()?;
    let paths = libraries
        .flatten()
        .map(|python| python.path().join("site-packages/onnx/backend/test/data"));
    paths.into_iter().find(|path| path.is_dir())
}

fn without_ortools() -> Option<String> {
    let candidates = ortools().candidates(&SharedLibrary::OR_TOOLS);
    let is_there = candidates.iter().any(|path| path.is_file());
    (!is_there).then(|| "no `ortools` in `third_party/venv`".to_owned())
}

fn without_program(name: &str) -> Option<String> {
    let mut command = Command::new(name);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_err().then(|| format!("no program `{name}`"))
}

fn without_bare_metal() -> Option<String> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", BARE_METAL]);
    let folder = rustc.output().ok().filter(|output| output.status.success());
    let folder = folder.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let is_there = folder.is_some_and(|folder| folder.is_dir());
    (!is_there).then(|| format!("no core library for `{BARE_METAL}`"))
}

/// Paths in the repository are told from its root.
fn shortened(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_from_the_root() {
        let root = workspace();
        assert!(root.join("Cargo.toml").exists());
        assert_eq!(shortened(&root.join("../shared/graphs"), &root), "../shared/graphs");
        assert_eq!(shortened(Path::new("/opt/lib.so"), &root), "/opt/lib.so");
        assert_eq!(
            without_program("no-such-program"),
            Some("no program `no-such-program`".to_owned())
        );
    }
}
