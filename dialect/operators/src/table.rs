//! Finding a row.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::operator::Operator;
use crate::{domains, learning, microsoft, mlir, onnx, runtime, streamed};

/// The tables by group; each is sorted by domain and name.
pub(crate) const GROUPS: &[&[Operator]] = &[
    onnx::ARITHMETIC,
    onnx::LAYERS,
    onnx::MOVEMENT,
    onnx::OTHERS,
    microsoft::INFERENCE,
    microsoft::TRAINING,
    microsoft::TRAINING_IN_DEFAULT_DOMAIN,
    runtime::ROWS,
    streamed::ROWS,
    learning::ROWS,
    mlir::TOSA,
    mlir::STABLEHLO,
    mlir::CHLO,
    mlir::UPSTREAM,
];

/// The rows of ONNX's default domain.
static BY_DEFAULT: LazyLock<FxHashMap<&str, &Operator>> = LazyLock::new(|| {
    let rows = rows().filter(|row| row.domain.is_empty());
    rows.map(|row| (row.name, row)).collect()
});

static BY_NAME: LazyLock<FxHashMap<(&str, &str), &Operator>> =
    LazyLock::new(|| rows().map(|row| ((row.domain, row.name), row)).collect());

/// Every row, group by group.
pub fn rows() -> impl Iterator<Item = &'static Operator> {
    GROUPS.iter().copied().flatten()
}

/// What is known of the operator `name` of this domain. ONNX's default domain has two spellings, `""` and `ai.onnx`; dialects of MLIR are
/// domains.
///
/// An operator without a row is what its domain says of such operators; one of an unknown domain is of unknown cost, and stateful unless it
/// declares otherwise.
#[must_use]
pub fn operator(domain: &str, name: &str) -> &'static Operator {
    let domain = if domain == "ai.onnx" { "" } else { domain };
    // To compare empty names takes long on some machines.
    let found = match domain {
        "" => BY_DEFAULT.get(name),
        _ => BY_NAME.get(&(domain, name)),
    };
    found.copied().unwrap_or_else(|| domains::others(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_sorted_by_domain_and_name() {
        for group in GROUPS {
            let unsorted = group
                .windows(2)
                .find(|pair| (pair[0].domain, pair[0].name) >= (pair[1].domain, pair[1].name));
            assert_eq!(unsorted, None);
        }
    }
}
