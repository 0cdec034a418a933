//! What symbols of the inference crate stand for.

use std::collections::HashMap;

use onnx_runtime_ir::SymbolId;
use onnx_runtime_shape_inference::{DimExpr, SymbolInterner, TypeInfo};
use remat_formula::{Formula, OpenDim, Variables};
use rustc_hash::FxHashMap;

use super::fraction::Fraction;
use super::terms;

/// The largest size for which formulas hold.
const MOST_SIZE: u64 = 1 << 31;

/// The dimensions of a value, as far as they have formulas.
pub(crate) type Shape = Vec<Option<Formula>>;

/// What symbols stand for.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) variables: Variables,
    /// By open dimension: the size that it has now.
    pub(crate) given: Vec<u64>,
    /// By variable: its symbol.
    symbols: Vec<SymbolId>,
    formulas: FxHashMap<u32, Formula>,
    /// Symbols that stand for quotients that need not be whole: elements of floating point.
    fractions: FxHashMap<u32, Fraction>,
    /// Formulas that have a symbol of their own because they are long.
    aliases: HashMap<Formula, SymbolId>,
}

impl Table {
    /// A table of these dimensions, which have these sizes now. A dimension may have any size, but only one that is empty now may be empty.
    pub(in crate::shapes) fn new(dims: Vec<(String, SymbolId, u64)>) -> Self {
        let mut table = Self::default();
        let mut open = Vec::new();
        for (place, (name, symbol, size)) in dims.into_iter().enumerate() {
            table.symbols.push(symbol);
            table.formulas.insert(symbol.0, Formula::variable(place));
            table.given.push(size);
            open.push(OpenDim {
                name,
                least: size.min(1),
                most: size.max(MOST_SIZE),
            });
        }
        table.variables = Variables::new(open);
        table
    }

    /// A table of dimensions of these names and sizes.
    #[cfg(test)]
    pub(crate) fn of_sizes(dims: &[(&str, u64)]) -> Self {
        let symbols = (0..).map(SymbolId);
        let dims = dims.iter().zip(symbols);
        Self::new(
            dims.map(|(&(name, size), symbol)| (name.to_owned(), symbol, size))
                .collect(),
        )
    }

    /// Whether the symbol stands for a formula.
    pub(in crate::shapes) fn knows(&self, symbol: SymbolId) -> bool {
        self.formulas.contains_key(&symbol.0)
    }

    /// The formula of an expression; `None` where a symbol in it has none.
    pub(in crate::shapes) fn formula(&self, dim: &DimExpr) -> Option<Formula> {
        if let Some(number) = dim.as_const() {
            return Some(Formula::constant(number));
        }
        if let Some(symbol) = dim.as_symbol() {
            return self.formulas.get(&symbol.0).cloned();
        }
        let mut sum = Formula::default();
        for (coefficient, symbols) in terms::of(dim)? {
            let product = symbols
                .iter()
                .try_fold(Formula::constant(coefficient), |product, symbol| {
                    product.times(self.formulas.get(symbol)?)
                });
            sum = sum.plus(&product?)?;
        }
        Some(sum)
    }

    /// The expression of a formula.
    pub(super) fn expression(&mut self, formula: &Formula, interner: &mut SymbolInterner) -> DimExpr {
        for variable in self.symbols.len()..self.variables.count() {
            let symbol = interner.fresh_symbol();
            self.symbols.push(symbol);
            self.formulas.insert(symbol.0, Formula::variable(variable));
        }
        let symbol = |&(variable, power): &(usize, u32)| {
            std::iter::repeat_n(DimExpr::symbol(self.symbols[variable]), power as usize)
        };
        let term = |(coefficient, powers): (i64, &[(usize, u32)])| {
            let powers = powers.iter().flat_map(symbol);
            powers.fold(DimExpr::constant(coefficient), |product, factor| product.mul(&factor))
        };
        formula
            .terms()
            .map(term)
            .fold(DimExpr::constant(0), |sum, term| sum.add(&term))
    }

    /// One symbol for a long expression; `None` if it has no formula.
    pub(in crate::shapes) fn alias(&mut self, dim: &DimExpr, interner: &mut SymbolInterner) -> Option<DimExpr> {
        let formula = self.formula(dim)?;
        let symbol = *self
            .aliases
            .entry(formula.clone())
            .or_insert_with(|| interner.fresh_symbol());
        self.formulas.insert(symbol.0, formula);
        Some(DimExpr::symbol(symbol))
    }

    /// The dimensions of a type.
    pub(in crate::shapes) fn shape(&self, info: &TypeInfo) -> Shape {
        info.shape.iter().map(|dim| self.formula(dim)).collect()
    }

    /// An element of a list.
    pub(super) fn fraction(&self, dim: &DimExpr) -> Option<Fraction> {
        let fraction = || self.fractions.get(&dim.as_symbol()?.0).cloned();
        self.formula(dim).map(Fraction::from).or_else(fraction)
    }

    /// The expression of an element of a list.
    pub(super) fn element(&mut self, element: Fraction, interner: &mut SymbolInterner) -> DimExpr {
        if let Some(formula) = element.whole() {
            return self.expression(&formula.clone(), interner);
        }
        let symbol = interner.fresh_symbol();
        self.fractions.insert(symbol.0, element);
        DimExpr::symbol(symbol)
    }
}
