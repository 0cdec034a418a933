//! Dimensions as shape inference sees them: numbers, symbols, and small polynomials over symbols.
//!
//! Every open dimension of the main graph has a name that a caller can set: the model's own (`batch`), or, where the
//! model has none (an unnamed input dimension, a result whose extent depends on data), `TENSOR[AXIS]`.

use std::collections::BTreeSet;

use onnx_runtime_ir::{DataType, SymbolId};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, SymbolInterner, TensorType, TypeInfo, ValueType as Container};
use remat_formula::{Summand, size_of, summands};
use remat_ir::{Dim, ElementType, ValueType};
use rustc_hash::FxHashMap;

use super::formulas::Table;
use crate::types::{Dims, MAX_NAME};

/// Where the inference crate's anonymous symbols start; named ones lie below, which it relies on when it unifies two.
const ANONYMOUS: u32 = 0x8000_0000;

/// Expressions of more symbols than this become symbols of their own: products of sums grow without bound otherwise.
const MAX_SYMBOLS: usize = 8;

/// In lists longer than this every sum becomes a symbol of its own, because the product of the list may be taken.
const MAX_FACTORS: usize = 8;

/// Names that are collected for the open shape of one value at most: an error lists a few, and many values may depend on as many names.
const MAX_OPEN_NAMES: usize = 64;

/// The symbols of one model.
pub(super) struct Symbols<'o> {
    pub(super) interner: SymbolInterner,
    given: &'o Dims,
    /// Every name a caller may set.
    pub(super) names: BTreeSet<String>,
    ids: FxHashMap<String, SymbolId>,
    name_of: FxHashMap<SymbolId, String>,
    /// Symbols that turned out to have a given value after they were made.
    value_of: FxHashMap<SymbolId, i64>,
    /// The first symbol that was made after the inputs were read: this and later ones stand for what the data decides.
    first_of_data: Option<SymbolId>,
    /// For a symbol that stands for an expression: the symbols in it.
    parts_of: FxHashMap<SymbolId, Vec<SymbolId>>,
    /// What symbols stand for, where dimensions are to have formulas, from when the inputs are read.
    pub(super) formulas: Option<Table>,
}

impl<'o> Symbols<'o> {
    pub(super) fn new(given: &'o Dims, names: BTreeSet<String>) -> Self {
        Self {
            interner: SymbolInterner::new(ANONYMOUS),
            given,
            names,
            ids: FxHashMap::default(),
            name_of: FxHashMap::default(),
            value_of: FxHashMap::default(),
            first_of_data: None,
            parts_of: FxHashMap::default(),
            formulas: None,
        }
    }

    /// The same for formulas. The inference crate takes a symbol without a name for any other dimension that it meets; here none is one.
    pub(super) fn for_formulas(given: &'o Dims, names: BTreeSet<String>) -> Self {
        Self {
            interner: SymbolInterner::new(ANONYMOUS / 2),
            ..Self::new(given, names)
        }
    }

    /// The dimensions of inputs are open, and have these sizes now; `None` if one of them has none.
    pub(super) fn open_dims(&self, inputs: &[&NodeIo], sizes: &Dims) -> Option<Table> {
        let mut dims: Vec<(String, SymbolId, u64)> = Vec::new();
        for dim in inputs
            .iter()
            .filter_map(|io| io.type_info.as_ref())
            .flat_map(|info| &info.shape)
        {
            let Some(symbol) = dim.as_symbol() else { continue };
            let name = self.name_of.get(&symbol)?;
            if dims.iter().all(|(_, known, _)| *known != symbol) {
                dims.push((name.clone(), symbol, *sizes.get(name)?));
            }
        }
        Some(Table::new(dims))
    }

    /// Whether the symbol stands for a formula.
    fn has_formula(&self, id: SymbolId) -> bool {
        self.formulas.as_ref().is_some_and(|table| table.knows(id))
    }

    /// The dimension of this name.
    fn named(&mut self, name: &str) -> DimExpr {
        if let Some(value) = size_of(name, self.given).and_then(|size| i64::try_from(size).ok()) {
            return DimExpr::constant(value);
        }
        if let Some(parts) = summands(name, |part| self.names.contains(part)) {
            return parts.into_iter().fold(DimExpr::constant(0), |sum, part| match part {
                Summand::Dim(name) => sum.add(&self.named(name)),
                Summand::Number(number) => {
                    sum.add(&i64::try_from(number).map_or_else(|_| DimExpr::overflow(), DimExpr::constant))
                }
            });
        }
        if let Some(&id) = self.ids.get(name) {
            return DimExpr::symbol(id);
        }
        let id = SymbolId(
            u32::try_from(self.ids.len())
                .unwrap_or(ANONYMOUS - 1)
                .min(ANONYMOUS - 1),
        );
        self.ids.insert(name.to_owned(), id);
        self.name_of.insert(id, name.to_owned());
        DimExpr::symbol(id)
    }

    /// Notes that all inputs are read.
    pub(super) fn inputs_are_read(&mut self) {
        self.first_of_data = Some(self.interner.fresh_symbol());
    }

    /// Takes the value of a dimension that the data decides from where the file states it: every other result of the same dimension has it, too.
    pub(super) fn learn(&mut self, dim: &DimExpr, value: i64) {
        if let Some(id) = dim.as_symbol()
            && self.first_of_data.is_some_and(|first| id.0 >= first.0)
            && !self.parts_of.contains_key(&id)
            && !self.has_formula(id)
        {
            self.value_of.entry(id).or_insert(value);
        }
    }

    /// Whether any dimension got a value after it was made.
    pub(super) fn has_learned(&self) -> bool {
        !self.value_of.is_empty()
    }

    /// Whether the symbol has a name that a caller may set, or a formula.
    pub(super) fn is_named(&self, id: SymbolId) -> bool {
        self.name_of.contains_key(&id) || self.has_formula(id)
    }

    /// A declared dimension.
    pub(super) fn expression(&mut self, dim: &Dim) -> DimExpr {
        match dim {
            Dim::Known(value) | Dim::Free { size: value, .. } => {
                i64::try_from(*value).map_or_else(|_| DimExpr::overflow(), DimExpr::constant)
            }
            Dim::Symbol(name) => self.named(name),
            Dim::Unknown => self.interner.fresh_dim(),
        }
    }

    /// A declared type as the inference rules take it; empty if it says too little.
    pub(super) fn node_io(&mut self, ty: &ValueType) -> NodeIo {
        match ty {
            ValueType::Tensor {
                element,
                shape: Some(dims),
            } => {
                let shape = dims.iter().map(|dim| self.expression(dim)).collect();
                NodeIo::typed(TypeInfo::new(data_type(*element), shape))
            }
            ValueType::Sequence(_) | ValueType::Optional(_) | ValueType::Map { .. } => {
                self.container(ty).map_or_else(NodeIo::default, NodeIo::container)
            }
            ValueType::Tensor { shape: None, .. } | ValueType::SparseTensor { .. } | ValueType::Unknown => {
                NodeIo::default()
            }
        }
    }

    fn container(&mut self, ty: &ValueType) -> Option<Container> {
        Some(match ty {
            ValueType::Tensor { element, shape } => {
                let shape = shape
                    .as_ref()
                    .map(|dims| dims.iter().map(|dim| self.expression(dim)).collect());
                Container::Tensor(TensorType {
                    dtype: data_type(*element),
                    shape,
                })
            }
            ValueType::Sequence(inner) => Container::sequence(self.container(inner)?),
            ValueType::Optional(inner) => Container::Optional(Box::new(self.container(inner)?)),
            ValueType::Map { key, value } => Container::Map(data_type(*key), Box::new(self.container(value)?)),
            ValueType::SparseTensor { .. } | ValueType::Unknown => return None,
        })
    }

    /// The type of a value after inference; what was declared where inference has nothing.
    pub(super) fn value_type(&self, io: &NodeIo, declared: Option<&ValueType>) -> ValueType {
        let inferred = match (&io.type_info, &io.value_type) {
            (Some(info), _) => {
                let shape = info.shape.iter().map(|dim| self.dim(dim)).collect();
                element_type(info.dtype).map(|element| ValueType::Tensor {
                    element,
                    shape: Some(shape),
                })
            }
            (None, Some(container)) => self.contained_type(container),
            (None, None) => None,
        };
        inferred.or_else(|| declared.cloned()).unwrap_or(ValueType::Unknown)
    }

    fn contained_type(&self, container: &Container) -> Option<ValueType> {
        Some(match container {
            Container::Tensor(tensor) => ValueType::Tensor {
                element: element_type(tensor.dtype)?,
                shape: tensor
                    .shape
                    .as_ref()
                    .map(|dims| dims.iter().map(|dim| self.dim(dim)).collect()),
            },
            Container::Sequence(inner) => ValueType::Sequence(Box::new(self.contained_type(inner)?)),
            Container::Optional(inner) => ValueType::Optional(Box::new(self.contained_type(inner)?)),
            Container::Map(key, value) => ValueType::Map {
                key: element_type(*key)?,
                value: Box::new(self.contained_type(value)?),
            },
        })
    }

    fn dim(&self, expression: &DimExpr) -> Dim {
        if let Some(value) = expression.as_const() {
            return u64::try_from(value).map_or(Dim::Unknown, Dim::Known);
        }
        let name = expression.as_symbol().and_then(|id| self.name_of.get(&id));
        name.map_or(Dim::Unknown, |name| Dim::Symbol(name.clone()))
    }

    /// Names of the dimensions that would make the shape known.
    pub(super) fn open_names(&self, io: &NodeIo) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let shape = io.type_info.iter().flat_map(|info| &info.shape);
        let mut pending: Vec<SymbolId> = shape.flat_map(|dim| dim.symbol_ids().collect::<Vec<_>>()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop().filter(|_| found.len() < MAX_OPEN_NAMES) {
            if !seen.insert(id.0) {
                continue;
            }
            match (self.parts_of.get(&id), self.name_of.get(&id)) {
                (Some(parts), _) if !parts.is_empty() => pending.extend(parts),
                (_, Some(name)) => {
                    found.insert(name.clone());
                }
                _ => {}
            }
        }
        found
    }

    /// Puts given values in, names what has no name (`label` is the tensor, for values of the main graph), and keeps
    /// expressions small.
    pub(super) fn settle(&mut self, io: &mut NodeIo, label: Option<&str>) {
        if let Some(info) = &mut io.type_info {
            let factors = info.shape.len();
            for (axis, dim) in info.shape.iter_mut().enumerate() {
                self.settle_dim(dim, factors, label.map(|tensor| (tensor, axis)));
            }
        }
        if let Some(data) = &mut io.shape_data {
            let factors = data.elems.len();
            data.elems
                .iter_mut()
                .for_each(|dim| self.settle_dim(dim, factors, None));
        }
    }

    fn settle_dim(&mut self, dim: &mut DimExpr, factors: usize, place: Option<(&str, usize)>) {
        if let Some(value) = dim.as_const() {
            self.check_given(place, value);
            return;
        }
        let limit = if factors > MAX_FACTORS { 1 } else { MAX_SYMBOLS };
        let is_long = dim.is_overflow() || dim.symbol_ids().count() > limit;
        let alias = |table: &mut Table| table.alias(dim, &mut self.interner);
        if let Some(alias) = self.formulas.as_mut().filter(|_| is_long).and_then(alias) {
            *dim = alias;
        } else if is_long {
            let parts: Vec<SymbolId> = dim.symbol_ids().collect();
            let id = self.interner.fresh_symbol();
            if !parts.is_empty() {
                self.parts_of.insert(id, parts);
            }
            *dim = DimExpr::symbol(id);
        }
        let Some(id) = dim.as_symbol() else { return };
        if let Some((tensor, axis)) = place.filter(|(tensor, _)| tensor.len() <= MAX_NAME)
            && !self.name_of.contains_key(&id)
            && !self.parts_of.contains_key(&id)
        {
            let name = format!("{tensor}[{axis}]");
            if let Some(value) = self.given.get(&name).and_then(|&v| i64::try_from(v).ok()) {
                self.value_of.insert(id, value);
            }
            self.names.insert(name.clone());
            self.name_of.insert(id, name);
        }
        if let Some(&value) = self.value_of.get(&id) {
            *dim = DimExpr::constant(value);
        }
    }

    /// A caller may set `TENSOR[AXIS]` although it turns out that it follows from the rest.
    fn check_given(&mut self, place: Option<(&str, usize)>, value: i64) {
        let Some((tensor, axis)) = place.filter(|_| !self.given.is_empty()) else {
            return;
        };
        let name = format!("{tensor}[{axis}]");
        if let Some(&given) = self.given.get(&name) {
            if i64::try_from(given) != Ok(value) {
                tracing::warn!(
                    dimension = name,
                    given,
                    value,
                    "the dimension follows from others; the value set is ignored"
                );
            }
            self.names.insert(name);
        }
    }
}

/// The inference crate's name of an element type.
pub(super) fn data_type(element: ElementType) -> DataType {
    let code = ElementType::ALL
        .iter()
        .position(|&e| e == element)
        .map_or(0, |index| index + 1);
    i32::try_from(code)
        .ok()
        .and_then(DataType::from_onnx)
        .unwrap_or(DataType::Undefined)
}

/// The element type that the inference crate means.
pub(super) fn element_type(data_type: DataType) -> Option<ElementType> {
    crate::types::element(data_type as i32).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_translate_both_ways() {
        for &element in ElementType::ALL {
            assert_eq!(element_type(data_type(element)), Some(element));
        }
    }

    #[test]
    fn long_products_of_sums_collapse_into_symbols_that_remember_their_parts() {
        let given = Dims::new();
        let mut symbols = Symbols::new(&given, BTreeSet::new());
        let sum = symbols.named("a").add(&symbols.named("b"));
        let mut io = NodeIo::typed(TypeInfo::new(DataType::Float32, vec![sum; 30]));
        symbols.settle(&mut io, Some("x"));
        let info = io.type_info.clone().unwrap();
        assert!(info.shape.iter().all(|dim| dim.as_symbol().is_some()));
        assert_eq!(
            symbols.open_names(&io),
            BTreeSet::from(["a".to_owned(), "b".to_owned()])
        );
    }
}
