//! ONNX models to and from the graph of the passes.
//!
//! [`OnnxModel::open`] reads a file, checks it, infers the shapes of all values and gives the main graph as a
//! [`remat_ir::Graph`] in reference order; [`OnnxModel::save`] writes a rewritten graph back. Everything the graph does not
//! hold (weights, subgraphs, functions, metadata, fields of newer format versions) stays in the model and is written out
//! as it was read: exporting the graph unchanged gives an equal model.
//!
//! # Guarantees
//! - Hostile input gets an [`OnnxError`] that names the node, the tensor or the byte offset; never a panic, never memory
//!   beyond a multiple of the file. For external weights, only the lengths of their files are read, and only inside the model's
//!   folder.
//! - Ops stand in the stable topological order of the file: a sorted file keeps its order.
//! - Results live where ONNX Runtime puts them: views share storage, graph outputs own theirs.
//! - Only ops that are known to be pure are recomputable.

mod alias;
mod attributes;
mod bodies;
mod effects;
mod error;
mod export;
mod external;
mod fixed;
mod functions;
mod import;
mod inline;
mod integers;
mod marks;
mod model;
mod opsets;
mod order;
mod outline;
mod presence;
mod proto_type;
mod save;
mod scope;
mod shapes;
mod sink;
mod sizes;
mod streamed;
mod tensor;
mod tensor_file;
mod tiles;
mod two_passes;
mod types;
mod values;
mod weights;
mod wire;

pub use attributes::kind as attribute_kind;
pub use error::OnnxError;
pub use marks::{ANCHOR_SUFFIX, LostMarks, MARK, Marks, RECOMPUTE_OF};
pub use model::{KnownValue, OnnxModel};
pub use onnx_protobuf as proto;
pub use order::order_like;
pub use outline::{Piece, outline, restore};
pub use proto_type::{type_proto, value_info};
pub use scope::{captures, rename_captures, rename_values};
pub use sizes::ImportOptions;
pub use tensor_file::TensorFile;
pub use tiles::{PART, TILE_MARK};
pub use two_passes::write_for_two_passes;
pub use types::{element as element_type, value_type};
pub use weights::{LaidOut, LayOut, lay_out};
