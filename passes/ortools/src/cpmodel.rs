//! Builds CP-SAT models, with what the builder of the crate `cp_sat` lacks: intervals, cumulatives, reservoirs.

use crate::messages::{
    AllDifferentConstraintProto, Constraint, ConstraintProto, CpModelProto, CpObjectiveProto,
    CumulativeConstraintProto, IntegerVariableProto, IntervalConstraintProto, LinearConstraintProto,
    LinearExpressionProto, NoOverlap2DConstraintProto, PartialVariableAssignment, ReservoirConstraintProto,
};

use crate::size::ModelSize;

/// Index of a variable, as CP-SAT counts; `-i - 1` is the negation of the 0/1 variable `i`.
pub type Var = i32;

/// `coefficient * variable + offset`, or a constant.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    variable: Option<(Var, i64)>,
    offset: i64,
}

impl Affine {
    /// `offset`.
    #[must_use]
    pub fn constant(offset: i64) -> Self {
        Self { variable: None, offset }
    }

    /// `variable`.
    #[must_use]
    pub fn of(variable: Var) -> Self {
        Self {
            variable: Some((variable, 1)),
            offset: 0,
        }
    }

    /// `coefficient * variable`.
    #[must_use]
    pub fn multiple(variable: Var, coefficient: i64) -> Self {
        Self {
            variable: Some((variable, coefficient)),
            offset: 0,
        }
    }

    /// With so much more.
    #[must_use]
    pub fn plus(self, offset: i64) -> Self {
        Self {
            offset: self.offset + offset,
            ..self
        }
    }

    /// `offset - variable`.
    #[must_use]
    pub fn minus_variable(offset: i64, variable: Var) -> Self {
        Self {
            variable: Some((variable, -1)),
            offset,
        }
    }

    fn proto(self) -> LinearExpressionProto {
        LinearExpressionProto {
            vars: self.variable.iter().map(|&(variable, _)| variable).collect(),
            coeffs: self.variable.iter().map(|&(_, coefficient)| coefficient).collect(),
            offset: self.offset,
        }
    }
}

/// A change of a reservoir's level.
pub struct Change {
    /// When it happens.
    pub time: Affine,
    /// By how much the level rises.
    pub by: i64,
    /// Whether it happens at all.
    pub active: Var,
}

/// A finished model.
pub struct CpModel(pub(crate) CpModelProto);

/// A model under construction, and its size. Variables and constraints are numbered in `i32`: callers refuse what comes near that.
#[derive(Default)]
pub struct ModelBuilder {
    model: CpModelProto,
    size: ModelSize,
}

impl ModelBuilder {
    /// A variable with the values of these closed ranges, ascending.
    pub fn integer(&mut self, ranges: &[(i64, i64)]) -> Var {
        let values: i64 = ranges.iter().map(|(low, high)| high - low + 1).sum();
        self.size.integers += 1;
        self.size.largest_domain = self
            .size
            .largest_domain
            .max(usize::try_from(values).unwrap_or(usize::MAX));
        self.variable(ranges.iter().flat_map(|&(low, high)| [low, high]).collect())
    }

    /// A 0/1 variable; 1 if `fixed`.
    pub fn boolean(&mut self, fixed: bool) -> Var {
        self.size.booleans += 1;
        self.variable(vec![i64::from(fixed), 1])
    }

    fn variable(&mut self, domain: Vec<i64>) -> Var {
        self.model.variables.push(IntegerVariableProto {
            name: String::new(),
            domain,
        });
        i32::try_from(self.model.variables.len() - 1).expect("callers refuse models that large")
    }

    /// `low <= sum <= high` where all of `given` are true.
    pub fn linear(&mut self, given: &[Var], terms: &[(Var, i64)], low: i64, high: i64) {
        self.size.terms += terms.len();
        self.constraint(
            given,
            Constraint::Linear(LinearConstraintProto {
                vars: terms.iter().map(|&(variable, _)| variable).collect(),
                coeffs: terms.iter().map(|&(_, coefficient)| coefficient).collect(),
                domain: vec![low, high],
            }),
        );
    }

    /// An interval that is there if `active`. That its end is start plus size has to be stated where it is not plain.
    pub fn interval(&mut self, active: Var, start: Affine, size: Affine, end: Affine) -> i32 {
        self.size.intervals += 1;
        let interval = IntervalConstraintProto {
            start: Some(start.proto()),
            end: Some(end.proto()),
            size: Some(size.proto()),
        };
        self.push(&[active], Constraint::Interval(interval))
    }

    /// An interval that is always there, of a fixed length.
    pub fn fixed_interval(&mut self, start: Affine, size: i64) -> i32 {
        self.size.intervals += 1;
        let interval = IntervalConstraintProto {
            start: Some(start.proto()),
            end: Some(start.plus(size).proto()),
            size: Some(Affine::constant(size).proto()),
        };
        self.push(&[], Constraint::Interval(interval))
    }

    /// No two of the rectangles that are as wide and as high as these intervals have a point in common.
    pub fn no_overlap_2d(&mut self, widths: Vec<i32>, heights: Vec<i32>) {
        self.size.terms += widths.len() + heights.len();
        self.constraint(
            &[],
            Constraint::NoOverlap2d(NoOverlap2DConstraintProto {
                x_intervals: widths,
                y_intervals: heights,
            }),
        );
    }

    /// At no time do the demands of the intervals over it exceed the capacity.
    pub fn cumulative(&mut self, intervals: &[(i32, i64)], capacity: Affine) {
        self.size.cumulatives += 1;
        self.size.terms += intervals.len();
        self.constraint(
            &[],
            Constraint::Cumulative(CumulativeConstraintProto {
                capacity: Some(capacity.proto()),
                intervals: intervals.iter().map(|&(interval, _)| interval).collect(),
                demands: intervals
                    .iter()
                    .map(|&(_, demand)| Affine::constant(demand).proto())
                    .collect(),
            }),
        );
    }

    /// The sum of the active changes up to any time is never negative.
    pub fn reservoir(&mut self, changes: &[Change]) {
        self.size.reservoirs += 1;
        self.size.terms += changes.len();
        self.constraint(
            &[],
            Constraint::Reservoir(ReservoirConstraintProto {
                min_level: 0,
                max_level: changes.iter().map(|change| change.by.max(0)).sum(),
                time_exprs: changes.iter().map(|change| change.time.proto()).collect(),
                level_changes: changes
                    .iter()
                    .map(|change| Affine::constant(change.by).proto())
                    .collect(),
                active_literals: changes.iter().map(|change| change.active).collect(),
            }),
        );
    }

    /// No two of the variables are equal.
    pub fn all_different(&mut self, variables: &[Var]) {
        self.size.terms += variables.len();
        let exprs = variables.iter().map(|&variable| Affine::of(variable).proto()).collect();
        self.constraint(&[], Constraint::AllDiff(AllDifferentConstraintProto { exprs }));
    }

    /// The objective.
    pub fn minimize(&mut self, terms: &[(Var, i64)]) {
        self.model.objective = Some(CpObjectiveProto {
            vars: terms.iter().map(|&(variable, _)| variable).collect(),
            coeffs: terms.iter().map(|&(_, coefficient)| coefficient).collect(),
            ..CpObjectiveProto::default()
        });
    }

    /// Values to start from, one for each variable.
    pub fn hint(&mut self, values: Vec<i64>) {
        let vars = (0..).take(values.len()).collect();
        self.model.solution_hint = Some(PartialVariableAssignment { vars, values });
    }

    /// The size so far.
    #[must_use]
    pub fn size(&self) -> ModelSize {
        self.size
    }

    /// The finished model.
    #[must_use]
    pub fn done(self) -> CpModel {
        CpModel(self.model)
    }

    fn constraint(&mut self, given: &[Var], constraint: Constraint) {
        self.size.constraints += 1;
        self.push(given, constraint);
    }

    fn push(&mut self, given: &[Var], constraint: Constraint) -> i32 {
        self.model.constraints.push(ConstraintProto {
            enforcement_literal: given.to_vec(),
            constraint: Some(constraint),
        });
        i32::try_from(self.model.constraints.len() - 1).expect("callers refuse models that large")
    }
}
