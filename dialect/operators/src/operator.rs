//! One row of the table, and how it is written.

use remat_ir::ElementType;

use crate::columns::{
    Blocked, Combine, Effect, Element, Formula, Half, ResultType, Sharing, Split, StandIn, Updates, Workspace,
};

/// Everything that is known of an operator. Each field is a column; operands and results are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operator {
    /// The domain; `""` is ONNX's default domain.
    pub domain: &'static str,
    /// The operator's name; `""` in what a domain says of operators without a row.
    pub name: &'static str,

    /// What a run does besides computing results; default: nothing.
    pub effects: Effect,
    /// The operands that a run with effects writes to in place: whoever reads them afterwards reads something else.
    pub updates: Updates,
    /// Which result is the memory of an operand.
    pub shares: Sharing,
    /// The operand that states the shape of the result; without it, the shape follows from those of the operands.
    pub shape_operand: Option<usize>,
    /// Operands that list dimensions or axes: their length becomes a rank.
    pub lists: &'static [usize],
    /// Whether the result has every dimension of each operand that is not one.
    pub broadcasts: bool,
    /// Whether it looks at no element of what it reads, and makes a few bytes.
    pub measures: bool,
    /// The operator whose shape rule holds for this one, where shape inference has none of its own.
    pub stand_in: Option<StandIn>,
    /// By result: its type, where it follows from operands directly; results beyond the list have other rules.
    pub results: &'static [ResultType],
    /// Where the type leaves the size of result 0 open: it takes the memory of so many of the first operands together.
    pub sized_as_operands: Option<usize>,
    /// How many operands and results onnx-mlir's op names one by one, where some at the end may be left out; else 0.
    pub slots: (usize, usize),

    /// How the result can be computed part by part.
    pub split: Split,

    /// How results over parts of what it sums up are put together.
    pub combine: Combine,

    /// How the work is counted; default: by its bytes.
    pub cost: Formula,
    /// What the kernel takes while it runs.
    pub workspace: Workspace,

    /// ONNX Runtime: the operand that result 0 may be written over, if nobody needs it any more and the sizes are equal.
    pub overwrites: Option<usize>,
    /// ONNX Runtime: whether it is fused as an activation into the Conv or Gemm before it.
    pub fused_activation: bool,
    /// ONNX Runtime: whether an activation that follows it is fused into it.
    pub takes_activation: bool,
    /// ONNX Runtime: what becomes of it where images are laid out in blocks of channels.
    pub blocked: Blocked,
    /// ONNX Runtime: in how many equal pieces the kernel asks the arena for its workspace, about.
    pub pieces: u64,
    /// ONNX Runtime: whether it asks for them before it asks for its results.
    pub workspace_first: bool,
    /// ONNX Runtime: whether the workspace lies on the plain heap, where the arena does not see it.
    pub on_heap: bool,
    /// ONNX Runtime: the operand of which the kernel keeps a copy in the arena from load on, if it is a weight.
    pub packs: Option<usize>,
    /// ONNX Runtime: how the kernel computes in half precision.
    pub half: Half,
    /// ONNX Runtime: whether `ExecutionOrder::PRIORITY_BASED` runs it before all others.
    pub runs_first: bool,
}

impl Operator {
    /// A row in which every column has its default.
    pub(crate) const fn new(domain: &'static str, name: &'static str) -> Self {
        Self {
            domain,
            name,
            effects: Effect::Pure,
            updates: Updates::Nothing,
            shares: Sharing::Nothing,
            shape_operand: None,
            lists: &[],
            broadcasts: false,
            measures: false,
            stand_in: None,
            results: &[],
            sized_as_operands: None,
            slots: (0, 0),
            split: Split::Never,
            combine: Combine::Never,
            cost: Formula::Bytes,
            workspace: Workspace::Nothing,
            overwrites: None,
            fused_activation: false,
            takes_activation: false,
            blocked: Blocked::Never,
            pieces: 1,
            workspace_first: false,
            on_heap: false,
            packs: None,
            half: Half::Widened,
            runs_first: false,
        }
    }

    /// Whether result 0 is operand 0 under another shape.
    #[must_use]
    pub fn is_view(&self) -> bool {
        self.shares == Sharing::View
    }

    /// The operand that ONNX Runtime may write result 0 over, whose elements are of the type that `element_of` says. In half precision, a
    /// kernel that computes in single precision overwrites a widened copy instead.
    #[must_use]
    pub fn overwrites_of(&self, element_of: impl Fn(usize) -> Option<ElementType>) -> Option<usize> {
        let operand = self.overwrites?;
        let is_half = matches!(element_of(operand)?, ElementType::Float16 | ElementType::Bfloat16);
        (!is_half || self.takes_half()).then_some(operand)
    }

    /// Whether ONNX Runtime's kernel takes half precision as it is: those that say so, and those that move bytes or normalize. An
    /// operator of which only the bytes are known counts as one.
    #[must_use]
    pub fn takes_half(&self) -> bool {
        use Formula as F;
        let follows = matches!(
            self.cost,
            F::Move(_)
                | F::Metadata
                | F::GatherElements
                | F::Scatter
                | F::ScatterTuples
                | F::Normalization(_)
                | F::Bytes
        );
        self.half == Half::Native || follows
    }
}

/// Functions that each state one column of a row: by a value, or as true.
macro_rules! columns {
    ($($function:ident($column:ident: $kind:ty)),* ; $($flag:ident: $truth:ident),* $(,)?) => {
        impl Operator {
            $(pub(crate) const fn $function(mut self, $column: $kind) -> Self {
                self.$column = $column;
                self
            })*

            $(pub(crate) const fn $flag(mut self) -> Self {
                self.$truth = true;
                self
            })*
        }
    };
}

columns! {
    effects(effects: Effect),
    updates(updates: Updates),
    shares(shares: Sharing),
    lists(lists: &'static [usize]),
    results(results: &'static [ResultType]),
    split(split: Split),
    combine(combine: Combine),
    cost(cost: Formula),
    workspace(workspace: Workspace),
    blocked(blocked: Blocked),
    pieces(pieces: u64),
    half(half: Half);
    broadcasts: broadcasts,
    measures: measures,
    fused_as_activation: fused_activation,
    takes_activation: takes_activation,
    workspace_first: workspace_first,
    on_heap: on_heap,
    runs_first: runs_first,
}

/// Columns that are stated in other words.
impl Operator {
    pub(crate) const fn random(self) -> Self {
        self.effects(Effect::Random)
    }

    pub(crate) const fn stateful(self) -> Self {
        self.effects(Effect::Stateful)
    }

    pub(crate) const fn runs_subgraphs(self) -> Self {
        self.effects(Effect::ControlFlow)
    }

    pub(crate) const fn shape_from(mut self, operand: usize) -> Self {
        self.shape_operand = Some(operand);
        self
    }

    pub(crate) const fn shaped_as(mut self, name: &'static str, operands: &'static [usize], element: Element) -> Self {
        self.stand_in = Some(StandIn {
            name,
            operands,
            element,
        });
        self
    }

    pub(crate) const fn sized_as_operands(mut self, count: usize) -> Self {
        self.sized_as_operands = Some(count);
        self
    }

    pub(crate) const fn slots(mut self, operands: usize, results: usize) -> Self {
        self.slots = (operands, results);
        self
    }

    pub(crate) const fn overwrites(mut self, operand: usize) -> Self {
        self.overwrites = Some(operand);
        self
    }

    pub(crate) const fn packs(mut self, operand: usize) -> Self {
        self.packs = Some(operand);
        self
    }
}
