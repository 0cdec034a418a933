//! Without a standard library: memory and the end of the program are functions of the program.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::panic::PanicInfo;

unsafe extern "C" {
    fn remat_planner_allocate(size: usize, alignment: usize) -> *mut c_void;
    fn remat_planner_release(pointer: *mut c_void, size: usize, alignment: usize);
    safe fn remat_planner_panic() -> !;
}

/// The program's allocator.
struct OfProgram;

// SAFETY: the header demands of the program what the trait demands: blocks of this size and alignment, or null.
unsafe impl GlobalAlloc for OfProgram {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the size is not 0, as the caller promises.
        unsafe { remat_planner_allocate(layout.size(), layout.align()) }.cast()
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: it was allocated with this layout, as the caller promises.
        unsafe { remat_planner_release(pointer.cast(), layout.size(), layout.align()) }
    }
}

#[global_allocator]
static ALLOCATOR: OfProgram = OfProgram;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    remat_planner_panic()
}
