//! The header for programs in C says what the library does.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use remat_onnxruntime_arena::{AllocationCounts, LIBRARY};

/// This crate, and the root of the workspace.
fn folders() -> (&'static Path, PathBuf) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    (own, own.join("../../.."))
}

/// Runs the compiler on a source, which must not have anything to complain of. There is a C compiler wherever rustc links.
fn compile(source: &Path, arguments: &[&Path]) {
    let (own, _) = folders();
    let language = if source.extension().is_some_and(|end| end == "cpp") {
        ["-x", "c++", "-std=c++11"]
    } else {
        ["-x", "c", "-std=c99"]
    };
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-I"])
        .arg(own.join("c"))
        .args(language)
        .arg(source)
        .args(["-x", "none"])
        .args(arguments)
        .output()
        .expect("`cc` runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The fields of the structure, in their order.
fn fields_in_c() -> Vec<String> {
    let (own, _) = folders();
    let header = std::fs::read_to_string(own.join("c/remat_arena.h")).expect("it is there");
    let (_, body) = header
        .split_once("typedef struct remat_arena_figures {")
        .expect("it is there");
    let (body, _) = body.split_once("} remat_arena_figures;").expect("it is there");
    let fields = body.lines().filter_map(|line| line.trim().strip_prefix("uint64_t "));
    let fields = fields.filter_map(|field| Some(field.split_once(';')?.0.to_owned()));
    fields.filter(|field| !field.contains('(')).collect()
}

#[test]
fn fields_of_the_header_are_those_of_the_library_in_their_order() {
    let shown = format!("{:?}", AllocationCounts::default());
    let names = shown
        .split(['{', ','])
        .skip(1)
        .filter_map(|field| field.split(':').next());
    let names: Vec<&str> = names.map(str::trim).collect();
    let header = fields_in_c();
    assert_eq!(size_of::<AllocationCounts>(), names.len() * 8);
    // Others may be known to later libraries.
    assert_eq!(header[..names.len()], names);
}

#[test]
fn a_program_reads_what_the_library_wrote() {
    let Some(library) = LIBRARY else {
        panic!("this system has the library");
    };
    let folder = std::env::temp_dir().join(format!("remat-arena-header-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is space");
    let (file, program) = (folder.join("libremat_arena.so"), folder.join("figures"));
    std::fs::write(&file, library).expect("there is space");
    let (own, _) = folders();
    compile(&own.join("tests/figures.c"), &[&file, "-o".as_ref(), &program]);
    let output = Command::new(&program).output().expect("it runs");
    std::fs::remove_dir_all(&folder).expect("it is there");
    assert!(output.status.success(), "{}", output.status);
    let (known, written) = (fields_in_c().len() * 8, size_of::<AllocationCounts>());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        format!("{known} {written} 0")
    );
}

#[test]
fn a_program_in_c_has_the_options_of_the_cuda_provider_as_text() {
    let (own, _) = folders();
    let folder = std::env::temp_dir().join(format!("remat-arena-options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is space");
    let (file, program) = (folder.join("libremat_arena.so"), folder.join("options"));
    std::fs::write(&file, LIBRARY.expect("this system has the library")).expect("there is space");
    compile(&own.join("tests/options.c"), &[&file, "-o".as_ref(), &program]);
    let output = Command::new(&program).output().expect("it runs");
    std::fs::remove_dir_all(&folder).expect("it is there");
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "gpu_external_alloc gpu_external_free gpu_external_empty_cache 0"
    );
}

#[test]
fn a_program_in_cpp_may_include_the_header() {
    let source = std::env::temp_dir().join(format!("remat-arena-{}.cpp", std::process::id()));
    std::fs::write(
        &source,
        "#include \"remat_arena.h\"\n#include \"remat_cuda.h\"\nremat_arena_figures figures;\n",
    )
    .expect("there is space");
    compile(&source, &["-fsyntax-only".as_ref()]);
    std::fs::remove_file(source).expect("it is there");
}

#[test]
fn the_example_has_nothing_that_a_compiler_complains_of() {
    let (own, root) = folders();
    // In the place of ONNX Runtime's own header, which is not part of its packages for Python.
    let stub = own.join("tests/onnxruntime");
    compile(
        &root.join("examples/planned.c"),
        &["-I".as_ref(), &stub, "-fsyntax-only".as_ref()],
    );
}
