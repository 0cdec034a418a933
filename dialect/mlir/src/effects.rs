//! Effects of operations.
//!
//! Registered operations state whether they touch memory. Of unregistered operations, those of the dialects below are known; all others
//! count as stateful. Operations that draw random numbers are never recomputed, whatever their dialect states: onnx-mlir marks
//! `onnx.RandomNormal` as pure, but a second run of a kernel gives other bits.

use remat_ir::Effects;

/// ONNX operators that draw random numbers. `Dropout` is one where it trains, which its operands say, not its name.
const ONNX_RANDOM: &[&str] = &[
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// ONNX operators that run subgraphs, and what onnx-mlir adds that computes nothing.
const ONNX_STATEFUL: &[&str] = &[
    "If",
    "Loop",
    "Scan",
    "SequenceMap",
    "EntryPoint",
    "Return",
    "Print",
    "Yield",
];

/// Operations of `stablehlo` that draw random numbers.
const STABLEHLO_RANDOM: &[&str] = &["rng", "rng_bit_generator"];

/// Operations of `stablehlo` that communicate, run regions as long as data say, or hide what they do.
const STABLEHLO_STATEFUL: &[&str] = &[
    "after_all",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "case",
    "collective_broadcast",
    "collective_permute",
    "composite",
    "custom_call",
    "if",
    "infeed",
    "optimization_barrier",
    "outfeed",
    "partition_id",
    "recv",
    "reduce_scatter",
    "replica_id",
    "send",
    "while",
];

/// The effects of an operation of this domain and type, as [`crate::attributes::identity`] names them. `effect_free` is what the operation
/// says, if it is registered.
pub(crate) fn effects(domain: &str, op_type: &str, effect_free: Option<bool>) -> Effects {
    let of_lists = |random: &[&str], stateful: &[&str]| {
        if random.contains(&op_type) {
            Effects::Random
        } else if stateful.contains(&op_type) {
            Effects::Stateful
        } else {
            Effects::Pure
        }
    };
    match domain {
        "" => of_lists(ONNX_RANDOM, ONNX_STATEFUL),
        "stablehlo" if effect_free.is_none() => of_lists(STABLEHLO_RANDOM, STABLEHLO_STATEFUL),
        _ if effect_free == Some(true) => of_lists(STABLEHLO_RANDOM, &[]),
        _ => Effects::Stateful,
    }
}

/// Whether operations of this name make tensors to be written into.
pub(crate) fn is_without_contents(domain: &str, op_type: &str) -> bool {
    (domain, op_type) == ("tensor", "empty") || (domain, op_type) == ("bufferization", "alloc_tensor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_onnx_are_judged_by_name_even_where_their_dialect_calls_them_pure() {
        assert_eq!(effects("", "Conv", None), Effects::Pure);
        assert_eq!(effects("", "RandomNormal", Some(true)), Effects::Random);
        assert_eq!(effects("", "Loop", None), Effects::Stateful);
    }

    #[test]
    fn unknown_operations_are_stateful() {
        assert_eq!(effects("mine", "op", None), Effects::Stateful);
        assert_eq!(effects("stablehlo", "custom_call", None), Effects::Stateful);
        assert_eq!(effects("stablehlo", "rng", None), Effects::Random);
        assert_eq!(effects("stablehlo", "add", None), Effects::Pure);
    }

    #[test]
    fn registered_operations_speak_for_themselves() {
        assert_eq!(effects("tosa", "exp", Some(true)), Effects::Pure);
        assert_eq!(effects("tosa", "variable_write", Some(false)), Effects::Stateful);
    }
}
