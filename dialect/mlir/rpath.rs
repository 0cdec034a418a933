// The build script of every crate whose libraries, binaries or tests link MLIR: tells them where its library lies. Harmless where
// nothing links it.

pub(crate) fn main() {
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = std::env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    let libraries = std::path::Path::new(&prefix).join("lib");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
}
