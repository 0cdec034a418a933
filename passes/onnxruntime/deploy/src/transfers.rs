//! What transfers to the second memory and back cost in ONNX Runtime.

use remat::plan::PagingMode;
use remat::{LoadOptions, SecondMemory};

/// The options for plans whose transfers the arena library does: a thread of it writes what leaves while the run goes on, and the run itself reads
/// what comes back. So with [`PagingMode::Dma`] the way out takes no time of the run, and the way back does; with [`PagingMode::Sync`] both do.
///
/// # Errors
/// Those of [`LoadOptions::device`].
pub fn with_pages_of_the_runtime(mut load: LoadOptions) -> Result<LoadOptions, remat::Error> {
    let Some(SecondMemory::Used { mode, capacity }) = load.second_memory else {
        return Ok(load);
    };
    if mode == PagingMode::Dma {
        let mut device = load.device()?;
        if let Some(paging) = &mut device.second_memory {
            paging.page_out.bytes_per_s = u64::MAX;
            load.own_devices.push(device);
            let mode = PagingMode::Sync;
            load.second_memory = Some(SecondMemory::Used { mode, capacity });
        }
    }
    Ok(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transferred(mode: PagingMode) -> (LoadOptions, remat::plan::Paging) {
        let asked = LoadOptions {
            second_memory: Some(SecondMemory::Used {
                mode,
                capacity: Some(7),
            }),
            ..LoadOptions::default()
        };
        let load = with_pages_of_the_runtime(asked).expect("a device");
        let paging = load.device().expect("a device").second_memory.expect("a second memory");
        (load, paging)
    }

    #[test]
    fn a_run_waits_for_what_comes_back_and_for_what_leaves_only_where_nothing_overlaps() {
        let (load, sync) = transferred(PagingMode::Sync);
        assert!(load.own_devices.is_empty());
        let (load, dma) = transferred(PagingMode::Dma);
        let used = SecondMemory::Used {
            mode: PagingMode::Sync,
            capacity: Some(7),
        };
        assert_eq!(load.second_memory, Some(used));
        let bytes = 64 << 20;
        assert!(dma.page_out.duration(bytes) < sync.page_out.duration(bytes) / 100);
        assert_eq!(dma.page_in, sync.page_in);
    }
}
