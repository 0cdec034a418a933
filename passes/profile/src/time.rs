//! The roofline: from operations and bytes to nanoseconds.

use crate::formula::Work;
use crate::{Device, KernelClass};

const NS_PER_SECOND: u128 = 1_000_000_000;
const PERMILLE: u128 = 1_000;

/// Time of one run in nanoseconds; saturates.
pub(crate) fn duration_ns(work: &Work, device: &Device) -> u64 {
    match work.class {
        KernelClass::Constant => 0,
        KernelClass::View => device.view_ns,
        class => {
            let efficiency = device.efficiency(class);
            let arithmetic = rate_time(work.flops, device.peak.of(work.element), efficiency.compute_permille);
            let bytes = work.read_bytes.saturating_add(work.written_bytes);
            let memory = rate_time(bytes, device.memory_bytes_per_s, efficiency.memory_permille);
            let time = arithmetic.max(memory).saturating_add(u128::from(device.launch_ns));
            u64::try_from(time).unwrap_or(u64::MAX)
        }
    }
}

/// Time for `amount` at a share of `per_second`, rounded up.
fn rate_time(amount: u128, per_second: u64, permille: u64) -> u128 {
    let rate = u128::from(per_second).saturating_mul(u128::from(permille)).max(1);
    amount.saturating_mul(NS_PER_SECOND * PERMILLE).div_ceil(rate)
}
