//! The largest or smallest elements of tiles, written with ONNX's own operators.

use crate::common::*;
use crate::streamed::{export, shown};

const RANKED: &str = "  %v : f32[2, 2] part of v[0:2, 0:2] = compute @v com.remat.streamed::BestValues(%m)
  %p : i64[2, 2] part of p[0:2, 0:2] = compute @p com.remat.streamed::BestPlaces(%m) {axis = 1, keepdims = 1}
  output %v
  output %p
";

/// The best of rows of five numbers, in two tiles, by a ranking, and what is made of them.
fn of_two_tiles(count: u64, ranking: &str, made: &str) -> String {
    format!(
        r#"graph "g" {{
  input %x : f32[2, 5]
  const %zero : i64[1] values [0]
  const %one : i64[1] values [1]
  const %two : i64[1] values [2]
  const %five : i64[1] values [5]
  %x.0 : f32[2, 2] part of x[0:2, 0:2] = compute @x.0 Slice(%x, %zero, %two, %one)
  %m.0 : i64[2, {count}, 2] part over x[0:2, 0:2] = compute @m.0 com.remat.streamed::Best(%x.0) {{axis = 1, count = {count}, from = 0, {ranking}}}
  %x.1 : f32[2, 3] part of x[0:2, 2:5] = compute @x.1 Slice(%x, %two, %five, %one)
  %m.1 : i64[2, {count}, 2] part over x[0:2, 2:5] = compute @m.1 com.remat.streamed::Best(%x.1) {{axis = 1, count = {count}, from = 2, {ranking}}}
  %m : i64[2, {count}, 2] part over x[0:2, 0:5] = compute @m com.remat.streamed::CombineBest(%m.0, %m.1) {{axis = 1, count = {count}, {ranking}}}
{made}}}
"#
    )
}

#[test]
fn the_best_of_tiles_are_ranked_again_in_their_order() {
    let nodes = vec![node("TopK", &["x", "two"], &["v", "p"]).named("top")];
    let mut main = graph(&[("x", tensor_type(FLOAT, "2 5"))], nodes, &["v", "p"]);
    main.initializer = vec![integers("two", &[2])];
    let mut model = model(main);
    model.opset_import = vec![opset("", 17)];
    let written = export(&model, &of_two_tiles(2, "largest = 1, last = 0", RANKED)).unwrap();
    insta::assert_snapshot!(shown(&model, &written), @"
    const zero [1]
    const one [1]
    const five [1]
    const m.0__count [1]
    x.0 = Slice(x, zero, two, one)  # x[0:2, 0:2]
    m.0__values, m.0__at = TopK(x.0, m.0__count) axis=[1] largest=[1]  # over x[0:2, 0:2]
    x.1 = Slice(x, two, five, one)  # x[0:2, 2:5]
    m.1__values, m.1__at = TopK(x.1, m.0__count) axis=[1] largest=[1]
    m.1__placed = Add(m.1__at, m.0__count)  # over x[0:2, 2:5]
    m__values = Concat(m.0__values, m.1__values) axis=[1]
    m__places = Concat(m.0__at, m.1__placed) axis=[1]
    m__values_1, m__at = TopK(m__values, m.0__count) axis=[1] largest=[1]
    m__best = GatherElements(m__places, m__at) axis=[1]  # over x[0:2, 0:5]
    v = Identity(m__values_1)  # v[0:2, 0:2]
    p = Identity(m__best)  # p[0:2, 0:2]
    ");
}

#[test]
fn one_is_found_by_its_place() {
    let smallest = node("ArgMin", &["x"], &["y"]).named("smallest");
    let smallest = smallest.int("axis", 1).int("keepdims", 0).int("select_last_index", 1);
    let mut model = model(graph(&[("x", tensor_type(FLOAT, "2 5"))], vec![smallest], &["y"]));
    model.opset_import = vec![opset("", 17)];
    let made = "  %y : i64[2] part of y[0:2] = compute @y com.remat.streamed::BestPlaces(%m) {axis = 1, keepdims = 0}
  output %y
";
    let written = export(&model, &of_two_tiles(1, "largest = 0, last = 1", made)).unwrap();
    insta::assert_snapshot!(shown(&model, &written), @"
    const zero [1]
    const one [1]
    const two [1]
    const five [1]
    const m.1__from [1]
    const y__axes [1]
    x.0 = Slice(x, zero, two, one)  # x[0:2, 0:2]
    m.0__place = ArgMin(x.0) axis=[1] keepdims=[1] select_last_index=[1]
    m.0__value = GatherElements(x.0, m.0__place) axis=[1]  # over x[0:2, 0:2]
    x.1 = Slice(x, two, five, one)  # x[0:2, 2:5]
    m.1__place = ArgMin(x.1) axis=[1] keepdims=[1] select_last_index=[1]
    m.1__value = GatherElements(x.1, m.1__place) axis=[1]
    m.1__placed = Add(m.1__place, m.1__from)  # over x[0:2, 2:5]
    m__values = Concat(m.0__value, m.1__value) axis=[1]
    m__places = Concat(m.0__place, m.1__placed) axis=[1]
    m__place = ArgMin(m__values) axis=[1] keepdims=[1] select_last_index=[1]
    m__best = GatherElements(m__places, m__place) axis=[1]  # over x[0:2, 0:5]
    y = Squeeze(m__best, y__axes)  # y[0:2]
    ");
}

#[test]
fn several_of_equal_elements_are_never_found_from_the_last() {
    let nodes = vec![node("TopK", &["x", "two"], &["v", "p"]).named("top")];
    let mut main = graph(&[("x", tensor_type(FLOAT, "2 5"))], nodes, &["v", "p"]);
    main.initializer = vec![integers("two", &[2])];
    let mut model = model(main);
    model.opset_import = vec![opset("", 17)];
    let error = export(&model, &of_two_tiles(2, "largest = 1, last = 1", RANKED)).unwrap_err();
    insta::assert_snapshot!(error, @"`m.0`: several of equal elements are found from the first");
}
