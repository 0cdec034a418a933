//! How the arena is set up, and what the runtime leaves to the C library.

/// How the arena grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// By regions whose sizes double (the default).
    NextPowerOfTwo,
    /// By what is asked for.
    SameAsRequested,
}

/// Where the C library puts the regions: of free chunks of one size the arena hands out that with the lowest address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionOrder {
    /// Each below the one before, as fresh mappings of a process lie.
    Descending,
    /// Each above the one before, as in a heap that grows.
    Ascending,
    /// Below and above in turns: gaps that earlier mappings left are filled first.
    Alternating,
}

impl RegionOrder {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Descending, Self::Ascending, Self::Alternating];
}

/// How the arena is set up; the default is the runtime's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArenaSettings {
    /// How it grows.
    pub growth: Growth,
    /// Size of the first region.
    pub initial_bytes: u64,
    /// A free chunk is handed out whole unless at least so much of it would be left over, or half of it.
    pub largest_waste: u64,
    /// `enable_mem_pattern`: whether later runs take one block for all results.
    pub pattern: bool,
    /// Whether all nodes stand in the branch of an `If`: then graph outputs whose shapes the runtime knows when it loads the file are there before the
    /// first node runs.
    pub in_branch: bool,
    /// What the runtime does not decide.
    pub regions: RegionOrder,
}

impl Default for ArenaSettings {
    fn default() -> Self {
        Self {
            growth: Growth::NextPowerOfTwo,
            initial_bytes: 1 << 20,
            largest_waste: 128 << 20,
            pattern: true,
            in_branch: false,
            regions: RegionOrder::Descending,
        }
    }
}
