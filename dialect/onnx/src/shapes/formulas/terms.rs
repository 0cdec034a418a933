//! The terms of an expression of the inference crate.

use onnx_runtime_ir::SymbolId;
use onnx_runtime_shape_inference::DimExpr;

/// Coefficients with the symbols that they multiply.
///
/// The crate tells them in its debugging output only. What is read there is put together again and compared: should the output change its
/// form, expressions have no terms, but never wrong ones.
pub(super) fn of(dim: &DimExpr) -> Option<Vec<(i64, Vec<u32>)>> {
    let text = format!("{dim:?}");
    let terms: Option<Vec<_>> = text.split('[').skip(1).map(term).collect();
    terms.filter(|terms| sum(terms) == *dim)
}

/// `7, 7, 9]: -3`, and what follows.
fn term(text: &str) -> Option<(i64, Vec<u32>)> {
    let (symbols, rest) = text.split_once("]: ")?;
    let end = rest.find([',', '}'])?;
    let symbols = symbols.split(", ").filter(|symbol| !symbol.is_empty());
    let symbols = symbols.map(|symbol| symbol.parse().ok()).collect::<Option<_>>()?;
    Some((rest[..end].parse().ok()?, symbols))
}

fn sum(terms: &[(i64, Vec<u32>)]) -> DimExpr {
    let product = |(coefficient, symbols): &(i64, Vec<u32>)| {
        let symbols = symbols.iter().map(|&symbol| DimExpr::symbol(SymbolId(symbol)));
        symbols.fold(DimExpr::constant(*coefficient), |product, symbol| product.mul(&symbol))
    };
    terms
        .iter()
        .map(product)
        .fold(DimExpr::constant(0), |sum, term| sum.add(&term))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_taken_apart() {
        let [a, b] = [3, 0x8000_0000].map(|symbol| DimExpr::symbol(SymbolId(symbol)));
        let number = DimExpr::constant;
        let sum = a.mul(&a).mul(&b).mul(&number(-4)).add(&b).add(&number(7));
        let expected = vec![(7, vec![]), (-4, vec![3, 3, 0x8000_0000]), (1, vec![0x8000_0000])];
        assert_eq!(of(&sum), Some(expected));
        assert_eq!(of(&number(0)), Some(Vec::new()));
        assert_eq!(of(&DimExpr::overflow()), None);
    }
}
