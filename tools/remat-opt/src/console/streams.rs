//! `-` for stdin and stdout, wherever a command names a file.
//!
//! What comes from stdin is kept in a file while the program runs, and what goes to stdout is written to one first: models are mapped
//! and looked at more than once, and a reader gets all of an output or nothing. Reports and messages call both `-`.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use remat_files::OutputFile;
use tempfile::TempDir;

/// The files that stand for the streams of this process.
static STREAMS: Mutex<Streams> = Mutex::new(Streams {
    stdin: None,
    stdout: None,
});

struct Streams {
    stdin: Option<StreamFile>,
    stdout: Option<StreamFile>,
}

/// A file in a folder of its own.
struct StreamFile {
    folder: TempDir,
    path: PathBuf,
}

impl StreamFile {
    fn new(name: &str) -> anyhow::Result<Self> {
        crate::scratch::prepare()?;
        let folder = tempfile::Builder::new().prefix("remat-opt-").tempdir();
        let folder = folder.context("cannot create a temporary folder")?;
        let path = folder.path().join(name);
        Ok(Self { folder, path })
    }
}

/// Whether a path stands for a stream.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Puts a file in the place of the one path among `inputs` that is `-`. `extension` says what it holds, where the caller knows that.
///
/// # Errors
/// If two paths are `-`, if stdin is a terminal, or if it cannot be read.
pub(crate) fn read_stdin(inputs: Vec<&mut PathBuf>, extension: Option<&str>) -> anyhow::Result<()> {
    let mut named: Vec<_> = inputs.into_iter().filter(|path| is_stream(path)).collect();
    let Some(place) = named.pop() else {
        if extension.is_some() {
            bail!("`--input-format` says what stdin holds, and no input is `-`");
        }
        return Ok(());
    };
    if !named.is_empty() {
        bail!("only one input can be `-`: stdin is read once");
    }
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        bail!("`-` reads from stdin, which is a terminal: pipe a file into it");
    }
    let mut head = Vec::new();
    stdin
        .by_ref()
        .take(1 << 12)
        .read_to_end(&mut head)
        .context("cannot read stdin")?;
    let found = if extension == Some("log") && is_gzip(&head) {
        "log.gz"
    } else {
        extension.unwrap_or_else(|| sniffed(&head))
    };
    let held = StreamFile::new(&format!("stdin.{found}"))?;
    let mut file = OutputFile::create(&held.path).context("cannot keep what stdin holds")?;
    file.write_all(&head).context("cannot keep what stdin holds")?;
    std::io::copy(&mut stdin, &mut file).context("cannot keep what stdin holds")?;
    file.commit().context("cannot keep what stdin holds")?;
    place.clone_from(&held.path);
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner).stdin = Some(held);
    Ok(())
}

/// Puts a file in the place of the one path among `outputs` that is `-`, with the extension beside it. From then on the report goes to
/// stderr.
///
/// # Errors
/// If two paths are `-`, or if bytes that are no text would go to a terminal.
pub(crate) fn hold_stdout(outputs: Vec<(&mut PathBuf, &str)>) -> anyhow::Result<()> {
    let mut named: Vec<_> = outputs.into_iter().filter(|(path, _)| is_stream(path)).collect();
    let Some((place, extension)) = named.pop() else {
        return Ok(());
    };
    if !named.is_empty() {
        bail!("only one output can be `-`: stdout is one file");
    }
    if matches!(extension, "onnx" | "sched") && std::io::stdout().is_terminal() {
        bail!("`-` writes to stdout, which is a terminal, and `.{extension}` is not text: redirect it");
    }
    let held = StreamFile::new(&format!("stdout.{extension}"))?;
    place.clone_from(&held.path);
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner).stdout = Some(held);
    Ok(())
}

/// Whether an output goes to stdout, so that reports do not.
pub(crate) fn stdout_is_taken() -> bool {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner).stdout.is_some()
}

/// Whether an input comes from stdin.
pub(crate) fn stdin_is_held() -> bool {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner).stdin.is_some()
}

/// A text in which the files that stand for streams are called `-`.
pub(crate) fn shown(text: &str) -> String {
    let streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let held = streams.stdin.iter().chain(&streams.stdout);
    held.fold(text.to_owned(), |text, held| {
        text.replace(&*held.path.to_string_lossy(), "-")
    })
}

/// Copies what was written for stdout there.
///
/// # Errors
/// If stdout cannot be written to, or cannot hold what was written. A reader that went away (`| head`) is no error.
pub(crate) fn deliver() -> anyhow::Result<()> {
    let streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(held) = streams.stdout.as_ref().filter(|held| held.path.exists()) else {
        return Ok(());
    };
    let beside = std::fs::read_dir(held.folder.path()).context("cannot read what was written")?;
    if beside.count() > 1 {
        bail!(
            "weights of this model lie in files of their own, which stdout cannot hold: write to a file instead of `-`"
        );
    }
    let mut file = File::open(&held.path).context("cannot read what was written")?;
    let mut out = std::io::stdout().lock();
    match std::io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// Removes the files that stood for the streams.
pub(crate) fn close() {
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    (streams.stdin, streams.stdout) = (None, None);
}

fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// The extension of what begins so.
fn sniffed(head: &[u8]) -> &'static str {
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    let line = head
        .split(|&byte| byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty());
    let has = |line: &[u8], word: &[u8]| line.windows(word.len()).any(|part| part == word);
    let is_text = head.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
    if is_gzip(head) {
        "log.gz"
    } else if head.starts_with(b"RMTS") {
        "sched"
    } else if first == Some(&b'{') {
        // A log has one object in each line.
        if line.is_some_and(|line| has(line, b"\"INSTRUCTION\"")) {
            "log"
        } else {
            "json"
        }
    } else if is_text && first.is_some() {
        "mlir"
    } else {
        "onnx"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stdin_holds_is_told_from_its_beginning() {
        for (head, extension) in [
            (&b"\x08\x0a\x12\x07pytorch"[..], "onnx"),
            (b"\n\x07pytorch", "onnx"),
            (b"", "onnx"),
            (b"  {\"nodes\": []", "json"),
            (b"{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x1\"}\n", "log"),
            (b"\x1f\x8b\x08", "log.gz"),
            (b"RMTS\x01", "sched"),
            (b"// a module\nfunc.func @f()", "mlir"),
        ] {
            assert_eq!(sniffed(head), extension, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
