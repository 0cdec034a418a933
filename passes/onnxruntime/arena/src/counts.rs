//! What is known of the allocations of sessions, as numbers that others read.

/// What is known of the allocations of sessions. The layout is that of `remat_arena_figures` in C, and only ever grows at its end.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocationCounts {
    /// Runs that began as a plan does.
    pub runs: u64,
    /// Buffers that got their planned offset.
    pub placed: u64,
    /// Buffers that stay outside by plan.
    pub planned_outside: u64,
    /// Buffers that no plan foresees.
    pub missed: u64,
    /// Buffers whose planned bytes were taken.
    pub refused: u64,
    /// Buffers that were allocated while a session loaded.
    pub at_load: u64,
    /// Blocks now.
    pub blocks: u64,
    /// Bytes of the largest block that the plans may need.
    pub block_bytes: u64,
    /// Most blocks at one time.
    pub most_blocks: u64,
    /// Bytes of runs outside of blocks now.
    pub outside_bytes: u64,
    /// Most bytes of runs outside of blocks at one time.
    pub most_outside_bytes: u64,
    /// Bytes of blocks that runs wrote to and that were not given back, at most.
    pub used_bytes: u64,
    /// Most such bytes at one time.
    pub most_used_bytes: u64,
    /// Shapes whose offsets are kept.
    pub shapes: u64,
    /// Allocations that waited for other runs to make room.
    pub waits: u64,
    /// How long they waited, together.
    pub waiting_nanoseconds: u64,
    /// Allocations that were refused, and the run with them, because of a limit.
    pub refused_runs: u64,
    /// The limit; 0 without one. Of several sessions the smallest.
    pub limit_bytes: u64,
    /// Bytes that count against limits now: of blocks what runs reserved or left, and what runs have outside of blocks.
    pub reserved_bytes: u64,
    /// Most such bytes at one time.
    pub most_reserved_bytes: u64,
    /// Bytes by which the process shrank when the heap gave back what loading had left.
    pub returned_bytes: u64,
    /// Bytes of weights that were asked for ahead.
    pub weights_asked_bytes: u64,
    /// Bytes of weights that were dropped.
    pub weights_dropped_bytes: u64,
    /// Bytes in memory of the block that it shares with other sessions; of all sessions together each block once.
    pub shared_bytes: u64,
    /// Bytes that runs wrote to second memories. This and what follows is of the process.
    pub paged_out_bytes: u64,
    /// Bytes that runs read from second memories.
    pub paged_in_bytes: u64,
    /// Bytes in second memories now.
    pub second_memory_bytes: u64,
    /// Most such bytes at one time.
    pub most_second_memory_bytes: u64,
}

impl AllocationCounts {
    /// Adds those of another session.
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.placed += other.placed;
        self.planned_outside += other.planned_outside;
        self.missed += other.missed;
        self.refused += other.refused;
        self.at_load += other.at_load;
        self.blocks += other.blocks;
        self.block_bytes = self.block_bytes.max(other.block_bytes);
        self.most_blocks += other.most_blocks;
        self.outside_bytes += other.outside_bytes;
        self.most_outside_bytes += other.most_outside_bytes;
        self.used_bytes += other.used_bytes;
        self.most_used_bytes += other.most_used_bytes;
        self.shapes += other.shapes;
        self.waits += other.waits;
        self.waiting_nanoseconds += other.waiting_nanoseconds;
        self.refused_runs += other.refused_runs;
        let limits = [self.limit_bytes, other.limit_bytes]
            .into_iter()
            .filter(|&limit| limit > 0);
        self.limit_bytes = limits.min().unwrap_or(0);
        self.reserved_bytes += other.reserved_bytes;
        self.most_reserved_bytes += other.most_reserved_bytes;
        self.returned_bytes += other.returned_bytes;
        self.weights_asked_bytes += other.weights_asked_bytes;
        self.shared_bytes += other.shared_bytes;
        self.weights_dropped_bytes += other.weights_dropped_bytes;
    }
}

/// An allocation, or a free, that was recorded. The layout is that of `remat_arena_event` in C.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedEvent {
    /// Where the buffer lies.
    pub address: u64,
    /// Its size; 0 when it is freed.
    pub bytes: u64,
    /// The thread, by a number.
    pub thread: u64,
}
