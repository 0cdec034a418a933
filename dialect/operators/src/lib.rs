//! What is known of operators, one row each.
//!
//! A row ([`Operator`]) is found by domain and name and holds every fact that the program uses about the operator: what a run does
//! besides computing results, which results share memory with operands, how the shape of the result is found, how the cost is
//! counted, and what ONNX Runtime's CPU kernel does. Passes ask the row and keep no lists of names. A fact that nobody states has the
//! default of its column, which is the cautious one; what is true of operators without a row, the row of their domain says.
//!
//! To add an operator is to add a row: `docs/adding-operators.md`.

mod columns;
mod domains;
mod in_place;
mod learning;
mod microsoft;
mod mlir;
mod onnx;
mod operator;
mod runtime;
mod streamed;
mod table;

pub use columns::{
    AttentionLayout, Blocked, Combine, DecidedBy, Effect, Element, Formula, Half, Movement, ProductOperands,
    ResultType, Sharing, Split, StandIn, Updates, Workspace,
};
pub use in_place::{overwritten, share_overwritten};
pub use operator::Operator;
pub use runtime::{BLOCKED_DOMAIN, PAGES_DOMAIN};
pub use streamed::{
    BEST, BEST_PLACES, BEST_VALUES, EXPONENTIALS, MOMENTS, NORMALIZE, NORMALIZER, SOFTEN, STREAMED_DOMAIN, WEIGH,
    WEIGHED,
};
pub use table::{operator, rows};
