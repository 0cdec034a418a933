//! Where a run stands in the plans: what a run allocates says which plan it follows, and how far it is.

use crate::ArenaPlan;
use crate::plan::ALIGNMENT;

/// So far a run that lost its plan looks ahead in it for an allocation of the size at hand.
const LOOK_AHEAD: usize = 64;

/// The plans of a session in the form that runs follow.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    /// The largest block.
    block_bytes: u64,
}

#[derive(PartialEq, Eq, Debug)]
struct Plan {
    block_bytes: u64,
    sizes: Vec<u64>,
    spots: Vec<Spot>,
    /// How many buffers that are no outputs are live just before each allocation.
    live: Vec<usize>,
}

/// Where a buffer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// The offset in the block; without it the buffer stays outside.
    pub(crate) offset: Option<u64>,
    /// Whether it outlives the run.
    pub(crate) is_output: bool,
}

impl Plans {
    pub(crate) fn new(plans: &[ArenaPlan]) -> Self {
        let plans: Vec<Plan> = plans.iter().map(Plan::new).collect();
        Self {
            block_bytes: plans.iter().map(|plan| plan.block_bytes).max().unwrap_or(0),
            plans,
        }
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The start of a run whose first allocation has this size, by the plan `preferred` if that begins so.
    pub(crate) fn begin(&self, preferred: usize, bytes: u64) -> Option<Cursor> {
        let begins = |plan: &Plan| plan.sizes.first() == Some(&bytes);
        let plan = match self.plans.get(preferred) {
            Some(plan) if begins(plan) => preferred,
            _ => self.plans.iter().position(begins)?,
        };
        Some(Cursor {
            plan,
            next: 0,
            follows: true,
        })
    }
}

impl Plan {
    fn new(plan: &ArenaPlan) -> Self {
        let buffers = &plan.buffers;
        let mut ends: Vec<u64> = buffers
            .iter()
            .filter(|buffer| !buffer.is_output)
            .map(|buffer| buffer.last)
            .collect();
        ends.sort_unstable();
        let mut begun = 0;
        let mut live = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let ended = ends.partition_point(|&end| end <= buffer.first);
            live.push(usize::saturating_sub(begun, ended));
            begun += usize::from(!buffer.is_output);
        }
        Self {
            block_bytes: plan.block_bytes.next_multiple_of(ALIGNMENT),
            sizes: buffers.iter().map(|buffer| buffer.bytes).collect(),
            spots: buffers
                .iter()
                .map(|buffer| Spot {
                    offset: buffer.offset,
                    is_output: buffer.is_output,
                })
                .collect(),
            live,
        }
    }
}

/// How far a run is.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    plan: usize,
    /// The next allocation.
    next: usize,
    /// Whether all allocations so far were those of the plan.
    follows: bool,
}

impl Cursor {
    /// How many allocations of the plan were made or passed over.
    pub(crate) fn place(&self) -> usize {
        self.next
    }

    /// The plan that the run follows.
    pub(crate) fn plan(&self) -> usize {
        self.plan
    }

    /// Bytes of the block that the plan uses.
    pub(crate) fn block_bytes(&self, plans: &Plans) -> u64 {
        self.plan_of(plans).map_or(0, |plan| plan.block_bytes)
    }

    /// Whether all buffers of the plan were allocated.
    pub(crate) fn is_complete(&self, plans: &Plans) -> bool {
        self.plan_of(plans).is_none_or(|plan| self.next >= plan.sizes.len())
    }

    /// Whether a run that stands here, of which nothing is live but outputs, is over: it was completed or aborted, or nothing is known of it.
    pub(crate) fn is_over(&self, plans: &Plans) -> bool {
        let expects = |plan: &Plan| plan.live.get(self.next).is_some_and(|&live| live > 0);
        !self.follows || self.is_complete(plans) || self.plan_of(plans).is_some_and(expects)
    }

    /// Whether the next allocation of the plan has this size.
    pub(crate) fn expects(&self, plans: &Plans, bytes: u64) -> bool {
        self.plan_of(plans)
            .is_some_and(|plan| plan.sizes.get(self.next) == Some(&bytes))
    }

    fn plan_of<'p>(&self, plans: &'p Plans) -> Option<&'p Plan> {
        plans.plans.get(self.plan)
    }

    /// Takes the next allocation; `None` for one that no plan foresees.
    pub(crate) fn advance(&mut self, plans: &Plans, bytes: u64) -> Option<Spot> {
        if !self.expects(plans, bytes) {
            self.search(plans, bytes)?;
        }
        let spot = self.plan_of(plans)?.spots.get(self.next).copied();
        self.next += 1;
        spot
    }

    /// Goes to a place where an allocation of this size is next: in a plan that began the same, or a little further in this one.
    fn search(&mut self, plans: &Plans, bytes: u64) -> Option<()> {
        let plan = self.plan_of(plans)?;
        let seen = plan.sizes.get(..self.next)?;
        let is_other = |other: &Plan| other.sizes.starts_with(seen) && other.sizes.get(self.next) == Some(&bytes);
        if self.follows
            && let Some(other) = plans.plans.iter().position(is_other)
        {
            self.plan = other;
            return Some(());
        }
        self.follows = false;
        let ahead = plan.sizes.get(self.next..)?.iter().take(LOOK_AHEAD);
        self.next += ahead.into_iter().position(|&size| size == bytes)?;
        Some(())
    }
}
