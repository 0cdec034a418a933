//! The long texts: their examples are run, so that they cannot be wrong.

use remat_plan::{AntiDependence, Certificate, OrderMode, PlanFile, Problem};
use remat_verify::{CheckError, Code, check_file};

use crate::oracle;
use remat_testing::net::{example, op, paging, transient};
use remat_testing::plans::{file, plan};

/// The network as every text draws it.
const NETWORK: &str = "
    conv: x -> a (100 bytes)
    flat: a -> v (a view of a)
    gemm: v -> b (200 bytes)
    relu: b -> c (100 bytes)
    add:  v, c -> y (100 bytes, the graph output)
";

/// The buffers as every text about placements draws them.
const BUFFERS: &str = "
    id,lower,upper,size,alignment,offset
    a,0,4,96,1,0
    b,1,3,64,32,
    c,2,6,32,32,
";

/// Whether the text shows a plan; others show buffers or graphs.
pub(crate) fn is_about_plans(code: Code) -> bool {
    !(code.is_about_placements() || code.is_about_fission()) || code == Code::P009
}

/// The problem that the words of the text describe.
fn problem(code: Code) -> Problem {
    let net = example().with(|problem| {
        let conv = op(problem, "conv");
        match code {
            Code::V006 | Code::C002 | Code::C003 | Code::C005 | Code::C006 => problem.budget = Some(300),
            Code::V007 => problem.ops[conv].recomputable = false,
            Code::V008 => problem.max_computes = Some(2),
            Code::V010 => problem.order = OrderMode::Fixed,
            Code::V013 => problem.paging = Some(paging()),
            Code::V018 => {
                problem.paging = Some(paging());
                problem.paging.as_mut().unwrap().capacity = Some(150);
            }
            Code::V019 => problem.deadline = Some(50),
            Code::V020 => problem.ops[conv].energy_pj = 7,
            Code::V021 => {
                let (before, after) = (conv, op(problem, "relu"));
                problem.anti_dependences = vec![AntiDependence { before, after }];
            }
            Code::V016 => problem.ops[conv].duration = 9_000_000_000_000_000_000,
            _ => {}
        }
    });
    match code {
        Code::V010 => net.op("scale", 5, &["x"], &[("s", transient(100))]).done(),
        _ => net.done(),
    }
}

/// The plan file of a text with the lines of one sign; claims that the text does not make are right.
fn variant(code: Code, problem: &Problem, sign: char) -> PlanFile {
    let lines = code.explain().lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.filter_map(|line| line.strip_prefix([' ', sign])?.strip_prefix(' '));
    let (claims, steps): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| line.starts_with(['{', '"']))
        .partition(|line| line.starts_with('"'));
    let mut file = file(problem, &remat_plan::Plan::default(), 0, 0);
    file.steps = serde_json::from_str(&format!("[{}]", steps.join(","))).unwrap();
    if let Ok(plan) = file.plan(problem) {
        let figures = oracle::judge(problem, &plan);
        file.peak_bytes = u64::try_from(figures.peak).unwrap();
        file.duration = u64::try_from(figures.duration).unwrap_or(u64::MAX);
    }
    if code.is_about_claims() {
        file.certificate = Some(certificate(file.duration, &claims));
        return file;
    }
    for claim in claims {
        let (field, value) = claim.trim_end_matches(',').split_once(": ").unwrap();
        match field {
            "\"peak_bytes\"" => file.peak_bytes = value.parse().unwrap(),
            "\"baseline_peak_bytes\"" => file.baseline_peak_bytes = value.parse().unwrap(),
            "\"duration\"" => file.duration = value.parse().unwrap(),
            "\"energy_pj\"" => file.energy_pj = Some(value.parse().unwrap()),
            "\"block\"" => file.block = Some(serde_json::from_str(value).unwrap()),
            _ => panic!("no claim `{claim}`"),
        }
    }
    file
}

/// A certificate of a plan of this duration with these claims; what is not claimed is right.
fn certificate(duration: u64, claims: &[&str]) -> Certificate {
    let mut value = serde_json::json!({
        "status": "FEASIBLE", "objective": duration, "bound": 41, "bound_covers": "all-plans", "stop": "converged",
        "solver": "search", "seed": 0, "threads": 1, "steps": 0, "elapsed_ms": 0, "problem": "",
    });
    let claims = claims.iter().map(|claim| claim.trim_end_matches(','));
    let claims: serde_json::Value =
        serde_json::from_str(&format!("{{{}}}", claims.collect::<Vec<_>>().join(","))).unwrap();
    let (all, claims) = (value.as_object_mut().unwrap(), claims.as_object().unwrap());
    all.extend(claims.clone());
    let mut certificate: Certificate = serde_json::from_value(value).unwrap();
    if !claims.contains_key("gap") {
        certificate.gap = certificate
            .objective
            .map(|objective| Certificate::relative_gap(objective, certificate.bound));
    }
    certificate
}

#[test]
fn the_wrong_example_of_every_text_breaks_its_rule_and_the_repaired_one_is_valid() {
    for &code in Code::ALL.iter().filter(|code| is_about_plans(**code)) {
        let problem = problem(code);
        let wrong = check_file(&problem, &variant(code, &problem, '-'));
        let Err(CheckError::Rejected(rejection)) = wrong else {
            panic!("{code}: {wrong:?}");
        };
        let besides: &[Code] = match code {
            Code::V004 => &[Code::V003, Code::V005],
            Code::V011 => &[Code::V004],
            _ => &[],
        };
        let mut expected = vec![code];
        expected.extend(besides);
        expected.sort_unstable();
        assert_eq!(rejection.codes(), expected, "{rejection}");
        let repaired = check_file(&problem, &variant(code, &problem, '+'));
        assert!(repaired.is_ok(), "{code}: {}", repaired.unwrap_err());
    }
}

#[test]
fn every_text_begins_with_its_title_and_draws_the_same_network() {
    for &code in Code::ALL {
        let text = code.explain();
        assert!(text.starts_with(&format!("{code}: {}\n\n", code.title())), "{code}");
        let drawn = match is_about_plans(code) {
            true => NETWORK,
            false if code.is_about_fission() => "",
            false => BUFFERS,
        };
        assert!(text.contains(drawn), "{code}");
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{code}");
        let is_short = |line: &str| line.chars().count() <= 100 || code.is_about_fission() && line.starts_with("    ");
        assert!(text.lines().all(is_short), "{code}");
    }
}

#[test]
fn the_network_of_the_texts_has_the_figures_they_state() {
    let problem = example().done();
    let figures = |steps| {
        let replay = remat_verify::replay(&problem, &plan(&problem, steps)).unwrap();
        (replay.peak, replay.duration)
    };
    assert_eq!(figures(remat_testing::plans::PLAIN), (400, 41));
    assert_eq!(figures(remat_testing::plans::RECOMPUTING), (300, 52));
}
