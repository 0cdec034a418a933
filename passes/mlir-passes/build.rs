//! Builds the registration of the passes with MLIR where the feature `llvm` is on, and tells programs where MLIR's library lies.

#[path = "../../dialect/mlir/rpath.rs"]
mod mlir;
#[path = "../ortools/rpath.rs"]
mod ortools;

fn main() {
    mlir::main();
    ortools::main();
    #[cfg(feature = "llvm")]
    llvm::build();
}

#[cfg(feature = "llvm")]
mod llvm {
    use std::env;
    use std::path::PathBuf;

    pub(crate) fn build() {
        println!("cargo::rerun-if-changed=cpp");
        let prefix = PathBuf::from(env::var_os("MLIR_SYS_220_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into()));
        // Of the build script of `remat-mlir`.
        let dialect =
            |key: &str| env::var_os(format!("DEP_REMATDIALECT_{key}")).expect("remat-mlir says where its headers are");
        cc::Build::new()
            .cpp(true)
            .compiler(prefix.join("bin/clang++"))
            .std("c++17")
            .files(["cpp/Lower.cpp", "cpp/Passes.cpp"])
            .include(dialect("INCLUDE"))
            .flag("-isystem")
            .flag(dialect("GENERATED"))
            .flag("-isystem")
            .flag(prefix.join("include"))
            .flag("-fno-rtti")
            .flag("-fno-exceptions")
            .flag("-fvisibility=hidden")
            // As the libraries are built: what `mlir::Pass` holds depends on it.
            .define("NDEBUG", None)
            .opt_level(2)
            .debug(false)
            .compile("remat_passes");
    }
}
