//! A process that is asked one question: it has a deadline, ends with the process that started it, and leaves nothing behind.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use remat_files::ScratchFolder;

use crate::meter;

/// How often the deadline and the flag are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// How to start the process that runs models: a program that calls [`serve`](crate::serve).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// How long a child may take, and who may stop it. By default it takes as long as it takes, and nobody stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildLimits<'a> {
    /// Time from the start of the child until it is killed.
    pub time: Option<Duration>,
    /// The child is killed soon after this becomes `true`.
    pub cancel: Option<&'a AtomicBool>,
}

impl ChildLimits<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// How a process ended that was asked something.
#[derive(Debug)]
pub enum Ended {
    /// By itself.
    Itself {
        /// How.
        status: ExitStatus,
        /// The line that starts with the mark of an answer, without the mark.
        answer: Option<String>,
        /// The last line of its error stream that is not blank.
        last_words: Option<String>,
    },
    /// Killed: its time was over.
    TimedOut(Duration),
    /// Killed: somebody said so. Also where it was never started for that reason.
    Cancelled,
}

/// Starts the process, writes `question` to its standard input, and waits for its end. With `metered`, the heap meter is preloaded.
///
/// Its temporary files lie in a folder of its own, which is removed with it, whatever it left there.
///
/// # Errors
/// If it cannot be started.
pub fn ask(
    command: &ChildCommand,
    limits: ChildLimits<'_>,
    metered: bool,
    question: String,
    mark: &'static str,
) -> std::io::Result<Ended> {
    if limits.is_cancelled() {
        return Ok(Ended::Cancelled);
    }
    let scratch = ScratchFolder::new("run-")?;
    let mut child = Command::new(&command.program);
    child
        .args(&command.arguments)
        .env(if cfg!(windows) { "TMP" } else { "TMPDIR" }, scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if metered && let Some(meter) = meter::write(scratch.path())? {
        // Another allocator that the caller preloads would answer in the meter's place.
        child.env("LD_PRELOAD", meter);
    }
    // Ctrl-C in a terminal goes to the whole group: the caller alone decides what becomes of the child.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut child, 0);
    let started = Instant::now();
    let mut running = Running(child.spawn()?);
    let streams = running.listen(question, mark);
    running.wait(&streams, started, limits)
}

/// A process that is killed where it is not waited for.
struct Running(Child);

/// What a stream of the process came to.
enum Heard {
    Answer(Option<String>),
    LastWords(Option<String>),
}

impl Running {
    /// Serves all three streams from threads of their own, so that no full pipe stops anybody.
    fn listen(&mut self, question: String, mark: &'static str) -> Receiver<Heard> {
        let (send, receive) = channel();
        if let Some(mut input) = self.0.stdin.take() {
            // A process that died before it read says so by its status.
            thread::spawn(move || _ = writeln!(input, "{question}"));
        }
        let (out, err) = (self.0.stdout.take(), self.0.stderr.take());
        let answer = move |line: String| line.strip_prefix(mark).map(str::to_owned);
        hear(out, send.clone(), Heard::Answer, answer);
        hear(err, send, Heard::LastWords, |line| {
            let line = line.trim();
            (!line.is_empty()).then(|| line.to_owned())
        });
        receive
    }

    /// Waits until both streams are closed and the process is over, or kills it.
    fn wait(&mut self, streams: &Receiver<Heard>, started: Instant, limits: ChildLimits<'_>) -> std::io::Result<Ended> {
        let (mut answer, mut last_words, mut open) = (None, None, true);
        loop {
            if open {
                match streams.recv_timeout(LOOK) {
                    Ok(Heard::Answer(line)) => answer = line,
                    Ok(Heard::LastWords(line)) => last_words = line,
                    Err(RecvTimeoutError::Disconnected) => open = false,
                    Err(RecvTimeoutError::Timeout) => {}
                }
            } else if let Some(status) = self.0.try_wait()? {
                return Ok(Ended::Itself {
                    status,
                    answer,
                    last_words,
                });
            } else {
                thread::sleep(LOOK);
            }
            if limits.is_cancelled() {
                return Ok(Ended::Cancelled);
            }
            if let Some(time) = limits.time.filter(|&time| started.elapsed() >= time) {
                return Ok(Ended::TimedOut(time));
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that is over already there is nothing left to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a stream to its end in a thread of its own, and sends the last line of which `pick` makes something.
fn hear(
    stream: Option<impl Read + Send + 'static>,
    send: Sender<Heard>,
    as_what: fn(Option<String>) -> Heard,
    pick: impl Fn(String) -> Option<String> + Send + 'static,
) {
    let Some(stream) = stream else { return };
    thread::spawn(move || {
        let mut last = None;
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            last = pick(String::from_utf8_lossy(&line).into_owned()).or(last);
        }
        // Nobody listens any more where the process was killed.
        let _ = send.send(as_what(last));
    });
}

/// Ties this process to the one that started it: it is killed where that one dies. Does nothing on systems other than Linux.
///
/// # Errors
/// If the parent, whose number is given, is gone already.
pub fn die_with(parent: u32) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let is_there = getppid().is_some_and(|now| u32::try_from(now.as_raw_nonzero().get()) == Ok(parent));
        if !is_there {
            return Err(std::io::Error::other("the process that asked is gone"));
        }
    }
    let _ = parent;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildCommand {
        ChildCommand {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        }
    }

    fn run(script: &str, limits: ChildLimits<'_>) -> Ended {
        ask(&shell(script), limits, false, "question".to_owned(), "answer ").expect("there is a shell")
    }

    #[test]
    fn the_answer_and_the_last_words_are_heard() {
        let ended = run(
            "read q; echo words; echo answer $q; echo why >&2; echo >&2; exit 3",
            ChildLimits::default(),
        );
        let Ended::Itself {
            status,
            answer,
            last_words,
        } = ended
        else {
            panic!("{ended:?}")
        };
        assert_eq!(status.code(), Some(3));
        assert_eq!(answer.as_deref(), Some("question"));
        assert_eq!(last_words.as_deref(), Some("why"));
    }

    #[test]
    fn a_process_that_talks_without_end_does_not_stop_at_a_full_pipe() {
        let talk = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; echo answer done";
        let ended = run(talk, ChildLimits::default());
        assert!(
            matches!(&ended, Ended::Itself { answer: Some(answer), .. } if answer == "done"),
            "{ended:?}"
        );
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_at_its_deadline() {
        let time = Some(Duration::from_millis(200));
        let limits = ChildLimits { time, cancel: None };
        let started = Instant::now();
        let ended = run("exec sleep 600", limits);
        assert!(matches!(ended, Ended::TimedOut(_)), "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_process_that_closed_its_streams_has_the_same_deadline() {
        let time = Some(Duration::from_millis(200));
        let limits = ChildLimits { time, cancel: None };
        let ended = run("exec sleep 600 >&- 2>&-", limits);
        assert!(matches!(ended, Ended::TimedOut(_)), "{ended:?}");
    }

    #[test]
    fn a_flag_kills_the_process_and_keeps_others_from_starting() {
        let flag = AtomicBool::new(false);
        let limits = ChildLimits {
            time: None,
            cancel: Some(&flag),
        };
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                flag.store(true, Ordering::Relaxed);
            });
            run("exec sleep 600", limits)
        });
        assert!(matches!(ended, Ended::Cancelled), "{ended:?}");
        assert!(matches!(run("echo answer", limits), Ended::Cancelled));
    }

    #[test]
    fn what_a_killed_process_left_in_its_temporary_folder_is_removed() {
        let limits = ChildLimits {
            time: Some(Duration::from_millis(500)),
            cancel: None,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("note");
        let script = format!(
            "echo left > $TMPDIR/left; echo $TMPDIR > {}; exec sleep 600",
            note.display()
        );
        assert!(matches!(run(&script, limits), Ended::TimedOut(_)));
        let named = std::fs::read_to_string(&note).expect("it was written");
        assert!(named.contains("remat-run-"), "{named}");
        assert!(!PathBuf::from(named.trim()).exists(), "{named}");
    }
}
