//! Effects of operations.
//!
//! Registered operations say themselves whether they touch memory. Of those that are not registered, the dialects below are known; all
//! else counts as stateful. What draws random numbers is never recomputed, whatever its dialect says: onnx-mlir marks
//! `onnx.RandomNormal` as pure, and a second run of a kernel gives other bits.

use remat_ir::Effects;

use crate::ffi::OpFacts;

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
const ONNX_STATEFUL: &[&str] = &["If", "Loop", "Scan", "SequenceMap", "EntryPoint", "Return", "Print", "Yield"];

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

/// The effects of an operation of this domain and type, as [`crate::attributes::identity`] names them.
pub(crate) fn effects(domain: &str, op_type: &str, facts: OpFacts) -> Effects {
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
        "stablehlo" if !facts.registered => of_lists(STABLEHLO_RANDOM, STABLEHLO_STATEFUL),
        _ if facts.effect_free => of_lists(STABLEHLO_RANDOM, &[]),
        _ => Effects::Stateful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(domain: &str, op_type: &str, effect_free: bool) -> Effects {
        let facts = OpFacts {
            registered: effect_free,
            effect_free,
            ..OpFacts::default()
        };
        effects(domain, op_type, facts)
    }

    #[test]
    fn operators_of_onnx_are_judged_by_name_even_where_their_dialect_calls_them_pure() {
        assert_eq!(of("", "Conv", false), Effects::Pure);
        assert_eq!(of("", "RandomNormal", true), Effects::Random);
        assert_eq!(of("", "Loop", false), Effects::Stateful);
    }

    #[test]
    fn unknown_operations_are_stateful() {
        assert_eq!(of("mine", "op", false), Effects::Stateful);
        assert_eq!(of("stablehlo", "custom_call", false), Effects::Stateful);
        assert_eq!(of("stablehlo", "rng", false), Effects::Random);
        assert_eq!(of("stablehlo", "add", false), Effects::Pure);
    }

    #[test]
    fn registered_operations_speak_for_themselves() {
        assert_eq!(of("tosa", "exp", true), Effects::Pure);
        assert_eq!(of("tosa", "variable_write", false), Effects::Stateful);
    }
}
