//! Lets the plugin find the libraries that it is linked with.

fn main() {
    // What is missing is found now, not when the plugin is loaded.
    println!("cargo::rustc-link-arg=-Wl,-z,defs");
    remat_build::rpath();
}
