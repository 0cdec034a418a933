//! Elements that models compute sizes with, where the inference crate does not follow them.
//!
//! Source: the operator definitions in the ONNX specification. Whole numbers in floating point are lists like those of integers.

use onnx_runtime_ir::DataType;
use onnx_runtime_shape_inference::{NodeIo, ShapeData, SymbolInterner};
use remat_formula::{Formula, Variables};

use super::call::{Call, number};
use super::fraction::Fraction;
use super::table::Table;

/// An element, if it has a formula.
type Element = Option<Fraction>;

/// Puts in the elements of the results that the rules of the inference crate leave out.
pub(super) fn complete(call: &Call<'_>, results: &mut [NodeIo], table: &mut Table, interner: &mut SymbolInterner) {
    for result in results.iter_mut() {
        // Lists of mixed kinds are joined wrongly there: numbers in floating point have none of these.
        let length = length(result);
        result
            .shape_data
            .take_if(|data| data.float_elems.is_none() && length.is_some_and(|length| length != data.elems.len()));
    }
    let is_known = |io: &NodeIo| {
        let data = io.shape_data.as_ref();
        data.is_some_and(|data| {
            data.float_elems.is_some() || data.elems.iter().all(|dim| table.fraction(dim).is_some())
        })
    };
    let is_short = |io: &NodeIo| io.type_info.as_ref().is_some_and(|info| info.rank() < 2);
    if results.iter().all(|io| is_known(io) || !is_short(io)) || !call.node.is_default_domain() {
        return;
    }
    for (result, elements) in results.iter_mut().zip(lists(call, table).unwrap_or_default()) {
        let Some(info) = result.type_info.as_ref() else {
            continue;
        };
        if length(result) != Some(elements.len()) {
            continue;
        }
        let mut expression = |element: Element| match element {
            None => interner.fresh_dim(),
            Some(element) => table.element(element, interner),
        };
        result.shape_data = Some(ShapeData {
            dtype: info.dtype,
            dims: vec![elements.len(); info.rank()],
            elems: elements.into_iter().map(&mut expression).collect(),
            float_elems: None,
        });
    }
}

/// How many elements a value of rank 0 or 1 has.
fn length(io: &NodeIo) -> Option<usize> {
    match io.type_info.as_ref()?.shape.as_slice() {
        [] => Some(1),
        [length] => usize::try_from(length.as_const()?).ok(),
        _ => None,
    }
}

/// The elements of each result.
fn lists(call: &Call<'_>, table: &mut Table) -> Option<Vec<Vec<Element>>> {
    let operands: Vec<_> = (0..call.inputs.len())
        .map(|operand| call.elements(operand, table))
        .collect();
    let list = |operand: usize| operands.get(operand)?.as_deref();
    let is_float = call.info(0).is_some_and(|info| !is_integer(info.dtype));
    let variables = &mut table.variables;
    let name = call.node.op_type.as_str();
    Some(match name {
        // The same elements in another form.
        "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" => vec![list(0)?.to_vec()],
        "Cast" | "Floor" | "Ceil" | "Neg" | "Not" => {
            let to = DataType::from_onnx(i32::try_from(call.int("to", 0)).ok()?);
            let result = |element: &Element| alone(name, to, element.as_ref()?, variables);
            vec![list(0)?.iter().map(result).collect()]
        }
        "Where" => {
            let pairs = spread(list(1)?, list(2)?)?;
            let both = pairs.iter().map(|pair| Some(pair.clone())).collect::<Vec<_>>();
            let pick = |(condition, pair): (Element, Option<(Element, Element)>)| {
                let (one, other) = pair?;
                if condition?.as_constant()? == 0 { other } else { one }
            };
            vec![spread(list(0)?, &both)?.into_iter().map(pick).collect()]
        }
        "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" => {
            let operation = match name {
                "ReduceProd" => "Mul",
                "ReduceSum" => "Add",
                "ReduceMax" => "Max",
                _ => "Min",
            };
            let (first, others) = list(0)?.split_first()?;
            let mut both =
                |one: Element, other: &Element| combined(operation, is_float, &one?, other.as_ref()?, variables);
            vec![vec![others.iter().fold(first.clone(), &mut both)]]
        }
        "Split" => {
            let lengths = match call.list("split") {
                Some(lengths) => lengths.to_vec(),
                None => list(1)?
                    .iter()
                    .map(|length| length.as_ref()?.as_constant())
                    .collect::<Option<_>>()?,
            };
            let mut elements = list(0)?.iter().cloned();
            let part = |length: i64| Some(elements.by_ref().take(usize::try_from(length).ok()?).collect());
            lengths.into_iter().map(part).collect::<Option<_>>()?
        }
        _ => {
            let mut joined = list(0)?.to_vec();
            for operand in 1..operands.len() {
                let mut result = |(one, other): (Element, Element)| combined(name, is_float, &one?, &other?, variables);
                joined = spread(&joined, list(operand)?)?.into_iter().map(&mut result).collect();
            }
            let has_any = operands.len() > 1 && joined.iter().any(Option::is_some);
            has_any.then(|| vec![joined])?
        }
    })
}

/// The result of an operator of one operand; `to` is what a cast gives.
fn alone(name: &str, to: Option<DataType>, element: &Fraction, variables: &mut Variables) -> Element {
    Some(match (name, to) {
        ("Floor", _) => element.floor(variables)?.into(),
        ("Ceil", _) => element.ceil(variables)?.into(),
        ("Not", _) => number((element.as_constant()? == 0).into()).into(),
        ("Neg", _) => Fraction::from(number(0)).minus(element)?,
        (_, Some(DataType::Bool)) => number((element.as_constant()? != 0).into()).into(),
        (_, Some(to)) if is_integer(to) => element.truncated(variables)?.into(),
        (_, Some(DataType::Float32 | DataType::Float64)) => element.clone(),
        _ => return None,
    })
}

/// Two lists over each other.
fn spread<A: Clone, B: Clone>(one: &[A], other: &[B]) -> Option<Vec<(A, B)>> {
    let length = one.len().max(other.len());
    let is_fit = [one.len(), other.len()].iter().all(|&own| own == length || own == 1);
    let pairs = one.iter().cycle().zip(other.iter().cycle()).take(length);
    is_fit.then(|| pairs.map(|(one, other)| (one.clone(), other.clone())).collect())
}

/// The result of an operator of two operands, where that is known.
fn combined(name: &str, is_float: bool, one: &Fraction, other: &Fraction, variables: &mut Variables) -> Element {
    let is_positive = |formula: &Formula, variables: &Variables| variables.bounds(formula).0 >= 0;
    let truth = |is_true: bool| Some(number(is_true.into()).into());
    Some(match name {
        "Add" => one.plus(other)?,
        "Sub" => one.minus(other)?,
        "Mul" => one.times(other)?,
        "Div" if is_float => one.over(other)?,
        "Div" => {
            let (one, other) = (one.whole()?, other.whole()?);
            let by = other.as_constant().and_then(|by| u32::try_from(by).ok());
            let rounded = by.filter(|_| is_positive(one, variables));
            one.over(other).or_else(|| variables.floor(one, rounded?))?.into()
        }
        "Mod" => {
            let (one, other) = (one.whole()?, other.whole()?);
            let by = u32::try_from(other.as_constant()?)
                .ok()
                .filter(|_| is_positive(one, variables))?;
            one.minus(&variables.floor(one, by)?.times(other)?)?.into()
        }
        "Max" => variables.max(one.whole()?, other.whole()?)?.into(),
        "Min" => variables.min(one.whole()?, other.whole()?)?.into(),
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => {
            let (least, most) = one.difference(other, variables)?;
            return match name {
                "Equal" if least > 0 || most < 0 => truth(false),
                "Equal" if (least, most) == (0, 0) => truth(true),
                "Less" | "GreaterOrEqual" if most < 0 || least >= 0 => truth((most < 0) == (name == "Less")),
                "Greater" | "LessOrEqual" if least > 0 || most <= 0 => truth((least > 0) == (name == "Greater")),
                _ => None,
            };
        }
        "And" => truth(one.as_constant()? != 0 && other.as_constant()? != 0)?,
        "Or" => truth(one.as_constant()? != 0 || other.as_constant()? != 0)?,
        _ => return None,
    })
}

fn is_integer(dtype: DataType) -> bool {
    dtype.is_int() || dtype == DataType::Bool
}
