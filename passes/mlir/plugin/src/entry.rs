//! The two functions that MLIR looks for in a plugin. Source: `mlir/Tools/Plugins/PassPlugin.h` and `DialectPlugin.h`.
#![expect(unsafe_code, reason = "MLIR finds the functions by their unmangled names")]
#![expect(unreachable_pub, reason = "they are exported to C")]

use std::ffi::{CStr, c_char, c_void};

/// Of the interface of plugins.
const API_VERSION: u32 = 1;

const NAME: &CStr = c"remat";

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => NAME,
};

/// What MLIR wants to know about a plugin of passes.
#[repr(C)]
pub struct PassPluginLibraryInfo {
    api_version: u32,
    plugin_name: *const c_char,
    plugin_version: *const c_char,
    register: extern "C" fn(),
}

/// What MLIR wants to know about a plugin of dialects.
#[repr(C)]
pub struct DialectPluginLibraryInfo {
    api_version: u32,
    plugin_name: *const c_char,
    plugin_version: *const c_char,
    register: unsafe extern "C" fn(*mut c_void),
}

extern "C" fn register_passes() {
    // The program that loads the plugin knows nothing of what it needs.
    remat_mlir_passes::prove_with(|name| std::env::var_os(name));
    remat_mlir_passes::register_passes();
}

/// # Safety
/// The pointer is that of a living `mlir::DialectRegistry`.
unsafe extern "C" fn register_dialect(registry: *mut c_void) {
    // SAFETY: the caller says so.
    unsafe { remat_mlir_passes::register_dialect(registry) };
}

/// The passes.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> PassPluginLibraryInfo {
    PassPluginLibraryInfo {
        api_version: API_VERSION,
        plugin_name: NAME.as_ptr(),
        plugin_version: VERSION.as_ptr(),
        register: register_passes,
    }
}

/// The dialect.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetDialectPluginInfo() -> DialectPluginLibraryInfo {
    DialectPluginLibraryInfo {
        api_version: API_VERSION,
        plugin_name: NAME.as_ptr(),
        plugin_version: VERSION.as_ptr(),
        register: register_dialect,
    }
}
