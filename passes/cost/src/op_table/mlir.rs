//! Dialects of MLIR. What an operation of `linalg` or one with regions does, its loops say, not its name: the importer states it.

use super::{Formula, KernelClass};

/// The formula of an operation of this dialect; `None` for dialects that are not MLIR's.
pub(super) fn formula(dialect: &str, op: &str) -> Option<Formula> {
    Some(match dialect {
        "tosa" => tosa(op),
        "linalg" => match op {
            "softmax" => Formula::Softmax(20),
            "pack" | "unpack" => Formula::Move(KernelClass::Transpose),
            _ => Formula::Stated,
        },
        "arith" => arith(op),
        "math" => math(op),
        "tensor" => tensor(op),
        "stablehlo" => stablehlo(op),
        "scf" | "affine" => Formula::Stated,
        "remat" => Formula::Metadata,
        _ => return None,
    })
}

/// Operations that several dialects have under one name.
fn elementwise(op: &str) -> Option<Formula> {
    use Formula as F;
    Some(match op {
        "exp" | "exp2" | "expm1" | "exponential" | "exponential_minus_one" => F::Transcendental(20),
        "sigmoid" | "tanh" | "logistic" => F::Transcendental(32),
        "erf" | "erfc" => F::Transcendental(64),
        "acos" | "acosh" | "asin" | "asinh" | "atan" | "atan2" | "atanh" | "cbrt" | "cos" | "cosine" | "log"
        | "log10" | "log1p" | "log2" | "log_plus_one" | "sin" | "sine" | "sincos" => F::Transcendental(200),
        "fpowi" | "ipowi" | "pow" | "power" | "powf" | "remainder" => F::Transcendental(500),
        "cosh" | "sinh" | "tan" => F::Transcendental(1500),
        "rsqrt" | "sqrt" | "reciprocal" => F::Elementwise(4),
        "select" => F::Select,
        "clamp" => F::Elementwise(2),
        _ => return None,
    })
}

fn tosa(op: &str) -> Formula {
    use Formula as F;
    use KernelClass as K;
    elementwise(op).unwrap_or(match op {
        "conv2d" | "conv3d" => F::Conv { weight: 1 },
        "depthwise_conv2d" => F::Depthwise { weight: 1 },
        "transpose_conv2d" => F::TransposedLastChannels { weight: 1 },
        "matmul" => F::MatMul,
        "max_pool2d" => F::Pool,
        "avg_pool2d" => F::AveragePool,
        "argmax" => F::Reduce(1),
        _ if op.starts_with("reduce_") => F::Reduce(1),
        "concat" | "pad" | "slice" | "identity" | "reshape" => F::Move(K::Copy),
        "transpose" | "reverse" => F::Move(K::Transpose),
        "gather" | "table" => F::Move(K::Gather),
        "scatter" => F::Scatter,
        "tile" => F::Move(K::Broadcast),
        "resize" => F::Elementwise(8),
        "rescale" => F::Elementwise(4),
        "cond_if" | "while_loop" => F::Stated,
        "fft2d" | "rfft2d" | "custom" => F::Bytes,
        _ => F::Elementwise(1),
    })
}

fn arith(op: &str) -> Formula {
    elementwise(op).unwrap_or(Formula::Elementwise(1))
}

fn math(op: &str) -> Formula {
    elementwise(op).unwrap_or(Formula::Elementwise(1))
}

fn tensor(op: &str) -> Formula {
    use Formula as F;
    use KernelClass as K;
    match op {
        "pack" | "unpack" => F::Move(K::Transpose),
        "gather" => F::Move(K::Gather),
        "scatter" => F::Scatter,
        "splat" => F::Move(K::Broadcast),
        "generate" => F::Stated,
        "dim" | "rank" | "empty" => F::Metadata,
        _ => F::Move(K::Copy),
    }
}

fn stablehlo(op: &str) -> Formula {
    use Formula as F;
    use KernelClass as K;
    elementwise(op).unwrap_or(match op {
        "convolution" | "dynamic_conv" => F::ConvLastOutput { weight: 1 },
        "dot" | "dot_general" => F::MatMul,
        "reduce" | "reduce_window" | "select_and_scatter" => F::Reduce(1),
        "batch_norm_inference" | "batch_norm_training" | "batch_norm_grad" => F::Normalization(4),
        "broadcast_in_dim" | "dynamic_broadcast_in_dim" | "iota" | "dynamic_iota" => F::Move(K::Broadcast),
        "concatenate"
        | "pad"
        | "dynamic_pad"
        | "slice"
        | "dynamic_slice"
        | "dynamic_update_slice"
        | "reshape"
        | "dynamic_reshape"
        | "bitcast_convert" => F::Move(K::Copy),
        "transpose" | "reverse" => F::Move(K::Transpose),
        "gather" | "dynamic_gather" | "torch_index_select" => F::Move(K::Gather),
        "scatter" => F::Scatter,
        "sort" => F::Sort,
        "rng" | "rng_bit_generator" => F::Elementwise(10),
        "get_dimension_size" | "set_dimension_size" | "tuple" | "get_tuple_element" => F::Metadata,
        "case" | "if" | "while" | "map" => F::Stated,
        "cholesky" | "fft" | "triangular_solve" | "custom_call" | "composite" => F::Bytes,
        _ => F::Elementwise(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_means_different_work_in_different_dialects() {
        assert_eq!(formula("tosa", "matmul"), Some(Formula::MatMul));
        assert_eq!(formula("linalg", "matmul"), Some(Formula::Stated));
        assert_eq!(formula("tosa", "exp"), formula("math", "exp"));
        assert_eq!(formula("arith", "addf"), Some(Formula::Elementwise(1)));
        assert_eq!(formula("", "Conv"), None);
        assert_eq!(formula("mine", "exp"), None);
    }
}
