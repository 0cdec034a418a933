// The build script of every crate whose binaries or tests may link OR-Tools: tells them where its libraries lie. Harmless where
// nothing links them; says nothing where `third_party/fetch.sh` has not brought them.

pub(crate) fn main() {
    println!("cargo::rerun-if-env-changed=ORTOOLS_PREFIX");
    if let Ok(prefix) = std::env::var("ORTOOLS_PREFIX") {
        let libraries = std::path::Path::new(&prefix).join("lib");
        println!("cargo::rerun-if-changed={}", libraries.display());
        if libraries.exists() {
            println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
        }
    }
}
