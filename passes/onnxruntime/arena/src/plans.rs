//! The plans of a session in the form that runs follow, and what they say for given sizes of the open dimensions.

use std::sync::Arc;

use crate::ceiling::Ceilings;
use crate::formula::{Derived, Formula, intervals, values};
use crate::need::{Need, bytes};
#[cfg(not(arena_library))]
use crate::parts::Proof;
use crate::placement::{Layout, Placed};
use crate::plan::{ArenaPlan, ArenaPlanFile, PlannedBuffer};

/// The plans of a file.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Plans {
    /// Smallest and largest sizes of the open dimensions.
    ranges: Vec<(u64, u64)>,
    derived: Vec<Derived>,
    plans: Vec<Plan>,
    /// What a run of any sizes within the ranges needs at most.
    most: Need,
}

/// A plan.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The sizes of its buffers, each formula once, with the open dimensions on which it depends, as bits.
    formulas: Vec<(Formula, u64)>,
    pub(crate) buffers: Vec<Buffer>,
    /// How many buffers that are certain to be there, and are no outputs, are live just before each allocation.
    live: Vec<usize>,
    /// How many buffers a run allocates before its sizes have told which shape it has.
    first: usize,
    layout: Layout,
    /// Upper bounds of all blocks.
    ceilings: Ceilings,
}

/// A buffer of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Buffer {
    /// Its size, by number.
    pub(crate) formula: usize,
    /// Whether it has exactly this size; else at most.
    pub(crate) is_exact: bool,
    /// Whether it outlives the run.
    pub(crate) is_output: bool,
    /// Whether it may be empty, so that the runtime does not allocate it.
    pub(crate) may_be_empty: bool,
}

/// The buffers of a run by one of the plans, at some sizes of the open dimensions.
#[derive(PartialEq, Eq, Debug)]
pub struct Shape {
    pub(crate) plan: usize,
    /// Sizes of the open dimensions.
    pub(crate) dims: Vec<u64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) placed: Placed,
    /// Most bytes that are live at one time outside of the block.
    pub(crate) outside_bytes: u64,
}

impl Plans {
    /// Prepares the plans of a file.
    #[must_use]
    pub fn new(file: &ArenaPlanFile) -> Self {
        let ranges: Vec<(u64, u64)> = file.dims.iter().map(|dim| (dim.least, dim.most)).collect();
        let depends = dependences(ranges.len(), &file.derived);
        let plans: Vec<Plan> = file
            .plans
            .iter()
            .map(|plan| Plan::new(plan, file.alignment(), (&ranges, &file.derived), &depends))
            .collect();
        Self {
            ranges,
            derived: file.derived.clone(),
            most: plans.iter().map(Plan::most).fold(Need::default(), Need::max),
            plans,
        }
    }

    /// The largest block of any sizes within the ranges.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.most.block
    }

    /// Most bytes of runs of any sizes within the ranges: the largest block, and what lies outside of it, which is all of a plan whose buffers have no
    /// places yet.
    #[must_use]
    #[cfg(not(arena_library))]
    pub fn most_bytes(&self) -> u64 {
        self.most.block.saturating_add(self.most.outside)
    }

    /// What proves that it is.
    #[must_use]
    #[cfg(not(arena_library))]
    pub fn proof(&self) -> Proof {
        let proofs = self.plans.iter().map(|plan| plan.ceilings.proof());
        proofs.max().unwrap_or(Proof::LargestShape)
    }

    /// What a run of any sizes within the ranges needs at most.
    pub(crate) fn most(&self) -> Need {
        self.most
    }

    /// Whether the shape of a run is certain once it allocates the buffer at a place of a plan.
    pub(crate) fn is_certain(&self, plan: usize, place: usize) -> bool {
        self.is_single() || self.plans.get(plan).is_none_or(|plan| place >= plan.first)
    }

    /// Up to where outputs of a single shape lie in its block.
    pub(crate) fn kept_bytes(&self, alignment: u64) -> u64 {
        let dims: Vec<u64> = self.ranges.iter().map(|&(_, most)| most).collect();
        let ends = |place: usize| {
            let (plan, shape) = (self.plans.get(place)?, self.shape(place, &dims)?);
            let places = plan.buffers.iter().zip(&shape.placed.offsets).zip(&shape.sizes);
            let kept = places.filter(|((buffer, _), _)| buffer.is_output);
            let end = kept.filter_map(|((_, offset), bytes)| Some((*offset)?.saturating_add(*bytes)));
            end.max()
        };
        let most = (0..self.plans.len()).filter_map(ends).max().unwrap_or(0);
        most.next_multiple_of(alignment)
    }

    /// What one of the plans says for these sizes of the open dimensions; `None` where a buffer is larger than any memory.
    #[must_use]
    pub fn shape(&self, plan: usize, dims: &[u64]) -> Option<Shape> {
        let found = self.plans.get(plan)?;
        let variables = values(dims, &self.derived)?;
        let sizes: Option<Vec<u64>> = found
            .formulas
            .iter()
            .map(|(formula, _)| bytes(formula.value(&variables)?))
            .collect();
        let sizes = sizes?;
        let sizes: Vec<u64> = found.buffers.iter().map(|buffer| sizes[buffer.formula]).collect();
        let placed = found.placed(&sizes, &[]);
        let outside_bytes = found.layout.load_outside(&sizes);
        Some(Shape {
            plan,
            dims: dims.to_vec(),
            sizes,
            placed,
            outside_bytes,
        })
    }

    /// What one of the plans says for these sizes of the first open dimensions, and the smallest of the others.
    #[must_use]
    #[cfg(not(arena_library))]
    pub fn shape_with_least(&self, plan: usize, dims: &[u64]) -> Option<Shape> {
        self.shape(plan, &self.completed(dims, |(least, _)| least))
    }

    /// The largest block of any of the plans for these sizes of the first open dimensions, and any of the others; `None` where a buffer is larger than
    /// any memory.
    #[must_use]
    #[cfg(not(arena_library))]
    pub fn most_at(&self, dims: &[u64]) -> Option<u64> {
        let corners = [
            self.completed(dims, |(least, _)| least),
            self.completed(dims, |(_, most)| most),
        ];
        let plans = (0..self.plans.len()).flat_map(|plan| corners.iter().map(move |dims| (plan, dims)));
        let blocks = plans.map(|(plan, dims)| Some(self.shape(plan, dims)?.block_bytes()));
        blocks.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// These sizes of the first open dimensions, and ends of the ranges of the others.
    #[cfg(not(arena_library))]
    fn completed(&self, dims: &[u64], end: fn((u64, u64)) -> u64) -> Vec<u64> {
        let others = self.ranges.get(dims.len()..).unwrap_or_default();
        dims.iter()
            .copied()
            .chain(others.iter().map(|&range| end(range)))
            .collect()
    }

    /// Where the buffers of a shape lie if some of them lie where they lie.
    pub(crate) fn placed_around(&self, shape: &Shape, pinned: &[(usize, u64)]) -> Placed {
        self.plans
            .get(shape.plan)
            .map(|plan| plan.placed(&shape.sizes, pinned))
            .unwrap_or_default()
    }

    pub(crate) fn plan(&self, plan: usize) -> Option<&Plan> {
        self.plans.get(plan)
    }

    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }

    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    pub(crate) fn derived(&self) -> &[Derived] {
        &self.derived
    }

    /// Whether a run can only be of one shape.
    pub(crate) fn is_single(&self) -> bool {
        self.plans.len() < 2 && self.ranges.iter().all(|(least, most)| least == most)
    }
}

/// For each variable the open dimensions on which it depends, as bits.
fn dependences(dims: usize, derived: &[Derived]) -> Vec<u64> {
    let mut depends: Vec<u64> = (0..dims).map(|dim| 1 << dim).collect();
    for one in derived {
        let of = match one {
            Derived::Quotient(of, _) => dependence(of, &depends),
            Derived::Max(one, other) | Derived::Min(one, other) => {
                dependence(one, &depends) | dependence(other, &depends)
            }
        };
        depends.push(of);
    }
    depends
}

fn dependence(formula: &Formula, depends: &[u64]) -> u64 {
    let variables = formula.terms().flat_map(|(_, powers)| powers);
    variables.fold(0, |bits, &(variable, _)| {
        bits | depends.get(variable).copied().unwrap_or(0)
    })
}

impl Plan {
    fn new(plan: &ArenaPlan, alignment: u64, (ranges, derived): (&[(u64, u64)], &[Derived]), depends: &[u64]) -> Self {
        let bounds = intervals(ranges, derived);
        let mut formulas: Vec<(Formula, u64)> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let mut buffers = Vec::with_capacity(plan.buffers.len());
        for buffer in &plan.buffers {
            let formula = *known.entry(&buffer.size).or_insert_with(|| {
                formulas.push((buffer.size.clone(), dependence(&buffer.size, depends)));
                formulas.len() - 1
            });
            let (least, _) = buffer.size.bounds(&bounds);
            buffers.push(Buffer {
                formula,
                is_exact: buffer.is_exact,
                is_output: buffer.is_output,
                may_be_empty: least <= 0 && buffer.is_exact,
            });
        }
        let layout = Layout::new(plan, alignment);
        let used = formulas.iter().fold(0, |bits, (_, depends)| bits | depends);
        let sizes: Vec<&Formula> = plan.buffers.iter().map(|buffer| &buffer.size).collect();
        let live = live(plan, &buffers);
        Self {
            formulas,
            buffers,
            live,
            first: plan.first,
            ceilings: Ceilings::new(ranges, derived, &sizes, used, &layout),
            layout,
        }
    }

    /// What a run of any sizes needs at most.
    fn most(&self) -> Need {
        self.ceilings.most(&self.layout)
    }

    /// The lowest block that is found; never a higher one than that of a box of sizes, unless buffers are pinned.
    fn placed(&self, sizes: &[u64], pinned: &[(usize, u64)]) -> Placed {
        let placed = self.layout.place(sizes, pinned);
        let ceiling = self.ceilings.lowest(sizes).filter(|_| pinned.is_empty());
        match ceiling.filter(|ceiling| ceiling.block_bytes < placed.block_bytes) {
            Some(ceiling) => ceiling.clone(),
            None => placed,
        }
    }

    /// The size of a buffer, and the open dimensions on which it depends.
    pub(crate) fn formula(&self, buffer: Buffer) -> (&Formula, u64) {
        let (formula, depends) = &self.formulas[buffer.formula];
        (formula, *depends)
    }

    /// How many buffers that are certain to be there, and are no outputs, are live just before an allocation.
    pub(crate) fn live(&self, place: usize) -> usize {
        self.live.get(place).copied().unwrap_or(0)
    }

    /// When a buffer is live.
    #[cfg(not(arena_library))]
    pub(crate) fn life(&self, place: usize) -> Option<(u64, u64)> {
        self.layout.life(place)
    }

    /// Most bytes of the block that are live at one time.
    pub(crate) fn load(&self, sizes: &[u64]) -> u64 {
        self.layout.load(sizes)
    }
}

impl Shape {
    /// Sizes of the open dimensions.
    #[must_use]
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Bytes of every buffer, in the order of their allocation; 0 where there is none.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The offset of every buffer in the block; none for those outside and those without bytes.
    #[must_use]
    pub fn offsets(&self) -> &[Option<u64>] {
        &self.placed.offsets
    }

    /// Bytes of the block that it uses.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.placed.block_bytes
    }

    /// Most bytes of the block that are live at one time: no block is smaller.
    #[must_use]
    pub fn load_bytes(&self, plans: &Plans) -> u64 {
        plans.plan(self.plan).map_or(0, |plan| plan.load(&self.sizes))
    }

    /// The next buffer from a place on that has bytes.
    pub(crate) fn next(&self, place: usize) -> Option<usize> {
        let sizes = self.sizes.get(place..)?;
        sizes.iter().position(|&bytes| bytes > 0).map(|ahead| place + ahead)
    }

    /// Whether the buffer at a place can be allocated with so many bytes.
    pub(crate) fn accepts(&self, plans: &Plans, place: usize, bytes: u64) -> bool {
        let buffer = plans.plan(self.plan).and_then(|plan| plan.buffers.get(place));
        buffer.zip(self.sizes.get(place)).is_some_and(
            |(buffer, &size)| {
                if buffer.is_exact { size == bytes } else { bytes <= size }
            },
        )
    }

    /// Whether a run of this shape can begin with these allocations; the place after them.
    pub(crate) fn begins_with(&self, plans: &Plans, seen: &[u64]) -> Option<usize> {
        seen.iter().try_fold(0, |from, &bytes| {
            let place = self.next(from)?;
            self.accepts(plans, place, bytes).then_some(place + 1)
        })
    }
}

/// How many buffers that are certain to be there, and are no outputs, are live just before each allocation.
fn live(plan: &ArenaPlan, buffers: &[Buffer]) -> Vec<usize> {
    let is_counted = |buffer: &Buffer| !buffer.is_output && !buffer.may_be_empty;
    let counted = || {
        plan.buffers
            .iter()
            .zip(buffers)
            .map(|(planned, buffer)| (planned, is_counted(buffer)))
    };
    let mut ends: Vec<u64> = counted()
        .filter(|&(_, is_counted)| is_counted)
        .map(|(planned, _)| planned.last)
        .collect();
    ends.sort_unstable();
    let mut begun = 0usize;
    let before = |(planned, is_counted): (&PlannedBuffer, bool)| {
        let ended = ends.partition_point(|&end| end <= planned.first);
        let live = begun.saturating_sub(ended);
        begun += usize::from(is_counted);
        live
    };
    counted().map(before).collect()
}

/// Shapes that runs had, the last one first.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<Arc<Shape>>);

/// Most shapes that are kept, and most buffers of them together.
const MOST_SHAPES: usize = 256;
const MOST_KEPT_BUFFERS: usize = 1 << 20;

impl Known {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Shape>> {
        self.0.iter()
    }

    /// The shape becomes the last one.
    pub(crate) fn used(&mut self, shape: &Arc<Shape>) {
        match self.0.iter().position(|known| Arc::ptr_eq(known, shape)) {
            Some(0) => return,
            Some(place) => _ = self.0.remove(place),
            None => {}
        }
        self.0.insert(0, Arc::clone(shape));
        let mut buffers = 0;
        let is_kept = |shape: &&Arc<Shape>| {
            buffers += shape.sizes.len();
            buffers <= MOST_KEPT_BUFFERS
        };
        let kept = self.0.iter().take(MOST_SHAPES).take_while(is_kept).count();
        self.0.truncate(kept.max(1));
    }
}
