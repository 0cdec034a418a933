//! What the runs of a session ask the ledger of the process for, and what they got.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ledger::{Request, Stage, Thread, Verdict};
use crate::limit::Limit;

/// The share of a session in what the process has reserved.
#[derive(Debug)]
pub(crate) struct Account {
    limit: Arc<Limit>,
    /// The most bytes of the process with which a run of this session may go on; none without a limit.
    pub(crate) most_bytes: Option<u64>,
    /// Whether runs wait for room; else they are refused.
    pub(crate) waits: bool,
    /// What is reserved.
    reserved: u64,
    /// Most of that at one time.
    most_reserved: u64,
    /// Live buffers by thread that no plan foresaw.
    unforeseen: BTreeMap<Thread, usize>,
}

/// Why bytes are not reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// They may be there later, or when others give back what they do not use.
    Short(Request),
    /// A run needs its turn in a block that sessions share.
    Turn,
    /// They will never be there. So many bytes were reserved then.
    Refused(Request, u64),
}

/// What came of asking for a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Taken,
    /// Whoever has it may wait for who asks: the buffer has to lie elsewhere.
    Refused,
}

/// What an allocation got and did not use yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Credit {
    pub(crate) bytes: u64,
    /// The thread, if the ledger has noted that a run of it goes on.
    pub(crate) enters: Option<Thread>,
    /// What came of asking for a turn in the block that sessions share.
    pub(crate) turn: Option<Turn>,
}

impl Credit {
    /// What was granted on a request.
    pub(crate) fn add(&mut self, request: &Request, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if request.enters {
            self.enters = Some(request.thread);
        }
    }
}

/// Tries until what is tried has what it asks for, or never will have it. Between two tries others give back what they do not use; then it
/// waits. Both is done without the locks that `attempt` takes. The time it waited is told.
pub(crate) fn insist<T>(
    limit: &Limit,
    credit: &mut Credit,
    mut attempt: impl FnMut(&mut Credit) -> Result<T, Denied>,
    mut turn: impl FnMut() -> Turn,
    trim: impl FnOnce(),
    mut waited: impl FnMut(Duration),
) -> Result<T, (Request, u64)> {
    let mut trim = Some(trim);
    let mut shortage = None;
    loop {
        let request = match attempt(credit) {
            Ok(done) => return Ok(done),
            Err(Denied::Refused(request, reserved)) => return Err((request, reserved)),
            Err(Denied::Short(request)) => request,
            Err(Denied::Turn) => {
                credit.turn = Some(turn());
                continue;
            }
        };
        if let Some(trim) = trim.take() {
            // From now on runs that end give their pages back, too.
            shortage.get_or_insert_with(|| limit.shortage());
            trim();
            continue;
        }
        let start = Instant::now();
        let verdict = limit.wait(request);
        if request.waits {
            waited(start.elapsed());
        }
        match verdict {
            Verdict::Granted(bytes) => credit.add(&request, bytes),
            Verdict::Refused(reserved) => return Err((request, reserved)),
        }
    }
}

impl Account {
    pub(crate) fn new(limit: Arc<Limit>, most_bytes: Option<u64>, waits: bool) -> Self {
        Self {
            limit,
            most_bytes,
            waits,
            reserved: 0,
            most_reserved: 0,
            unforeseen: BTreeMap::new(),
        }
    }

    /// The limit of a request.
    pub(crate) fn limit(&self) -> u64 {
        self.most_bytes.unwrap_or(u64::MAX)
    }

    /// Adds what is requested to a credit, if it is there.
    pub(crate) fn ask(&self, request: Request, credit: &mut Credit) -> Result<(), Denied> {
        match self.limit.ask(request) {
            Some(Verdict::Granted(bytes)) => {
                credit.add(&request, bytes);
                Ok(())
            }
            Some(Verdict::Refused(reserved)) => Err(Denied::Refused(request, reserved)),
            None => Err(Denied::Short(request)),
        }
    }

    /// Reserves the bytes of a buffer that no plan foresees; `holds` says whether a run of the thread holds others.
    pub(crate) fn reserve_unforeseen(
        &mut self,
        thread: Thread,
        bytes: u64,
        holds: bool,
        credit: &mut Credit,
    ) -> Result<(), Denied> {
        if credit.bytes < bytes {
            let request = Request {
                thread,
                bytes: bytes - credit.bytes,
                rather: 0,
                stage: Stage::Beside,
                need: bytes,
                limit: self.limit(),
                waits: self.waits,
                begins: !holds && !self.unforeseen.contains_key(&thread),
                enters: false,
            };
            self.ask(request, credit)?;
        }
        credit.bytes = credit.bytes.saturating_sub(bytes);
        self.spend(bytes);
        *self.unforeseen.entry(thread).or_default() += 1;
        Ok(())
    }

    /// A buffer that no plan foresaw is gone.
    pub(crate) fn drop_unforeseen(&mut self, thread: Thread, bytes: u64) {
        let count = self.unforeseen.get(&thread).copied().unwrap_or(0);
        if count > 1 {
            self.unforeseen.insert(thread, count - 1);
        } else {
            self.unforeseen.remove(&thread);
        }
        self.give_back(bytes, None);
    }

    /// Bytes of a credit become some of this session.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_add(bytes);
        self.most_reserved = self.most_reserved.max(self.reserved);
    }

    /// Bytes of this session are no longer reserved; with a thread, those of a run of it that is over.
    pub(crate) fn give_back(&mut self, bytes: u64, leaves: Option<Thread>) {
        self.reserved = self.reserved.saturating_sub(bytes);
        match leaves {
            Some(thread) => self.limit.leave(thread, bytes),
            None => self.limit.give_back(bytes),
        }
    }

    /// Hands back what was granted and not used.
    pub(crate) fn decline(&self, credit: Credit) {
        match credit.enters {
            Some(thread) => self.limit.leave(thread, credit.bytes),
            None => self.limit.give_back(credit.bytes),
        }
    }

    /// It is known now what the run of this thread needs, and it has that.
    pub(crate) fn knows(&self, thread: Thread) {
        self.limit.knows(thread);
    }

    /// Whether an allocation of any session needs bytes that nobody uses.
    pub(crate) fn is_short(&self) -> bool {
        self.limit.is_short()
    }

    /// Bytes that are reserved now, and most at one time.
    pub(crate) fn reserved(&self) -> (u64, u64) {
        (self.reserved, self.most_reserved)
    }
}
