//! What a rule looks at, and what it answers.

use remat_ir::{Attribute, Graph, Op, Spare, TensorId};

use super::values::Rows;

/// An op of the original, and the box of one of its results that a tile computes.
pub(super) struct Site<'a> {
    pub(super) graph: &'a Graph,
    pub(super) op: &'a Op,
    /// Dimensions of the result.
    pub(super) out: Vec<u64>,
    /// The box.
    pub(super) part: &'a [Rows],
}

/// What an operand of a tile is.
pub(super) enum Need<'a> {
    /// It is left out, as in the original.
    Nothing,
    /// All of the original's operand, whose dimensions need not be known.
    All,
    /// Rows of the original's operand.
    Part(Vec<Rows>),
    /// A constant with right elements.
    Elements(Elements<'a>),
}

/// What integers a tile reads.
pub(super) struct Elements<'a> {
    /// The ones to write.
    pub(super) plain: Vec<i64>,
    /// Whether others mean the same.
    pub(super) test: Test<'a>,
    /// Places of sizes that are left open, and from which number on an element would state one.
    pub(super) open: Vec<(usize, i64)>,
}

pub(super) type Test<'a> = Box<dyn Fn(&[i64]) -> bool + 'a>;

impl Need<'_> {
    /// A vector of these elements and no others.
    pub(super) fn exactly(elements: Vec<i64>) -> Self {
        Self::Elements(Elements {
            plain: elements,
            test: Box::new(|_| false),
            open: Vec::new(),
        })
    }
}

impl Elements<'_> {
    /// Whether these mean what the plain ones mean.
    pub(super) fn fit(&self, elements: &[i64]) -> bool {
        elements.len() == self.plain.len() && (elements == self.plain || (self.test)(elements))
    }

    /// The first place at which elements state a size that is left open.
    pub(super) fn states_open(&self, elements: &[i64]) -> Option<usize> {
        let states = |&&(place, least): &&(usize, i64)| elements.get(place).is_some_and(|&element| element >= least);
        self.open.iter().find(states).map(|&(place, _)| place)
    }
}

/// One right way to compute a box.
pub(super) struct Way<'a> {
    pub(super) operands: Vec<Need<'a>>,
    /// The attributes that may differ from the original's, each with its right values; `None` where it may be left out.
    pub(super) attributes: Vec<(&'static str, Vec<Option<Attribute>>)>,
    /// The rows of the result that are not right.
    pub(super) spare: Option<Spare>,
}

/// Why a rule gives no way.
pub(super) type NoWay = String;

impl<'a> Site<'a> {
    pub(super) fn has(&self, operand: usize) -> bool {
        self.id(operand).is_some()
    }

    fn id(&self, operand: usize) -> Option<TensorId> {
        self.op.inputs.get(operand).copied().flatten()
    }

    /// The dimensions of an operand.
    pub(super) fn dims(&self, operand: usize) -> Result<Vec<u64>, NoWay> {
        let id = self.id(operand).ok_or_else(|| format!("it has no operand {operand}"))?;
        let tensor = &self.graph.tensors[id];
        let dims = tensor.ty.known_shape();
        dims.ok_or_else(|| format!("the shape of `{}` is not known", tensor.name))
    }

    /// The elements of an operand that is an integer constant.
    pub(super) fn integers(&self, operand: usize) -> Result<&'a [i64], NoWay> {
        let known = self.id(operand).and_then(|id| self.graph.values.get(&id));
        known
            .map(Vec::as_slice)
            .ok_or_else(|| format!("the elements of operand {operand} are not known"))
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_int)
            .unwrap_or(default)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.op.attributes.get(name).and_then(Attribute::as_ints)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.op.attributes.get(name).and_then(Attribute::as_str)
    }

    /// # Errors
    /// Where an attribute says that channels stand last.
    pub(super) fn channels_first(&self) -> Result<(), NoWay> {
        match self.int("channels_last", 0) {
            0 => Ok(()),
            _ => Err("its channels stand last".to_owned()),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.out.len()
    }

    /// Axes of the result that are left open, each with the number from which on an element of a shape states its size.
    pub(super) fn open(&self, least: i64) -> Vec<(usize, i64)> {
        let result = self.op.results().next();
        let dims = result.map_or(&[][..], |result| self.graph.tensors[result].ty.dims());
        let open = dims.iter().enumerate().filter(|(_, dim)| dim.is_free());
        open.map(|(axis, _)| (axis, least)).collect()
    }

    /// Whether the box has all rows of an axis.
    pub(super) fn is_whole(&self, axis: usize) -> bool {
        self.part[axis] == (0..self.out[axis])
    }

    /// The way that needs all of every operand.
    pub(super) fn way(&self) -> Result<Way<'a>, NoWay> {
        let operand = |position: usize| {
            Ok(match self.has(position) {
                true => Need::Part(whole(&self.dims(position)?)),
                false => Need::Nothing,
            })
        };
        let operands = (0..self.op.inputs.len()).map(operand).collect::<Result<_, NoWay>>()?;
        Ok(Way {
            operands,
            attributes: Vec::new(),
            spare: None,
        })
    }

    /// The same, where dimensions of operands need not be known: scalars of MLIR.
    pub(super) fn way_with_scalars(&self) -> Way<'a> {
        let operand = |position: usize| match (self.has(position), self.dims(position)) {
            (false, _) => Need::Nothing,
            (true, Ok(dims)) => Need::Part(whole(&dims)),
            (true, Err(_)) => Need::All,
        };
        Way {
            operands: (0..self.op.inputs.len()).map(operand).collect(),
            attributes: Vec::new(),
            spare: None,
        }
    }

    /// The rows of an operand that is broadcast to the result: axes count from the last one.
    pub(super) fn broadcast(&self, operand: usize) -> Result<Vec<Rows>, NoWay> {
        let dims = self.dims(operand)?;
        let offset = self.rank().checked_sub(dims.len());
        let offset = offset.ok_or_else(|| format!("operand {operand} has more axes than the result"))?;
        let rows = dims.iter().enumerate().map(|(axis, &dim)| match dim {
            _ if dim == self.out[axis + offset] => Ok(self.part[axis + offset].clone()),
            1 => Ok(0..1),
            _ => Err(format!("operand {operand} does not fit the result")),
        });
        rows.collect()
    }
}

impl Way<'_> {
    /// The same, but for one operand, where the op has it.
    pub(super) fn with(mut self, operand: usize, rows: Vec<Rows>) -> Self {
        if let Some(need @ Need::Part(_)) = self.operands.get_mut(operand) {
            *need = Need::Part(rows);
        }
        self
    }

    /// The same, but for the rows of one axis of an operand, where the op has it.
    pub(super) fn with_axis(mut self, operand: usize, axis: usize, rows: &Rows) -> Self {
        if let Some(Need::Part(all)) = self.operands.get_mut(operand)
            && let Some(own) = all.get_mut(axis)
        {
            own.clone_from(rows);
        }
        self
    }

    pub(super) fn allow(mut self, name: &'static str, values: Vec<Option<Attribute>>) -> Self {
        self.attributes.push((name, values));
        self
    }
}

/// All rows.
pub(super) fn whole(dims: &[u64]) -> Vec<Rows> {
    dims.iter().map(|&dim| 0..dim).collect()
}

/// An axis of so many, which counts from the end where it is negative.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, NoWay> {
    let from_start = if axis < 0 {
        axis.saturating_add(i64::try_from(rank).unwrap_or(0))
    } else {
        axis
    };
    let found = usize::try_from(from_start).ok().filter(|&axis| axis < rank);
    found.ok_or_else(|| format!("there is no axis {axis} among {rank}"))
}

/// A number of rows as the attributes count them.
pub(super) fn signed(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Rows between two numbers that may lie outside of an axis.
pub(super) fn rows(from: i64, to: i64) -> Result<Rows, NoWay> {
    match (u64::try_from(from), u64::try_from(to)) {
        (Ok(from), Ok(to)) if from < to => Ok(from..to),
        _ => Err("it would need no row of its operand".to_owned()),
    }
}
