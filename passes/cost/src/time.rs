//! From operations and bytes to nanoseconds.
//!
//! The roofline, `max(operations / rate, bytes / bandwidth)`, plus the time to start the kernel. On CPUs the kernel's own
//! unfolding, packing and short loops come on top: they run before or between the arithmetic, on the same core.

use crate::device::rate_time;
use crate::work::Work;
use crate::{Device, Efficiency, KernelClass};

const PS_PER_NS: u128 = 1_000;

/// Time of one run in nanoseconds; saturates.
pub(crate) fn duration_ns(work: &Work, device: &Device) -> u64 {
    let launched = match work.class {
        KernelClass::Constant => return 0,
        KernelClass::View => return device.view_ns,
        class => {
            let efficiency = device.efficiency(class);
            roofline(work, device, efficiency)
                .saturating_add(cpu_detail(work, device, efficiency))
                .saturating_add(u128::from(device.launch_ns))
        }
    };
    u64::try_from(launched).unwrap_or(u64::MAX)
}

fn roofline(work: &Work, device: &Device, efficiency: Efficiency) -> u128 {
    let flops = match work.detail.row {
        Some(row) if device.cpu_kernels && row > 0 => {
            let lanes = (device.vector_bytes.saturating_mul(8) / work.element.bits()).max(1);
            let padded = u128::from(row.div_ceil(lanes)) * u128::from(lanes);
            work.flops.saturating_mul(padded) / u128::from(row)
        }
        _ => work.flops,
    };
    let arithmetic = rate_time(flops, device.peak.of(work.element), efficiency.compute_permille);
    let bytes = work.read_bytes.saturating_add(work.written_bytes);
    arithmetic.max(rate_time(bytes, device.memory_bytes_per_s, efficiency.memory_permille))
}

fn cpu_detail(work: &Work, device: &Device, efficiency: Efficiency) -> u128 {
    if !device.cpu_kernels {
        return 0;
    }
    let bytes = work.detail.repacked_bytes;
    let repacking = rate_time(bytes, device.memory_bytes_per_s, efficiency.memory_permille);
    let starts = work.detail.runs.saturating_mul(u128::from(efficiency.run_ps)) / PS_PER_NS;
    repacking.saturating_add(starts)
}

#[cfg(test)]
mod tests {
    use remat_ir::ElementType;

    use super::*;
    use crate::Peak;
    use crate::work::CpuDetail;

    /// A billion operations and a billion bytes per second, all of it reached, 16 bytes to a vector.
    fn device() -> Device {
        let rate = 1_000_000_000;
        let full = Efficiency {
            compute_permille: 1_000,
            memory_permille: 1_000,
            run_ps: 2_000,
        };
        Device {
            peak: Peak {
                bits64: rate,
                bits32: rate,
                bits16: rate,
                bits8: rate,
            },
            memory_bytes_per_s: rate,
            vector_bytes: 16,
            launch_ns: 7,
            view_ns: 3,
            efficiencies: KernelClass::ALL.iter().map(|&class| (class, full)).collect(),
            ..Device::default()
        }
    }

    fn work(flops: u128, bytes: u128) -> Work {
        Work {
            flops,
            read_bytes: bytes,
            element: ElementType::Float32,
            ..Work::none(KernelClass::MatMul)
        }
    }

    #[test]
    fn the_larger_of_arithmetic_and_memory_counts() {
        assert_eq!(duration_ns(&work(100, 40), &device()), 107);
        assert_eq!(duration_ns(&work(40, 100), &device()), 107);
    }

    #[test]
    fn views_and_constants_start_no_kernel() {
        assert_eq!(duration_ns(&Work::none(KernelClass::View), &device()), 3);
        assert_eq!(duration_ns(&Work::none(KernelClass::Constant), &device()), 0);
        assert_eq!(duration_ns(&Work::none(KernelClass::Copy), &device()), 7);
    }

    #[test]
    fn cpu_kernels_pay_for_repacking_loops_and_padding_and_others_do_not() {
        let mut detailed = work(90, 0);
        detailed.detail = CpuDetail {
            repacked_bytes: 50,
            runs: 10,
            // Rows of 9 floats take three vectors of 4.
            row: Some(9),
        };
        assert_eq!(duration_ns(&detailed, &device()), 120 + 50 + 20 + 7);
        let accelerator = Device {
            cpu_kernels: false,
            ..device()
        };
        assert_eq!(duration_ns(&detailed, &accelerator), 90 + 7);
    }

    #[test]
    fn efficiencies_lengthen_and_nothing_overflows() {
        let mut device = device();
        for efficiency in device.efficiencies.values_mut() {
            efficiency.compute_permille = 250;
        }
        assert_eq!(duration_ns(&work(100, 0), &device), 407);
        assert_eq!(duration_ns(&work(u128::MAX, u128::MAX), &device), u64::MAX);
    }
}
