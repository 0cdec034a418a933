//! What stands in a page.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use remat_page::{Page, Run, Time};
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
        plan,
        replay,
        placement,
    };
    let page = Page {
        title: "net <i>".to_owned(),
        summary: vec![("peak".to_owned(), vec!["16 KiB -> 9 KiB".to_owned()])],
        runs: vec![
            run("as it came", before.0, before.1, None),
            run("as planned", after.0, after.1, Some(after.2)),
        ],
        time: Some(Time::Nanoseconds),
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
fn without_scripts_there_are_charts_and_tables() {
    let problem = chain();
    let page = page_of(&problem, &again(&problem));
    assert!(page.matches("<svg").count() >= 2, "memory and block");
    for words in [
        "16 KiB -&gt; 9 KiB",
        "as it came, peak 13 KiB",
        "Dropped and computed again",
        "<td class=\"number\">4.0 KiB</td>",
        "<td class=\"number\">2.000 ms</td>",
        "offsets over the steps",
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
    assert_eq!(data(&page)["names"][0], "conv </script><b>");
}

#[test]
fn the_script_gets_every_step_and_what_takes_bytes_at_it() {
    let problem = chain();
    let plan = again(&problem);
    let data = data(&page_of(&problem, &plan));
    let planned = &data["runs"][1];
    let kinds: Vec<u64> = planned["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step[0].as_u64().unwrap())
        .collect();
    assert_eq!(kinds, [0, 0, 0, 1, 0]);
    let replayed = replay(&problem, &plan).unwrap();
    for (step, bytes) in planned["memory"].as_array().unwrap().iter().enumerate() {
        let at = |taken: &&serde_json::Value| {
            let ends = [2, 3].map(|end| taken[end].as_u64().unwrap() as usize);
            ends[0] <= step && step < ends[1]
        };
        let sum: u64 = planned["taken"]
            .as_array()
            .unwrap()
            .iter()
            .filter(at)
            .map(|taken| taken[4].as_u64().unwrap())
            .sum();
        assert_eq!(Some(sum), bytes.as_u64(), "step {step}");
    }
    assert_eq!(
        planned["memory"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(serde_json::Value::as_u64)
            .max(),
        Some(replayed.peak)
    );
}

#[test]
fn a_page_of_three_thousand_ops_is_below_two_megabytes() {
    let mut net = Net::new().input("x");
    for index in 0..3000 {
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
    let sequence = (0..3000).flat_map(|index| {
        if index % 3 == 2 {
            vec![index, index - 1, index]
        } else {
            vec![index]
        }
    });
    let plan = lower_sequence(&problem, &Structure::of(&problem), sequence.map(OpId::new));
    let page = page_of(&problem, &plan.expect("operands come before their readers"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
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
