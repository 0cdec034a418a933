//! What stands in a page.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use remat_page::{Figure, Page, Run, Time};
use remat_plan::{BlockPlacement, OpId, PlacedInterval, Plan, Problem, Structure, baseline, lower_sequence};
use remat_testing::net::{Net, kept, transient};
use remat_verify::{Interval, Replay, intervals, replay};

/// A chain in which the first result is read again at the end; names of it would end elements of HTML.
fn chain() -> Problem {
    Net::new()
        .input("x")
        .op("conv </script><b>", 2_000_000, &["x"], &[("a", transient(4096))])
        .op("wide", 1_000_000, &["a"], &[("b", transient(8192))])
        .op("narrow", 1_000_000, &["b"], &[("c", transient(1024))])
        .op("join", 1_000_000, &["a", "c"], &[("y", kept(1024))])
        .done()
}

/// The chain with its first op run again for the last one.
fn again(problem: &Problem) -> Plan {
    let sequence = [0, 1, 2, 0, 3].map(OpId::new);
    lower_sequence(problem, &Structure::of(problem), sequence).expect("operands come before their readers")
}

/// One above the other.
fn stacked(needed: &[Interval]) -> BlockPlacement {
    let mut offset = 0;
    let intervals = needed.iter().map(|interval| {
        let placed = PlacedInterval {
            step: interval.steps.start,
            what: interval.what,
            offset,
        };
        offset += interval.bytes;
        placed
    });
    let intervals = intervals.collect();
    BlockPlacement {
        block: remat_plan::Block {
            bytes: offset,
            alignment: 1,
            outputs_bytes: None,
            certificate: None,
        },
        intervals,
    }
}

fn rendered(problem: &Problem, before: (&Plan, &Replay), after: (&Plan, &Replay, &BlockPlacement)) -> String {
    let run = |name, plan, replay, placement| Run {
        name,
        problem,
        graph: None,
        plan,
        replay,
        placement,
    };
    let page = Page {
        title: "net <i>".to_owned(),
        figures: vec![Figure {
            name: "Memory".to_owned(),
            value: "16 -> 9 KiB".to_owned(),
            ..Figure::default()
        }],
        summary: vec![("peak".to_owned(), vec!["as plans count it".to_owned()])],
        runs: vec![
            run("before", before.0, before.1, None),
            run("after", after.0, after.1, Some(after.2)),
        ],
        time: Some(Time::Nanoseconds),
        report: r#"{"model":"</script>"}"#.to_owned(),
        ..Page::default()
    };
    page.render().expect("it can be drawn")
}

fn page_of(problem: &Problem, plan: &Plan) -> String {
    let first = baseline(problem);
    let (before, after) = (replay(problem, &first).unwrap(), replay(problem, plan).unwrap());
    let placement = stacked(&intervals(problem, plan, &after));
    rendered(problem, (&first, &before), (plan, &after, &placement))
}

/// What stands in the element for the script.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("it has data");
    let (json, _) = rest.split_once("</script>").expect("the element ends");
    serde_json::from_str(json).expect("it is JSON")
}

#[test]
fn without_scripts_there_are_figures_a_chart_and_tables() {
    let problem = chain();
    let page = page_of(&problem, &again(&problem));
    assert_eq!(page.matches("<svg").count(), 1, "memory");
    for words in [
        "16 -&gt; 9 KiB",
        "as plans count it",
        "before, peak 13 KiB",
        "Dropped and computed again",
        "<td class=\"number\">4.0 KiB</td>",
        "<td class=\"number\">2.000 ms</td>",
    ] {
        assert!(page.contains(words), "`{words}` is not in the page");
    }
    assert!(!page.contains("Moved to the second memory"), "nothing moves");
}

#[test]
fn names_are_text_whatever_they_hold() {
    let problem = chain();
    let page = page_of(&problem, &again(&problem));
    assert!(!page.contains("</script><b>") && !page.contains("<i>"));
    let names = data(&page)["names"].clone();
    assert_eq!((&names[0], &names[1]), (&"".into(), &"conv </script><b>".into()));
    assert!(page.contains(r#"{"model":"\u003c/script>"}"#), "the report");
}

#[test]
fn the_script_gets_every_step_and_what_takes_bytes_at_it() {
    let problem = chain();
    let plan = again(&problem);
    let data = data(&page_of(&problem, &plan));
    let planned = &data["runs"][1];
    let numbers = |value: &serde_json::Value| -> Vec<u64> {
        let numbers = value.as_array().unwrap().iter();
        numbers.map(|number| number.as_u64().unwrap()).collect()
    };
    let rows = |of: &str| -> Vec<Vec<u64>> { planned[of].as_array().unwrap().iter().map(numbers).collect() };
    let kinds: Vec<u64> = rows("steps").iter().map(|step| step[0]).collect();
    assert_eq!(kinds, [0, 0, 0, 1, 0]);
    let lives = rows("lives");
    let first = lives.iter().filter(|life| life[0] == 0);
    let spans: Vec<(u64, u64, u64)> = first.map(|life| (life[1], life[2], life[3])).collect();
    assert_eq!(spans, [(0, 0, 2), (1, 3, 5)], "kept, then computed again");
    let replayed = replay(&problem, &plan).unwrap();
    let run = Run {
        name: "after",
        problem: &problem,
        graph: None,
        plan: &plan,
        replay: &replayed,
        placement: None,
    };
    let memory = run.memory();
    assert_eq!(memory.iter().max(), Some(&replayed.peak));
    for (step, bytes) in (0..).zip(memory) {
        let here = lives.iter().filter(|life| life[2] <= step && step < life[3]);
        assert_eq!(here.map(|life| life[4]).sum::<u64>(), bytes, "step {step}");
    }
}

#[test]
fn parts_of_a_tensor_are_called_by_it_and_marked() {
    let model = chain();
    let tiled = Net::new()
        .input("x")
        .op("conv_tile0", 1, &["x"], &[("a_tile0", transient(2048))])
        .op("conv_tile1", 1, &["x"], &[("a_tile1", transient(2048))])
        .op("join", 1, &["a_tile0", "a_tile1"], &[("y", kept(1024))])
        .done();
    let plans = [baseline(&model), baseline(&tiled)];
    let replays = [replay(&model, &plans[0]).unwrap(), replay(&tiled, &plans[1]).unwrap()];
    let placement = stacked(&intervals(&tiled, &plans[1], &replays[1]));
    let run = |name, problem, place: usize, placement| Run {
        name,
        problem,
        graph: None,
        plan: &plans[place],
        replay: &replays[place],
        placement,
    };
    let page = Page {
        runs: vec![
            run("before", &model, 0, None),
            run("after", &tiled, 1, Some(&placement)),
        ],
        ..Page::default()
    };
    let data = data(&page.render().unwrap());
    let name = |place: &serde_json::Value| data["names"][place.as_u64().unwrap() as usize].clone();
    let run = &data["runs"][1];
    let tensors: Vec<_> = run["tensors"].as_array().unwrap().iter().collect();
    assert_eq!(
        tensors.iter().map(|tensor| name(&tensor[0])).collect::<Vec<_>>(),
        ["a", "a", "y"]
    );
    assert_eq!(
        tensors.iter().map(|tensor| name(&tensor[3])).collect::<Vec<_>>(),
        ["a_tile0", "a_tile1", ""]
    );
    let kinds: Vec<u64> = run["lives"]
        .as_array()
        .unwrap()
        .iter()
        .map(|life| life[1].as_u64().unwrap())
        .collect();
    assert_eq!(kinds, [2, 2, 0]);
}

#[test]
fn a_page_of_ten_thousand_ops_is_below_five_megabytes() {
    let mut net = Net::new().input("x");
    for index in 0..10_000 {
        let read = if index == 0 {
            "x".to_owned()
        } else {
            format!("model.layers.{}.output_0", index - 1)
        };
        let made = format!("model.layers.{index}.output_0");
        net = net.op(
            &format!("model.layers.{index}.MatMul"),
            1000,
            &[&read],
            &[(&made, transient(4096))],
        );
    }
    let problem = net.done();
    let sequence = (0..10_000).flat_map(|index| {
        if index % 3 == 2 {
            vec![index, index - 1, index]
        } else {
            vec![index]
        }
    });
    let plan = lower_sequence(&problem, &Structure::of(&problem), sequence.map(OpId::new));
    let page = page_of(&problem, &plan.expect("operands come before their readers"));
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}

#[test]
fn a_page_without_runs_needs_no_script() {
    let page = Page {
        title: "front".to_owned(),
        text: "budget  peak".to_owned(),
        ..Page::default()
    };
    let page = page.render().unwrap();
    assert!(page.contains("<pre>budget  peak</pre>") && !page.contains("<script"));
}

/// Two tensors of a program, the second of which would end an element, and one that lies outside of its steps.
const RECORDED: &str = r#"{"title": "train.py", "summary": [["Device", ["as assumed"]]], "report": "{}",
  "figures": [{"name": "h100", "value": "1 of 2 GiB", "change": ["fits", true], "bars": [2, 1], "about": "estimated"}],
  "tables": [{"heading": "What takes it", "about": "", "head": ["Kind", "Bytes"], "rows": [["activations", "64 B"]]}],
  "recorded": {"name": "step", "kinds": ["parameters", "activations"], "steps": [["aten::mm", "forward"], ["aten::relu", "forward"], ["aten::sum", "backward"]],
    "lives": [{"name": "weight", "about": "", "kind": 0, "from": 0, "to": 3, "bytes": 16}, {"name": "</script>", "about": "m.py:3", "kind": 1, "from": 1, "to": 2, "bytes": 64},
      {"name": "lost", "about": "", "kind": 1, "from": 2, "to": 9, "bytes": 64}, {"name": "odd", "about": "", "kind": 7, "from": 0, "to": 1, "bytes": 64}]}}"#;

#[test]
fn a_recorded_program_has_its_kinds_its_tables_and_no_plan() {
    let page = Page::from_json(RECORDED).unwrap();
    let memory = page.recorded.as_ref().map(remat_page::Recorded::memory);
    assert_eq!(memory, Some(vec![16, 80, 16]));
    let page = page.render().unwrap();
    let data = data(&page);
    assert_eq!(data["kinds"], serde_json::json!(["parameters", "activations"]));
    let lives = serde_json::json!([[0, 5, 0, 3, 16, 0], [1, 6, 1, 2, 64, 0]]);
    assert_eq!(data["runs"][0]["lives"], lives);
    for words in ["What takes it", "<td class=\"number\">64 B</td>", "<svg", "as assumed"] {
        assert!(page.contains(words), "`{words}` is not in the page");
    }
    assert!(!page.contains("computed again</h2>") && page.matches("</script>").count() == 3);
    assert!(Page::from_json("{}").is_err());
}
