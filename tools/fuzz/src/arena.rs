//! Plans of the memory of a run, as the arena library reads them.

use remat_onnxruntime_arena::{ArenaPlan, ArenaPlanFile, Plans, Shape};

/// Most buffers of files that are placed.
const MOST_BUFFERS: usize = 200;

/// A plan that is read is written and read again as the same one. Whatever sizes the open dimensions have, no two buffers that are live at one time
/// share bytes of the block, and no block is larger than its bound.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let Ok(file) = ArenaPlanFile::parse(text) else {
        return false;
    };
    let again = ArenaPlanFile::parse(&file.to_string());
    assert_eq!(again.as_ref(), Ok(&file), "what is written is read as another plan");
    is_placed_everywhere(&file);
    file.of_load().iter().for_each(is_placed_everywhere);
    true
}

fn is_placed_everywhere(file: &ArenaPlanFile) {
    if file.plans.iter().any(|plan| plan.buffers.len() > MOST_BUFFERS) {
        return;
    }
    let plans = Plans::new(file);
    let least: Vec<u64> = file.dims.iter().map(|dim| dim.least).collect();
    let middle: Vec<u64> = file
        .dims
        .iter()
        .map(|dim| dim.least + (dim.most - dim.least) / 2)
        .collect();
    let most: Vec<u64> = file.dims.iter().map(|dim| dim.most).collect();
    for (number, plan) in file.plans.iter().enumerate() {
        for dims in [&least, &middle, &most] {
            if let Some(shape) = plans.shape(number, dims) {
                is_placed(plan, &shape, plans.block_bytes(), file.alignment());
            }
        }
    }
}

fn is_placed(plan: &ArenaPlan, shape: &Shape, bound: u64, alignment: u64) {
    assert!(shape.block_bytes() <= bound, "{} of {bound} bytes", shape.block_bytes());
    let buffers = plan.buffers.iter().zip(shape.sizes()).zip(shape.offsets());
    let placed = buffers.filter_map(|((buffer, &bytes), &offset)| Some((buffer, bytes, offset?)));
    let placed: Vec<_> = placed.collect();
    for (place, (one, bytes, offset)) in placed.iter().enumerate() {
        assert!(offset.is_multiple_of(alignment) && offset + bytes <= shape.block_bytes());
        for (other, more, start) in &placed[..place] {
            let lives = one.first < other.last && other.first < one.last;
            assert!(!lives || offset + bytes <= *start || start + more <= *offset);
        }
    }
}
