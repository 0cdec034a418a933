//! Plans of the memory of a run, as the arena library reads them.

use remat_onnxruntime_arena::{ALIGNMENT, ArenaPlanFile};

/// A plan that is read is written and read again as the same one, and its buffers lie within their block.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let Ok(file) = ArenaPlanFile::parse(text) else {
        return false;
    };
    let again = ArenaPlanFile::parse(&file.to_string());
    assert_eq!(again.as_ref(), Ok(&file), "what is written is read as another plan");
    for plan in &file.plans {
        for buffer in &plan.buffers {
            assert!(buffer.first < buffer.last && buffer.bytes > 0);
            if let Some(offset) = buffer.offset {
                assert!(offset.is_multiple_of(ALIGNMENT) && offset + buffer.bytes <= plan.block_bytes);
            }
        }
    }
    true
}
