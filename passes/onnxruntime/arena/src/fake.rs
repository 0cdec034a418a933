//! A session without a runtime: it does what its plans say, or something else, and looks at every step whether live buffers overlap.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::account::{Account, Credit, Denied};
use crate::blocks::{Blocks, Elsewhere};
use crate::formula::{Derived, Formula, OpenDim};
use crate::ledger::Thread;
use crate::pages::Memory;
use crate::plans::Plans;
use crate::{ArenaPlan, ArenaPlanFile, PlannedBuffer};

/// Where addresses outside of blocks begin.
const OUTSIDE: usize = 1 << 40;
const GAP: usize = 1 << 30;

/// Address space that only remembers what was done to it.
#[derive(Clone, Default)]
pub(crate) struct Noted(pub(crate) Arc<Mutex<Notes>>);

#[derive(Default)]
pub(crate) struct Notes {
    mapped: BTreeMap<usize, usize>,
    maps: usize,
    /// The largest mapping that there is room for, where that is limited.
    pub(crate) room: Option<usize>,
    /// How far mappings are about to be used, whenever that was said.
    pub(crate) expected: Vec<usize>,
    forgotten: Vec<Range<usize>>,
    /// Whether other sessions have the same bytes.
    pub(crate) is_shared: bool,
    /// How many turns are over.
    pub(crate) left: usize,
}

impl Noted {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap()
    }
}

impl Memory for Noted {
    fn map(&self, bytes: usize) -> Option<usize> {
        let mut notes = self.notes();
        if notes.room.is_some_and(|room| bytes > room) {
            return None;
        }
        notes.maps += 1;
        let base = notes.maps * GAP;
        assert!(bytes <= GAP);
        notes.mapped.insert(base, bytes);
        Some(base)
    }

    fn expect(&self, addresses: Range<usize>) {
        self.notes().expected.push(addresses.end % GAP);
    }

    fn unmap(&self, start: usize, bytes: usize) {
        assert_eq!(self.notes().mapped.remove(&start), Some(bytes));
    }

    fn is_shared(&self) -> bool {
        self.notes().is_shared
    }

    fn leave(&self) {
        self.notes().left += 1;
    }

    fn forget(&self, addresses: Range<usize>) {
        self.notes().forgotten.push(addresses);
    }
}

/// A session: what the runtime would see, checked at every step.
pub(crate) struct Session {
    pub(crate) blocks: Blocks<Noted>,
    pub(crate) memory: Noted,
    /// Live buffers by address.
    pub(crate) live: BTreeMap<usize, usize>,
    next_outside: usize,
}

impl Session {
    pub(crate) fn new(plans: &[ArenaPlan]) -> Self {
        Self::of(&file(plans))
    }

    pub(crate) fn of(file: &ArenaPlanFile) -> Self {
        Self::under(file, Account::new(Arc::default(), None, true))
    }

    pub(crate) fn under(file: &ArenaPlanFile, account: Account) -> Self {
        let memory = Noted::default();
        Self {
            blocks: Blocks::new(Arc::new(Plans::new(file)), memory.clone(), account),
            memory,
            live: BTreeMap::new(),
            next_outside: OUTSIDE,
        }
    }

    pub(crate) fn allocate(&mut self, thread: Thread, bytes: u64) -> usize {
        self.try_allocate(thread, bytes, &mut Credit::default())
            .expect("it fits")
    }

    pub(crate) fn try_allocate(&mut self, thread: Thread, bytes: u64, credit: &mut Credit) -> Result<usize, Denied> {
        let size = usize::try_from(bytes).expect("it is small");
        let allocated = self.blocks.allocate(thread, bytes, credit);
        self.check_forgotten();
        let address = match allocated {
            Ok(address) => {
                let notes = self.memory.notes();
                let block = notes.mapped.range(..=address).next_back();
                let (base, mapped) = block.expect("it lies in a block");
                assert!(address + size <= base + mapped, "it ends in its block");
                address
            }
            Err(Elsewhere::Denied(denied)) => return Err(denied),
            Err(Elsewhere::Outside(origin)) => {
                let address = self.next_outside;
                self.next_outside += size.next_multiple_of(64);
                self.blocks.adopt(address, bytes, origin);
                address
            }
        };
        let below = self.live.range(..address + size).next_back();
        assert!(
            below.is_none_or(|(&start, &size)| start + size <= address),
            "two live buffers overlap"
        );
        self.live.insert(address, size);
        self.blocks.decline(std::mem::take(credit));
        Ok(address)
    }

    pub(crate) fn free(&mut self, address: usize) {
        assert!(self.live.remove(&address).is_some());
        assert_eq!(self.blocks.free(address), address < OUTSIDE);
        self.check_forgotten();
        // A block goes when nothing in it is live.
        let notes = self.memory.notes();
        for &address in self.live.keys().filter(|&&address| address < OUTSIDE) {
            let (base, bytes) = notes.mapped.range(..=address).next_back().expect("it lies in a block");
            assert!(address < base + bytes);
        }
    }

    pub(crate) fn trim(&mut self) -> u64 {
        let bytes = self.blocks.trim();
        self.check_forgotten();
        bytes
    }

    /// What was given back is no part of a live buffer.
    pub(crate) fn check_forgotten(&self) {
        for range in self.memory.notes().forgotten.drain(..) {
            let below = self.live.range(..range.end).next_back();
            assert!(
                below.is_none_or(|(&start, &size)| start + size <= range.start),
                "{range:?} is live"
            );
        }
    }

    /// A run that does what the plan says; the outputs.
    pub(crate) fn run(&mut self, thread: Thread, plan: &ArenaPlan) -> Vec<usize> {
        self.run_at(thread, plan, &[])
    }

    /// The same where the variables of its sizes have these values.
    pub(crate) fn run_at(&mut self, thread: Thread, plan: &ArenaPlan, variables: &[i128]) -> Vec<usize> {
        self.run_until(thread, plan, variables, u64::MAX)
    }

    /// The same, aborted at a time: what is no output is freed.
    pub(crate) fn run_until(&mut self, thread: Thread, plan: &ArenaPlan, variables: &[i128], end: u64) -> Vec<usize> {
        let mut live: Vec<(u64, usize)> = Vec::new();
        let mut outputs = Vec::new();
        for buffer in plan.buffers.iter().take_while(|buffer| buffer.first < end) {
            let (ended, left) = live.into_iter().partition(|&(last, _)| last <= buffer.first);
            live = left;
            let ended: Vec<(u64, usize)> = ended;
            ended.into_iter().for_each(|(_, address)| self.free(address));
            let bytes = u64::try_from(buffer.size.value(variables).expect("it is small").max(0)).expect("it is small");
            if bytes == 0 {
                continue;
            }
            let address = self.allocate(thread, bytes);
            if buffer.is_output {
                outputs.push(address);
            } else {
                live.push((buffer.last, address));
            }
        }
        live.into_iter().for_each(|(_, address)| self.free(address));
        outputs
    }

    pub(crate) fn free_all(&mut self, addresses: Vec<usize>) {
        addresses.into_iter().for_each(|address| self.free(address));
    }

    pub(crate) fn mapped(&self) -> usize {
        self.memory.notes().mapped.len()
    }

    /// Loads a session with one weight.
    pub(crate) fn load(&mut self) -> usize {
        self.blocks.load_begins(1);
        let weight = self.allocate(1, 64);
        self.blocks.load_ends(1);
        weight
    }
}

pub(crate) fn sized(size: Formula, life: Range<u64>, rank: u32) -> PlannedBuffer {
    PlannedBuffer {
        size,
        is_exact: true,
        first: life.start,
        last: life.end,
        ranks: Some(vec![rank]),
        is_output: false,
    }
}

pub(crate) fn buffer(bytes: u32, life: Range<u64>, rank: u32) -> PlannedBuffer {
    sized(Formula::constant(bytes.into()), life, rank)
}

pub(crate) fn plan(buffers: Vec<PlannedBuffer>) -> ArenaPlan {
    ArenaPlan {
        inputs: Vec::new(),
        orders: 1,
        first: 0,
        buffers,
    }
}

pub(crate) fn file(plans: &[ArenaPlan]) -> ArenaPlanFile {
    open(plans, &[], Vec::new())
}

/// Plans for a model that leaves dimensions open.
pub(crate) fn open(plans: &[ArenaPlan], ranges: &[(u64, u64)], derived: Vec<Derived>) -> ArenaPlanFile {
    let dim = |&(least, most): &(u64, u64)| OpenDim {
        name: "n".to_owned(),
        least,
        most,
    };
    ArenaPlanFile {
        dims: ranges.iter().map(dim).collect(),
        derived,
        plans: plans.to_vec(),
        ..ArenaPlanFile::default()
    }
}

/// Three buffers and an output, of which the first and the third share their bytes; `size` is that of the second.
pub(crate) fn small(size: u32) -> ArenaPlan {
    let output = PlannedBuffer {
        is_output: true,
        ..buffer(100, 4..6, 0)
    };
    plan(vec![
        buffer(128, 0..3, 1),
        buffer(size, 1..5, 2),
        buffer(100, 3..5, 1),
        output,
    ])
}

/// A chain whose sizes are products of two dimensions and a quotient, with scratch of at most a product.
pub(crate) fn chain() -> ArenaPlanFile {
    let product = |factor: i64, powers: &[(usize, u32)]| Formula::sum([(factor, powers.to_vec())]);
    let scratch = PlannedBuffer {
        is_exact: false,
        ..sized(product(64, &[(2, 1)]), 3..4, 9)
    };
    let output = PlannedBuffer {
        is_output: true,
        ..sized(product(4, &[(0, 1)]), 7..9, 0)
    };
    let buffers = vec![
        buffer(4096, 0..2, 0),
        sized(product(64, &[(0, 1), (1, 1)]), 1..5, 1),
        scratch,
        sized(product(64, &[(0, 1), (2, 2)]), 4..6, 2),
        sized(product(16, &[(0, 1), (1, 2)]), 5..8, 3),
        output,
    ];
    let derived = vec![Derived::Quotient(Formula::sum([(1, vec![(1, 1)]), (1, Vec::new())]), 2)];
    open(
        &[ArenaPlan {
            first: 2,
            ..plan(buffers)
        }],
        &[(1, 16), (1, 64)],
        derived,
    )
}
