//! What the text of a rewritten graph does not show; the rest is in `test/filetests/rewrite`.

use remat_ir::{GraphBuilder, OpSpec};
use remat_plan::Accounting;
use remat_rewrite::rewrite;

use crate::support::{problem, vector};
use remat_testing::plans::plan;

#[test]
fn sizes_that_types_leave_open_are_copied() {
    let mut builder = GraphBuilder::new("open");
    let (_, a) = builder
        .op(OpSpec::new("a", "Make").defines("a", remat_ir::ValueType::Unknown))
        .unwrap();
    let a = a[0].unwrap();
    builder.set_bytes(builder.graph().tensors[a].storage, 4096);
    let (_, y) = builder
        .op(OpSpec::new("use", "Use").reads(a).defines("y", vector(1)))
        .unwrap();
    builder.output(y[0].unwrap());
    let graph = builder.finish();
    let problem = problem(&graph, Accounting::Runtime, |_| 0);
    let plan = plan(&problem, "compute a, free a, recompute a, compute use");
    assert_eq!(remat_verify::replay(&problem, &plan).map(|_| ()), Ok(()));
    let new = rewrite(&graph, &problem, &plan, &|_| false).unwrap();
    let bytes: Vec<_> = new.storages.iter().map(|storage| storage.bytes).collect();
    assert_eq!(bytes, [Some(4096), Some(4096), Some(4)]);
}
