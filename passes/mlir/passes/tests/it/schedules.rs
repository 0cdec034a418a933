//! Schedules of generated functions: they compute the same, and have the peak that was promised.

use proptest::prelude::*;
use remat_mlir_passes::mlir::{Function, Parsed, Session};
use remat_mlir_passes::{FunctionReport, PassOptions, VerifyOptions, annotate, rematerialize, verify};

use crate::generate::{functions, functions_of_blocks};
use crate::meaning::meaning;

fn options(budget: &str) -> PassOptions {
    let mut options = PassOptions::default();
    for (name, value) in [
        ("budget", budget),
        ("step-limit", "3000"),
        ("remarks", "false"),
        ("solver", "search"),
    ] {
        options.set(name, value).expect("an option");
    }
    options
}

fn main_of<'p>(module: &'p Parsed<'_>) -> Function<'p> {
    let mut functions = module.functions().into_iter();
    functions
        .find(|function| function.name() == "main")
        .expect("there is a main")
}

/// Schedules `main` for the lowest peak; the report, and the module as text.
fn schedule(text: &str, options: &PassOptions) -> (FunctionReport, String) {
    let session = Session::new();
    let module = session.parse(text).expect("the text is a module");
    let report = rematerialize(main_of(&module), options).expect("there is a plan");
    (report, module.print().expect("what was made verifies"))
}

/// How many values the function in this text returns, which is the last one.
fn returned(text: &str) -> usize {
    let values = text
        .rsplit("return ")
        .next()
        .and_then(|values| values.split(" : ").next());
    values.map_or(0, |values| values.split(',').count())
}

/// The text with blocks that follow each other, and pass nothing on, as one: there meanings can be told.
fn in_one_block(text: &str) -> String {
    let between = |line: &&str| {
        let line = line.trim();
        line.starts_with("cf.br") || (line.starts_with("^b") && !line.contains('('))
    };
    text.lines()
        .filter(|line| !between(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_schedule_computes_the_same_and_has_the_promised_peak(text in functions(24)) {
        let (report, scheduled) = schedule(&text, &options("min"));
        prop_assert!(report.peak <= report.baseline_peak);
        let session = Session::new();
        let (before, after) = (session.parse(&text).unwrap(), session.parse(&scheduled).unwrap());
        let returned = returned(&text);
        prop_assert_eq!(meaning(main_of(&before), returned), meaning(main_of(&after), returned), "{}", scheduled);
        let peak = verify(main_of(&after), &VerifyOptions::default());
        prop_assert_eq!(peak.map_err(|error| error.to_string()), Ok(report.peak), "{}", scheduled);
    }

    #[test]
    fn blocks_compute_the_same_and_have_the_promised_peak_together(text in functions_of_blocks(20)) {
        remat_mlir_passes::register_passes();
        let (report, scheduled) = schedule(&text, &options("min"));
        let session = Session::new();
        let after = session.parse(&scheduled).unwrap();
        let peak = verify(main_of(&after), &VerifyOptions::default());
        prop_assert_eq!(peak.map_err(|error| error.to_string()), Ok(report.peak), "{}", scheduled);
        let means = |text: &str| meaning(main_of(&session.parse(&in_one_block(text)).unwrap()), returned(text));
        prop_assert_eq!(means(&text), means(&scheduled), "{}", scheduled);
    }

    #[test]
    fn a_schedule_without_markers_has_the_same_peak(text in functions(16)) {
        let mut options = options("min");
        options.set("dealloc", "false").unwrap();
        let (report, scheduled) = schedule(&text, &options);
        prop_assert!(!scheduled.contains("remat.dealloc"));
        let session = Session::new();
        let after = session.parse(&scheduled).unwrap();
        let peak = verify(main_of(&after), &VerifyOptions::default());
        prop_assert_eq!(peak.map_err(|error| error.to_string()), Ok(report.peak), "{}", scheduled);
    }

    #[test]
    fn a_schedule_survives_what_merges_equal_operations(text in functions(16)) {
        remat_mlir_passes::register_passes();
        let after = |passes: &str, text: &str| {
            let session = Session::new();
            let mut module = session.parse(text).unwrap();
            module.run(&format!("builtin.module(func.func({passes}))")).unwrap();
            module.print().unwrap()
        };
        // What is equal in the function itself, or not needed, goes first, as it would in any pipeline.
        let (report, scheduled) = schedule(&after("canonicalize,cse", &text), &options("min"));
        let merged = after("cse", &scheduled);
        let session = Session::new();
        let module = session.parse(&merged).unwrap();
        let peak = verify(main_of(&module), &VerifyOptions::default());
        prop_assert_eq!(peak.map_err(|error| error.to_string()), Ok(report.peak), "{}", merged);
    }
}

#[test]
fn annotations_and_reports_agree() {
    let text = "func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
        %0 = math.exp %x : tensor<16x16xf32>
        %1 = math.tanh %0 : tensor<16x16xf32>
        %2 = math.absf %1 : tensor<16x16xf32>
        %3 = arith.addf %2, %1 : tensor<16x16xf32>
        %4 = arith.addf %3, %0 : tensor<16x16xf32>
        return %4 : tensor<16x16xf32>
    }";
    let session = Session::new();
    let module = session.parse(text).unwrap();
    annotate(main_of(&module), &options("min").model).unwrap();
    let annotated = main_of(&module).integer("remat.peak");
    let (report, scheduled) = schedule(text, &options("min"));
    assert_eq!(annotated, i64::try_from(report.baseline_peak).ok());
    assert_eq!(
        (report.baseline_peak, report.peak, report.recomputes),
        (4096, 3072, 1),
        "{scheduled}"
    );
}

#[test]
fn a_budget_that_nothing_meets_names_the_operation() {
    let text = "func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
        %0 = math.exp %x : tensor<16xf32>
        return %0 : tensor<16xf32>
    }";
    let session = Session::new();
    let module = session.parse(text).unwrap();
    let error = rematerialize(main_of(&module), &options("10")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no plan can meet the budget: op `math.exp#0` needs 64 bytes, the budget is 10 bytes"
    );
}

#[test]
fn what_is_no_module_is_told_with_its_place() {
    let session = Session::new();
    assert!(session.parse("func.func @f() { nonsense }").is_err());
    let messages = session.take_messages();
    assert!(messages[0].to_string().starts_with("-:1:"), "{messages:?}");
    assert!(session.parse("\0").is_err());
}
