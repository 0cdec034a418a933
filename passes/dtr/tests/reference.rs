//! The sums of recomputation of the reference simulator, to the nanosecond.

use std::collections::BTreeMap;
use std::path::PathBuf;

use remat_dtr::{Heuristic, SimulateOptions, SimulateStatus, base_peak, read_log, simulate};

#[test]
fn probe() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = if shared.exists() {
        shared
    } else {
        PathBuf::from("/work/shared")
    };
    let text = std::fs::read_to_string(shared.join("docs/dtr-recompute-sums.txt")).unwrap();
    let mut by: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let f: Vec<&str> = line.split('\t').collect();
        by.entry(f[0]).or_default().push(f);
    }
    let only = std::env::var("ONLY").unwrap_or_default();
    for (model, lines) in by {
        if !model.contains(&only) {
            continue;
        }
        let file = match model.split(' ').next().unwrap() {
            "ResNet-32" => "resnet32",
            "U-Net" => "unet",
            "LSTM" => "lstm",
            _ => "densenet121",
        };
        let trace = read_log(&std::fs::read(shared.join(format!("dtr-logs/{file}.log.gz"))).unwrap()).unwrap();
        let peak = base_peak(&trace);
        println!(
            "{model}: ops {} tensors {} peak {peak} cost {} const {} bottleneck {}",
            trace.operators(),
            trace.tensors(),
            trace.base_cost(),
            trace.constant_bytes(),
            trace.bottleneck()
        );
        let (mut good, mut total) = (0, 0);
        for f in lines {
            let h: Heuristic = match f[1] {
                "DTR" => "dtr",
                "DTREqClass" => "dtr-eq",
                "DTRLocal" => "dtr-local",
                "MSPS" => "msps",
                "LRU" => "lru",
                "LargestStorage" => "size",
                _ => continue,
            }
            .parse()
            .unwrap();
            let tenths: u64 = (f[2].parse::<f64>().unwrap() * 10.0).round() as u64;
            let ratio: f64 = f[2].parse().unwrap();
            let _ = tenths;
            let start = std::time::Instant::now();
            let r = simulate(
                &trace,
                &SimulateOptions {
                    heuristic: h,
                    budget: Some((ratio * peak as f64) as u64),
                    ..SimulateOptions::default()
                },
            );
            let status = match r.status {
                SimulateStatus::Ok => "ok",
                SimulateStatus::Oom => "OOM",
                SimulateStatus::Thrash => "thrash",
            };
            total += 1;
            let same = status == f[3] && r.recompute_ns.to_string() == f[5];
            good += usize::from(same);
            println!(
                "{} {:10} {} want {} {} got {} {} {:.5} {:?}",
                if same { "  " } else { "XX" },
                f[1],
                f[2],
                f[3],
                f[5],
                status,
                r.recompute_ns,
                r.overhead,
                start.elapsed()
            );
        }
        println!("{model} {good}/{total}");
    }
}

#[test]
fn probe_problem() {
    for file in ["resnet32", "unet", "densenet121", "lstm"] {
        let trace = read_log(&std::fs::read(format!("/work/shared/dtr-logs/{file}.log.gz")).unwrap()).unwrap();
        let problem = remat_dtr::problem_of(&trace, file);
        problem.validate().unwrap();
        let base = remat_verify::replay(&problem, &remat_plan::baseline(&problem)).unwrap();
        println!(
            "{file} ops {} peak {} (dtr {}), const {}",
            problem.ops.len(),
            base.peak,
            base_peak(&trace),
            trace.constant_bytes()
        );
        for share in [0.9, 0.7, 0.5, 0.3] {
            let mut p = problem.clone();
            p.budget = Some((share * base_peak(&trace) as f64) as u64 - trace.constant_bytes());
            for s in remat_dtr::solvers().iter().take(2) {
                let t = std::time::Instant::now();
                let o = s.solve(&p, &remat_solve::SolveControl::new());
                let r = o.plan.as_ref().map(|plan| remat_verify::replay(&p, plan).unwrap());
                println!(
                    "  {share} {} {:?} {:?} {:?}",
                    s.name(),
                    r.map(|r| (r.duration as f64 / base.duration as f64, r.peak)),
                    o.lowest_peak,
                    t.elapsed()
                );
            }
        }
    }
}
