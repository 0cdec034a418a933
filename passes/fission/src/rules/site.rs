//! What rules ask of an op.

use std::ops::Range;

use remat_ir::{Attribute, Dim, ElementType, Graph, Op, StorageClass, TensorId, ValueType};

use super::{Cut, Integers, Need, Reason};

/// An op and the rows of its results that are asked for.
pub(crate) struct Site<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) op: &'a Op,
    /// The axis of the results.
    pub(crate) axis: usize,
    /// The rows.
    pub(crate) rows: Range<u64>,
    /// Dimensions of the first result.
    pub(crate) out: Vec<u64>,
    /// The size that free dimensions have, where it is not the one that is planned for.
    free: Option<u64>,
}

impl<'a> Site<'a> {
    /// Where results have other dimensions on the axis than the first one, the rows mean different things.
    pub(crate) fn new(graph: &'a Graph, op: &'a Op, axis: usize, rows: Range<u64>) -> Result<Self, Reason> {
        let first = op.results().next().ok_or(Reason::Shapes)?;
        let out = graph.tensors[first].ty.known_shape().ok_or(Reason::Shapes)?;
        let extent = *out.get(axis).ok_or(Reason::Shapes)?;
        let alike = |result: TensorId| {
            let dims = graph.tensors[result].ty.known_shape();
            dims.is_some_and(|dims| dims.len() == out.len() && dims[axis] == extent)
        };
        if !op.results().all(alike) {
            return Err(Reason::Results);
        }
        if op.results().any(|result| graph.tensors[result].ty.is_free(axis)) {
            return Err(Reason::Free);
        }
        if rows.is_empty() || rows.end > extent {
            return Err(Reason::Shapes);
        }
        Ok(Self {
            graph,
            op,
            axis,
            rows,
            out,
            free: None,
        })
    }

    /// An op, for what it asks whatever the rows.
    pub(crate) fn of_all(graph: &'a Graph, op: &'a Op) -> Option<Self> {
        let out = graph.tensors[op.results().next()?].ty.known_shape()?;
        Some(Self {
            graph,
            op,
            axis: 0,
            rows: 0..0,
            out,
            free: None,
        })
    }

    /// The same in a run in which every free dimension has this size.
    pub(crate) fn with_free(&self, size: u64) -> Self {
        Self {
            graph: self.graph,
            op: self.op,
            axis: self.axis,
            rows: self.rows.clone(),
            out: sized(self.result(), self.out.clone(), Some(size)),
            free: Some(size),
        }
    }

    /// The type of the first result.
    pub(crate) fn result(&self) -> &'a ValueType {
        let first = self.op.results().next();
        first.map_or(&ValueType::Unknown, |first| &self.graph.tensors[first].ty)
    }

    /// The type of an operand.
    pub(crate) fn ty(&self, place: usize) -> &'a ValueType {
        let operand = self.operand(place);
        operand.map_or(&ValueType::Unknown, |operand| &self.graph.tensors[operand].ty)
    }

    /// Whether any of these dimensions of the first result may have another size in another run.
    pub(crate) fn has_free(&self, mut axes: Range<usize>) -> bool {
        axes.any(|axis| self.result().is_free(axis))
    }

    /// Whether an operand or a result may have another size in another run.
    pub(crate) fn has_free_dims(&self) -> bool {
        let of_operands = (0..self.op.inputs.len()).any(|place| self.ty(place).has_free_dims());
        of_operands || self.result().has_free_dims()
    }

    /// The dimensions of the first result as a constant that is right for every size of free ones, with the rows that are asked for: `state` says
    /// what stands for a free one, by axis.
    pub(crate) fn stated(&self, mut state: impl FnMut(usize, &Dim) -> Option<i64>) -> Result<Integers, Reason> {
        let dims = self.result().dims().iter().enumerate();
        let dims = dims.map(|(axis, dim)| match dim {
            _ if axis == self.axis => i64::try_from(self.length()).map_err(|_| Reason::Shapes),
            dim if dim.is_free() => state(axis, dim).ok_or(Reason::Free),
            dim => dim
                .size()
                .and_then(|size| i64::try_from(size).ok())
                .ok_or(Reason::Shapes),
        });
        Ok(Integers::list(dims.collect::<Result<_, _>>()?))
    }

    /// Rows of the whole.
    pub(crate) fn extent(&self) -> u64 {
        self.out[self.axis]
    }

    pub(crate) fn length(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    pub(crate) fn operand(&self, place: usize) -> Option<TensorId> {
        self.op.inputs.get(place).copied().flatten()
    }

    /// Dimensions of an operand that must be there.
    pub(crate) fn dims(&self, place: usize) -> Result<Vec<u64>, Reason> {
        let tensor = self.operand(place).ok_or(Reason::Shapes)?;
        let dims = self.graph.tensors[tensor].ty.known_shape().ok_or(Reason::Shapes)?;
        Ok(sized(self.ty(place), dims, self.free))
    }

    /// The element type of an operand.
    pub(crate) fn element(&self, place: usize) -> Option<ElementType> {
        self.graph.tensors[self.operand(place)?].ty.element()
    }

    /// Whether an operand is part of the model.
    pub(crate) fn is_constant(&self, place: usize) -> bool {
        self.operand(place).is_some_and(|tensor| {
            let storage = self.graph.tensors[tensor].storage;
            self.graph.storages[storage].class == StorageClass::Constant
        })
    }

    /// Elements of a constant operand; `None` where it is left out.
    pub(crate) fn integers(&self, place: usize) -> Result<Option<&'a [i64]>, Reason> {
        let Some(tensor) = self.operand(place) else {
            return Ok(None);
        };
        let elements = self.graph.values.get(&tensor).ok_or(Reason::Computed)?;
        Ok(Some(elements))
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_int)
            .unwrap_or(default)
    }

    pub(crate) fn text(&self, name: &str, default: &'static str) -> &'a str {
        let text = self.op.attributes.get(name).and_then(Attribute::as_str);
        text.unwrap_or(default)
    }

    pub(crate) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.op.attributes.get(name).and_then(Attribute::as_ints)
    }

    /// A list of numbers that are not negative, by axis; `default` where it is left out.
    pub(crate) fn extents(&self, name: &'static str, count: usize, default: u64) -> Result<Vec<u64>, Reason> {
        let Some(values) = self.ints(name).filter(|values| !values.is_empty()) else {
            return Ok(vec![default; count]);
        };
        let numbers = values.iter().map(|&value| u64::try_from(value).ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        numbers
            .filter(|numbers| numbers.len() == count)
            .ok_or(Reason::Attribute(name))
    }

    /// The axis that an attribute names, of `rank` axes; negative ones count from the last.
    pub(crate) fn axis_of(&self, value: i64, rank: usize) -> Result<usize, Reason> {
        let signed = i64::try_from(rank).map_err(|_| Reason::Shapes)?;
        let axis = if value < 0 { value + signed } else { value };
        usize::try_from(axis)
            .ok()
            .filter(|&axis| axis < rank)
            .ok_or(Reason::Attribute("axis"))
    }

    /// # Errors
    /// Where an attribute says that channels stand last.
    pub(crate) fn has_channels_first(&self) -> Result<(), Reason> {
        match self.int("channels_last", 0) {
            0 => Ok(()),
            _ => Err(Reason::Attribute("channels_last")),
        }
    }

    /// A cut that needs every operand whole.
    pub(crate) fn whole(&self) -> Cut {
        Cut {
            needs: vec![Need::Whole; self.op.inputs.len()],
            ..Cut::default()
        }
    }

    /// A cut that needs the same rows of operand 0, on this axis, and all of the others.
    pub(crate) fn same_rows(&self, axis: usize) -> Cut {
        self.whole().with(0, axis, self.rows.clone())
    }

    /// The rows that an operand has of a result to which it broadcasts; axes count from the last one.
    pub(crate) fn aligned(&self, place: usize) -> Result<Need, Reason> {
        if self.operand(place).is_none() {
            return Ok(Need::Whole);
        }
        let dims = self.dims(place)?;
        let from_last = self.out.len() - self.axis;
        let Some(axis) = dims.len().checked_sub(from_last) else {
            return Ok(Need::Whole);
        };
        if self.ty(place).is_free(axis) {
            return Err(Reason::Free);
        }
        if dims[axis] == 1 && self.extent() != 1 {
            return Ok(Need::Whole);
        }
        if dims[axis] != self.extent() {
            return Err(Reason::Shapes);
        }
        let rows = self.rows.clone();
        Ok(Need::Rows { axis, rows })
    }
}

/// Which groups of so many rows these rows are.
pub(crate) fn whole_multiples(rows: &Range<u64>, of: u64) -> Result<Range<u64>, Reason> {
    if rows.start.is_multiple_of(of) && rows.end.is_multiple_of(of) {
        Ok(rows.start / of..rows.end / of)
    } else {
        Err(Reason::Multiple(of))
    }
}

impl Cut {
    /// The same cut with rows of one operand instead of all of it; an operand that is left out stays so.
    pub(crate) fn with(mut self, place: usize, axis: usize, rows: Range<u64>) -> Self {
        if let Some(need) = self.needs.get_mut(place) {
            *need = Need::Rows { axis, rows };
        }
        self
    }

    pub(crate) fn with_ints(mut self, name: &str, values: &[u64]) -> Result<Self, Reason> {
        let values: Result<Vec<i64>, _> = values.iter().map(|&value| i64::try_from(value)).collect();
        let values = values.map_err(|_| Reason::Shapes)?;
        self.attributes.insert(name.to_owned(), Attribute::Ints(values));
        Ok(self)
    }

    pub(crate) fn with_int(mut self, name: &str, value: u64) -> Result<Self, Reason> {
        let value = i64::try_from(value).map_err(|_| Reason::Shapes)?;
        self.attributes.insert(name.to_owned(), Attribute::Int(value));
        Ok(self)
    }
}

/// Dimensions of a tensor of this type, where the free ones have the given size.
fn sized(ty: &ValueType, mut dims: Vec<u64>, free: Option<u64>) -> Vec<u64> {
    for (axis, dim) in dims.iter_mut().enumerate() {
        if let Some(size) = free.filter(|_| ty.is_free(axis)) {
            *dim = size;
        }
    }
    dims
}
