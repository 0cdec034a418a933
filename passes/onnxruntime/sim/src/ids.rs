//! Dense ids of nodes and values.

use remat_ir::dense_id;

dense_id!(
    /// A node of a program; ids are in the order of the file, which the runtime's choices of order rest on.
    NodeIndex
);
dense_id!(
    /// A value of a program.
    ValueId
);
