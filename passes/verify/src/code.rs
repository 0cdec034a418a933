//! The rules, one code each.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident $title:literal,)+) => {
        /// A rule that every plan must keep (`V`), every certificate (`C`), every placement and what is claimed about it (`P`), or
        /// every graph after fission (`F`). Codes are stable: they are never renumbered and never reused.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $($(#[doc = $doc])+ $code,)+
        }

        impl Code {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// What is wrong, in a few words.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)+ }
            }

            /// The code as written: `V006`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)+ }
            }
        }
    };
}

codes! {
    /// A `compute` step for an op that ran before; it should be a `recompute`.
    V001 "computed twice",
    /// A `recompute` step for an op that did not run before; it should be a `compute`.
    V002 "recomputed before it was computed",
    /// A run reads a tensor that is not there: not computed, freed, paged out, or a view into an earlier instance.
    V003 "operand not there",
    /// An op does not run at all.
    V004 "never computed",
    /// A `free` of a storage that is not resident.
    V005 "freed while not resident",
    /// A run or a page-in needs more memory than the budget, or the block does where the budget bounds the block.
    V006 "budget exceeded",
    /// An op that is not recomputable runs again.
    V007 "not recomputable",
    /// An op that creates memory runs more often than the problem allows.
    V008 "computed too often",
    /// A `free` or `page_out` of a graph output or of memory that belongs to the caller or the session.
    V009 "not the plan's to free",
    /// In fixed order, the first runs of the ops that create memory do not follow the reference order.
    V010 "out of reference order",
    /// A graph output is not resident at the end.
    V011 "output missing at the end",
    /// A paging step, but the problem allows none.
    V012 "paging not allowed",
    /// A `page_out` of a storage that is not resident, or a `page_in` of one that was not paged out.
    V013 "paged the wrong way",
    /// The peak that the plan file claims is not the replayed one.
    V014 "claimed peak differs",
    /// A duration that the plan file claims is not the replayed one.
    V015 "claimed duration differs",
    /// A sum of bytes or times does not fit 64 bits.
    V016 "arithmetic overflow",
    /// A step, or an offset of one, names an op or a storage that the problem does not have.
    V017 "unknown name",
    /// A page-out moves more into the second memory than it holds.
    V018 "second memory full",
    /// The plan, transfers included, takes longer than the deadline.
    V019 "deadline missed",
    /// The energy that the plan file claims is not the replayed one.
    V020 "claimed energy differs",
    /// An op runs after another one that it must never run after, since that overwrites what it reads.
    V021 "runs after what it must precede",
    /// The peak of running every op once that the plan file claims is not the one that the checker finds.
    V022 "claimed baseline peak differs",
    /// The objective that a certificate claims is not the replayed one.
    C001 "claimed objective differs",
    /// A bound lies above a plan that it speaks about, or above the plan that it comes with.
    C002 "bound refuted",
    /// A certificate says that there is no plan, and one that it speaks about is known.
    C003 "plan exists",
    /// The status of a certificate does not follow from plan, objective, bound and stop reason.
    C004 "status does not follow",
    /// A certificate claims a proof after an interruption.
    C005 "proof after an interruption",
    /// A claim beyond the trivial bound rests on nothing, on a solver that is not known, or on a tolerance that is not its own.
    C006 "claim without evidence",
    /// The gap that a certificate claims is not that of objective and bound.
    C007 "claimed gap differs",
    /// Two buffers take the same byte at the same time.
    P001 "overlap in time and space",
    /// A buffer does not lie within its block, or its block is not there.
    P002 "out of block",
    /// An offset is not a multiple of the buffer's alignment.
    P003 "misaligned",
    /// A buffer, or an interval of residency of a plan, has no place.
    P004 "not placed",
    /// A pinned buffer lies elsewhere, or a graph output outside of the end of the block that is for outputs.
    P005 "pinned elsewhere",
    /// The height that a certificate claims is not that of the placement.
    P006 "claimed height differs",
    /// A bound lies above the placement that it comes with, or does not follow from the load that it rests on.
    P007 "height bound refuted",
    /// The status of a certificate does not follow from placement, height, bound and stop reason.
    P008 "status of a placement does not follow",
    /// A step of a plan gives an offset for what takes no bytes from this step on.
    P009 "offset of nothing",
    /// An op is neither one of the original as it was, nor a tile of one, nor slices or joins; or one is gone, or twice there.
    F001 "no op of the original",
    /// An op states a part that the original's op does not compute, or that has other rows than the result.
    F002 "no such part",
    /// An op with effects or subgraphs runs in tiles or in another order.
    F003 "effects in tiles",
    /// No rule says how to compute such a part.
    F004 "no rule for the part",
    /// An operand holds another part than the one that is needed.
    F005 "operand holds another part",
    /// An attribute of a tile is not the one that its part needs.
    F006 "attribute not of the part",
    /// Integers that a tile reads, a shape or bounds, are not those that its part needs.
    F007 "integers not of the part",
    /// A slice takes other rows than it states, or rows that are not there.
    F008 "slice of other rows",
    /// Parts that are joined do not abut, or make another part than is stated.
    F009 "parts do not join",
    /// Spare rows are not those that the rule gives, or something reads them.
    F010 "spare rows",
    /// Inputs or outputs are not those of the original, or an output is not whole.
    F011 "signature differs",
    /// Something that is not the whole tensor has its name.
    F012 "name of another tensor",
    /// The graph breaks its own invariants.
    F013 "graph not valid",
    /// Sums over parts are not of parts that make up the whole, or are put together in another way than their op sums up.
    F014 "sums do not make up the whole",
    /// What a normalization multiplies by and adds is not what follows from the statistics of its operand.
    F015 "normalized by other numbers",
    /// A tile cuts a dimension whose size is left open, or a type or shape states its size.
    F016 "an open size is fixed",
}

impl Code {
    /// Whether the rule is about certificates.
    #[must_use]
    pub fn is_about_claims(self) -> bool {
        self.name().starts_with('C')
    }

    /// Whether the rule is about placements.
    #[must_use]
    pub fn is_about_placements(self) -> bool {
        self.name().starts_with('P')
    }

    /// Whether the rule is about graphs after fission.
    #[must_use]
    pub fn is_about_fission(self) -> bool {
        self.name().starts_with('F')
    }

    /// Whether the figures of a replay that broke this rule still are those of the plan. After the other violations the replay
    /// had to assume what the plan does not say.
    pub(crate) fn keeps_figures(self) -> bool {
        matches!(
            self,
            Self::V001 | Self::V002 | Self::V006 | Self::V007 | Self::V008 | Self::V010 | Self::V018 | Self::V019
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not a code; it holds the text.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a rule of the checker: those of plans begin with `V001`, those of certificates with `C001`, those of placements with `P001`, those of fission with `F001`"
)]
pub struct UnknownCode(String);

impl FromStr for Code {
    type Err = UnknownCode;

    /// Reads a code in any case.
    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let found = Self::ALL
            .iter()
            .find(|code| code.name().eq_ignore_ascii_case(text.trim()));
        found.copied().ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_without_gap_and_parse_back() {
        for family in ['V', 'C', 'P', 'F'] {
            let codes: Vec<Code> = Code::ALL
                .iter()
                .copied()
                .filter(|code| code.name().starts_with(family))
                .collect();
            assert!(!codes.is_empty());
            for (index, code) in codes.into_iter().enumerate() {
                assert_eq!(code.to_string(), format!("{family}{:03}", index + 1));
                assert_eq!(code.to_string().to_lowercase().parse(), Ok(code));
            }
        }
    }

    #[test]
    fn what_is_no_code_is_rejected() {
        for text in ["", "V000", "V999", "C000", "6", "budget"] {
            assert_eq!(text.parse::<Code>(), Err(UnknownCode(text.to_owned())));
        }
    }
}
