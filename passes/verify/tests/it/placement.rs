//! Placements: every rule with a placement or a claim that breaks it, and the texts of the family `P`.

#![expect(clippy::single_range_in_vec_init, reason = "a gap is a range")]

use crate::explain::is_about_plans;
use remat_plan::{
    Blocks, Buffer, BufferId, Place, Placement, PlacementCertificate, PlacementProof, Status, StopReason,
};
use remat_verify::{Code, Rejection, check_placement, check_placement_certificate};
use typed_index_collections::TiVec;

/// The buffers of the long texts: `a` is pinned, `b` and `c` have to be aligned.
fn buffers() -> TiVec<BufferId, Buffer> {
    let buffer = |name: &str, lifetime, size, alignment, pinned| Buffer {
        alignment,
        pinned,
        ..Buffer::new(name, size, lifetime)
    };
    TiVec::from(vec![
        buffer("a", 0..4, 96, 1, Some(0)),
        buffer("b", 1..3, 64, 32, None),
        buffer("c", 2..6, 32, 32, None),
    ])
}

fn at(offsets: &[u64]) -> Placement {
    let place = |&offset: &u64| Some(Place { block: 0, offset });
    Placement {
        places: offsets.iter().map(place).collect(),
    }
}

fn codes<T>(result: Result<T, Rejection>) -> Vec<Code> {
    result.map_or_else(|rejection| rejection.codes(), |_| Vec::new())
}

fn claimed() -> PlacementCertificate {
    PlacementCertificate {
        status: Status::Optimal,
        height: Some(192),
        bound: 192,
        proof: PlacementProof::Load,
        stop: StopReason::Proved,
        seed: 0,
        tries: 0,
    }
}

/// The codes of a certificate for the placement of the texts.
fn codes_of_claims(blocks: &Blocks, change: impl Fn(&mut PlacementCertificate)) -> Vec<Code> {
    let mut certificate = claimed();
    change(&mut certificate);
    codes(check_placement_certificate(
        &buffers(),
        blocks,
        Some(&at(&[0, 96, 160])),
        &certificate,
    ))
}

#[test]
fn the_figures_of_a_valid_placement_are_its_heights_and_the_load() {
    let figures = check_placement(&buffers(), &Blocks::Lowest, &at(&[0, 96, 160])).unwrap();
    assert_eq!((figures.heights, figures.load), (vec![192], 192));
    let mut placement = at(&[0, 0, 64]);
    for id in [1, 2] {
        placement.places[BufferId::new(id)].as_mut().unwrap().block = 1;
    }
    let figures = check_placement(&buffers(), &Blocks::Given(vec![96, 96, 8]), &placement).unwrap();
    assert_eq!((figures.height(), &figures.heights[..]), (192, &[96, 96, 0][..]));
}

#[test]
fn p001_bytes_that_are_taken_twice_at_one_time_are_rejected() {
    let (given, lowest) = (Blocks::Given(vec![256]), Blocks::Lowest);
    for offsets in [[0, 64, 160], [0, 96, 128], [0, 96, 96], [0, 96, 64]] {
        assert_eq!(
            codes(check_placement(&buffers(), &given, &at(&offsets))),
            [Code::P001],
            "{offsets:?}"
        );
    }
    // `c` may take the bytes of `a` from time 4 on, and those of `b` from time 3 on.
    let mut later = buffers();
    later[BufferId::new(2)].lifetime = 3..6;
    assert_eq!(codes(check_placement(&later, &lowest, &at(&[0, 96, 96]))), []);
    assert_eq!(codes(check_placement(&later, &lowest, &at(&[0, 96, 64]))), [Code::P001]);
    // In a gap a buffer takes nothing.
    let mut gap = buffers();
    gap[BufferId::new(0)].gaps = vec![1..3];
    assert_eq!(codes(check_placement(&gap, &lowest, &at(&[0, 32, 96]))), []);
    assert_eq!(codes(check_placement(&gap, &lowest, &at(&[0, 32, 64]))), [Code::P001]);
    // One within another, found from either side, and one that begins when another one is done.
    let nested = TiVec::from(vec![Buffer::new("large", 100, 0..9), Buffer::new("small", 1, 3..4)]);
    assert_eq!(codes(check_placement(&nested, &lowest, &at(&[0, 99]))), [Code::P001]);
    assert_eq!(codes(check_placement(&nested, &lowest, &at(&[5, 4]))), []);
    // Without bytes nothing is in the way.
    let empty = TiVec::from(vec![Buffer::new("large", 100, 0..9), Buffer::new("empty", 0, 3..4)]);
    assert_eq!(codes(check_placement(&empty, &lowest, &at(&[0, 50]))), []);
}

#[test]
fn p002_what_does_not_lie_within_its_block_is_rejected() {
    let given = Blocks::Given(vec![192]);
    assert_eq!(codes(check_placement(&buffers(), &given, &at(&[0, 96, 160]))), []);
    assert_eq!(
        codes(check_placement(&buffers(), &given, &at(&[0, 96, 192]))),
        [Code::P002]
    );
    let mut elsewhere = at(&[0, 96, 160]);
    elsewhere.places[BufferId::new(1)] = Some(Place { block: 1, offset: 0 });
    assert_eq!(codes(check_placement(&buffers(), &given, &elsewhere)), [Code::P002]);
    assert_eq!(
        codes(check_placement(&buffers(), &Blocks::Lowest, &elsewhere)),
        [Code::P002]
    );
    let beyond = at(&[0, 96, u64::MAX - 31]);
    assert_eq!(
        codes(check_placement(&buffers(), &Blocks::Lowest, &beyond)),
        [Code::P002]
    );
}

#[test]
fn p003_to_p005_single_buffers_are_judged() {
    let lowest = Blocks::Lowest;
    assert_eq!(
        codes(check_placement(&buffers(), &lowest, &at(&[0, 100, 192]))),
        [Code::P003]
    );
    assert_eq!(
        codes(check_placement(&buffers(), &lowest, &at(&[96, 0, 192]))),
        [Code::P005]
    );
    let mut missing = at(&[0, 96, 160]);
    missing.places[BufferId::new(1)] = None;
    assert_eq!(codes(check_placement(&buffers(), &lowest, &missing)), [Code::P004]);
    assert_eq!(codes(check_placement(&buffers(), &lowest, &at(&[0, 96]))), [Code::P004]);
    assert_eq!(
        codes(check_placement(&buffers(), &lowest, &at(&[0, 96, 160, 0]))),
        [Code::P004]
    );
}

#[test]
fn claims_about_height_and_bound_are_held_against_the_placement() {
    let lowest = Blocks::Lowest;
    assert_eq!(codes_of_claims(&lowest, |_| {}), []);
    assert_eq!(
        codes_of_claims(&lowest, |claims| claims.height = Some(256)),
        [Code::P006]
    );
    assert_eq!(codes_of_claims(&lowest, |claims| claims.height = None), [Code::P006]);
    assert_eq!(codes_of_claims(&lowest, |claims| claims.bound = 256), [Code::P007]);
    let refuted = |claims: &mut PlacementCertificate| (claims.bound, claims.proof) = (193, PlacementProof::Refutation);
    assert_eq!(codes_of_claims(&lowest, refuted), [Code::P007]);
    assert_eq!(codes_of_claims(&lowest, |claims| claims.bound = 128), [Code::P008]);
    assert_eq!(
        codes_of_claims(&Blocks::Given(vec![192]), |claims| claims.bound = 128),
        []
    );
}

#[test]
fn p008_a_status_follows_from_what_is_there() {
    let lowest = Blocks::Lowest;
    for (status, stop) in [
        (Status::Optimal, StopReason::Converged),
        (Status::Feasible, StopReason::Proved),
        (Status::Infeasible, StopReason::Proved),
        (Status::Unknown, StopReason::TimeLimit),
    ] {
        let change = |claims: &mut PlacementCertificate| (claims.status, claims.stop) = (status, stop);
        assert_eq!(codes_of_claims(&lowest, change), [Code::P008], "{status:?}");
    }
    let none = |size, proof| {
        let certificate = PlacementCertificate {
            status: Status::Infeasible,
            height: None,
            proof,
            ..claimed()
        };
        let blocks = Blocks::Given(vec![size]);
        codes(check_placement_certificate(&buffers(), &blocks, None, &certificate))
    };
    assert_eq!(none(191, PlacementProof::Load), []);
    assert_eq!(none(192, PlacementProof::Load), [Code::P008]);
    assert_eq!(none(192, PlacementProof::Refutation), []);
}

#[test]
fn padding_to_the_alignment_counts_for_the_bound() {
    let mut buffers: TiVec<BufferId, Buffer> = ["a", "b", "c"].map(|name| Buffer::new(name, 4, 0..1)).to_vec().into();
    buffers.iter_mut().for_each(|buffer| buffer.alignment = 64);
    let placement = at(&[0, 64, 128]);
    let check = |bound| {
        let certificate = PlacementCertificate {
            height: Some(132),
            bound,
            ..claimed()
        };
        codes(check_placement_certificate(
            &buffers,
            &Blocks::Lowest,
            Some(&placement),
            &certificate,
        ))
    };
    assert_eq!(check(132), []);
    assert_eq!(check(133), [Code::P007]);
}

/// What a text draws for lines of one sign.
fn drawn(code: Code, sign: char) -> (Vec<String>, Vec<String>) {
    let lines = code.explain().lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.filter_map(|line| line.strip_prefix([' ', sign])?.strip_prefix(' '));
    let (claims, places): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| line.starts_with('"') || line.contains(" at "))
        .partition(|line| line.starts_with('"'));
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    (owned(claims), owned(places))
}

fn judged(code: Code, sign: char) -> Vec<Code> {
    let (claims, places) = drawn(code, sign);
    let blocks = match code {
        Code::P002 => Blocks::Given(vec![192]),
        _ => Blocks::Lowest,
    };
    if !claims.is_empty() {
        let mut value = serde_json::to_value(claimed()).unwrap();
        if code == Code::P008 {
            value["bound"] = 128.into();
        }
        let claims: serde_json::Value = serde_json::from_str(&format!("{{{}}}", claims.join(","))).unwrap();
        value
            .as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        let certificate = serde_json::from_value(value).unwrap();
        return codes(check_placement_certificate(
            &buffers(),
            &blocks,
            Some(&at(&[0, 96, 160])),
            &certificate,
        ));
    }
    let place = |name: &str| {
        let line = places
            .iter()
            .find(|line| line.starts_with(name))
            .expect("every buffer is drawn");
        let (_, offset) = line.split_once(" at ").unwrap();
        offset.parse().ok().map(|offset| Place { block: 0, offset })
    };
    let places = ["a", "b", "c"].map(place).to_vec().into();
    codes(check_placement(&buffers(), &blocks, &Placement { places }))
}

#[test]
fn the_wrong_example_of_every_text_breaks_its_rule_and_the_repaired_one_is_valid() {
    let of_placements = Code::ALL
        .iter()
        .filter(|code| code.is_about_placements() && !is_about_plans(**code));
    for &code in of_placements {
        assert_eq!(judged(code, '-'), [code]);
        assert_eq!(judged(code, '+'), [], "{code}");
    }
}
