//! Builds the registration of the passes with MLIR where the feature `llvm` is on, and tells programs where MLIR's library lies.

fn main() {
    remat_build::rpath();
    #[cfg(feature = "llvm")]
    llvm::build();
}

#[cfg(feature = "llvm")]
mod llvm {
    use std::env;
    use std::path::PathBuf;

    use remat_build::cpp;

    pub(crate) fn build() {
        println!("cargo::rerun-if-changed=cpp");
        // Of the build script of `remat-mlir`.
        let dialect = |key: &str| {
            PathBuf::from(
                env::var_os(format!("DEP_REMATDIALECT_{key}")).expect("remat-mlir says where its headers are"),
            )
        };
        cpp::build(&cpp::prefix(), &dialect("INCLUDE"), &dialect("GENERATED"))
            .files(["cpp/Inline.cpp", "cpp/Lower.cpp", "cpp/Passes.cpp"])
            .compile("remat_passes");
    }
}
