//! MLIR is in a program once: what is linked refers to the shared library.

use std::path::Path;
use std::process::Command;

/// What a program prints; `None` if it is not there.
fn output(program: &str, argument: &[&str], file: &Path) -> Option<String> {
    let output = Command::new(program).args(argument).arg(file).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn mlir_is_linked_once_and_shared() {
    let program = std::env::current_exe().expect("this program is a file");
    let libraries = output("ldd", &[], &program).expect("ldd comes with the C library");
    for library in ["libMLIR.so", "libLLVM.so"] {
        assert_eq!(libraries.matches(&format!("{library}.")).count() / 2, 1, "{libraries}");
    }
    assert!(!libraries.contains("not found"), "{libraries}");
    // Classes whose members would be here if their archives were linked.
    let symbols = output("nm", &["--defined-only"], &program).expect("nm comes with the linker");
    for mangled in [
        "_ZN4mlir11MLIRContextC",
        "_ZN4mlir11PassManagerC",
        "_ZN4mlir9Operation5eraseEv",
    ] {
        assert!(
            !symbols.contains(mangled),
            "`{mangled}` is defined here, beside the one in libMLIR"
        );
    }
}
