//! Effects of operations.
//!
//! Registered operations state whether they touch memory. Of unregistered operations, those of the table of operators are known; all
//! others count as stateful. Operations that draw random numbers are never recomputed, whatever their dialect states: onnx-mlir marks
//! `onnx.RandomNormal` as pure, but a second run of a kernel gives other bits.

use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use remat_ir::Effects;
use remat_operators::{Effect, operator};

use crate::attributes::identity;
use crate::bodies::{for_each_block, for_each_op};
use crate::ffi;

/// The effects of an operation and of all that its regions hold.
pub(crate) fn effects_of(op: OperationRef<'_, '_>) -> Effects {
    let (domain, op_type) = identity(op);
    let registered = ffi::describe(op).registered;
    let own = match (domain.as_str(), op_type.as_str()) {
        ("stablehlo", "custom_call") if says_no_side_effect(op) => Effects::Pure,
        _ => effects(&domain, &op_type, registered.then(|| ffi::is_effect_free(op))),
    };
    // Registered operations speak for their regions.
    if own == Effects::Stateful || registered || op.region_count() == 0 {
        return own;
    }
    let mut all = own;
    for_each_block(op, &mut |block| {
        for_each_op(block, &mut |nested| {
            all = match (all, effects_of(nested)) {
                (Effects::Stateful, _) | (_, Effects::Stateful) => Effects::Stateful,
                (Effects::Pure, nested) => nested,
                (all, Effects::Pure) => all,
                (Effects::Random, Effects::Random) => Effects::Random,
                _ => Effects::Stateful,
            };
        });
    });
    all
}

/// A custom call that says itself that it has no side effect; one that does not say so may have some.
fn says_no_side_effect(op: OperationRef<'_, '_>) -> bool {
    let mut all = ffi::attributes(op).into_iter();
    let stated = all.find(|(name, _)| name == "has_side_effect");
    stated.and_then(|(_, value)| ffi::truth(value)) == Some(false)
}

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
