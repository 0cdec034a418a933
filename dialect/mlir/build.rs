//! Builds the C++ of this crate where the feature `llvm` is on: the dialect with CMake, the queries, and a name for the C API.
//!
//! The C API of Debian's packages is there as archives only. They are linked under the name that mlir-sys asks for, by a script
//! that the linker reads in place of a library. They refer to the shared `libMLIR`, so that MLIR is never in a program twice.

fn main() {
    remat_build::rpath();
    #[cfg(feature = "llvm")]
    llvm::build();
}

#[cfg(feature = "llvm")]
mod llvm {
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    use remat_build::cpp;

    pub(crate) fn build() {
        let prefix = cpp::prefix();
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        let config = prefix.join("lib/cmake/mlir");
        assert!(
            config.is_dir(),
            "MLIR 22 is not in `{}`: run third_party/fetch.sh, or set MLIR_SYS_220_PREFIX",
            prefix.display()
        );
        for path in ["CMakeLists.txt", "include", "lib", "queries"] {
            println!("cargo::rerun-if-changed={path}");
        }
        name_c_api(&prefix, &out);
        // The queries refer to the dialect, so they come first.
        let dialect = build_dialect(&prefix, &config);
        build_queries(&prefix, &dialect);
        println!("cargo::rustc-link-search=native={}", dialect.display());
        println!("cargo::rustc-link-lib=static=RematDialect");
        println!("cargo::rustc-link-search=native={}", prefix.join("lib").display());
        println!("cargo::rustc-link-lib=dylib=MLIR");
        // For the build scripts of crates that link C++ of their own against the dialect.
        println!(
            "cargo::metadata=include={}",
            Path::new("include").canonicalize().expect("it is here").display()
        );
        println!("cargo::metadata=generated={}", dialect.join("include").display());
    }

    /// Writes `libMLIR-C.so`, a linker script over the archives of the C API.
    fn name_c_api(prefix: &Path, out: &Path) {
        let entries = fs::read_dir(prefix.join("lib")).expect("the folder of libraries can be read");
        let mut archives: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("libMLIRCAPI") && name.ends_with(".a")
            })
            .map(|path| path.display().to_string())
            .collect();
        archives.sort();
        assert!(
            !archives.is_empty(),
            "`{}` has no archives of MLIR's C API",
            prefix.display()
        );
        let script = format!("INPUT({})\n", archives.join(" "));
        fs::write(out.join("libMLIR-C.so"), script).expect("the folder of this build can be written");
        println!("cargo::rustc-link-search=native={}", out.display());
    }

    fn build_dialect(prefix: &Path, config: &Path) -> PathBuf {
        let built = cmake::Config::new(".")
            .generator("Ninja")
            .define("MLIR_DIR", config)
            .define("CMAKE_C_COMPILER", prefix.join("bin/clang"))
            .define("CMAKE_CXX_COMPILER", prefix.join("bin/clang++"))
            .profile("Release")
            .build_target("RematDialect")
            .build();
        built.join("build")
    }

    fn build_queries(prefix: &Path, dialect: &Path) {
        cpp::build(prefix, Path::new("include"), &dialect.join("include"))
            .files([
                "queries/Buffers.cpp",
                "queries/Lowered.cpp",
                "queries/Queries.cpp",
                "queries/Reuse.cpp",
            ])
            .compile("remat_queries");
    }
}
