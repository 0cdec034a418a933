//! Effects of operations.
//!
//! Registered operations state whether they touch memory. Of unregistered operations, those of the table of operators are known; all
//! others count as stateful. Operations that draw random numbers are never recomputed, whatever their dialect states: onnx-mlir marks
//! `onnx.RandomNormal` as pure, but a second run of a kernel gives other bits.

use remat_ir::Effects;
use remat_operators::{Effect, operator};

/// The effects of an operation of this domain and type, as [`crate::attributes::identity`] names them. `effect_free` is what the operation
/// says, if it is registered.
pub(crate) fn effects(domain: &str, op_type: &str, effect_free: Option<bool>) -> Effects {
    match (operator(domain, op_type).effects, effect_free) {
        (Effect::Stateful | Effect::ControlFlow, _) => Effects::Stateful,
        // Where a `Dropout` trains, its operands say, not its name.
        (Effect::Random | Effect::RandomInTraining, _) => Effects::Random,
        (Effect::Pure | Effect::StatefulInTraining, _) => Effects::Pure,
        (Effect::Declared | Effect::DeclaredOrPure, Some(true)) | (Effect::DeclaredOrPure, None) => Effects::Pure,
        (Effect::Declared | Effect::DeclaredOrPure, Some(false)) | (Effect::Declared, None) => Effects::Stateful,
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
