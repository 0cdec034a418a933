//! The text of small models, form by form, and what is refused.

mod bodies;
mod support;
mod weights;

use remat_onnx_mlir::{Barriers, Form, Options};

use support::{feature, node, rewritten, text};

#[test]
fn the_torch_form_of_a_plan_has_barriers_before_recomputes() {
    insta::assert_snapshot!(rewritten(&Options::new(Form::Torch)));
}

#[test]
fn without_barriers_the_torch_form_has_ops_of_torch_alone() {
    let options = Options {
        barriers: Barriers::None,
        ..Options::new(Form::Torch)
    };
    let text = rewritten(&options);
    assert!(!text.contains("flow.") && !text.contains("torch_c."), "{text}");
    assert!(text.contains("a__remat1"));
}

#[test]
fn the_onnx_mlir_form_marks_recomputes_with_an_attribute() {
    insta::assert_snapshot!(rewritten(&Options::new(Form::OnnxMlir)));
}

#[test]
fn the_remat_form_says_what_runs_again_and_what_is_freed() {
    insta::assert_snapshot!(rewritten(&Options::new(Form::Remat)));
}

#[test]
fn what_is_away_moves_once_and_its_views_are_made_again() {
    insta::assert_snapshot!(support::paged(&Options::new(Form::Remat)).expect("it is written"));
    for form in [Form::Torch, Form::OnnxMlir] {
        let refused = support::paged(&Options::new(form)).expect_err("it has no second memory");
        assert!(refused.to_string().contains("`page_out a`"), "{refused}");
    }
}

#[test]
fn only_far_reads_get_barriers() {
    assert_eq!(support::read_again_after(19).matches("flow.tensor.transfer").count(), 0);
    assert_eq!(support::read_again_after(21).matches("flow.tensor.transfer").count(), 1);
}

#[test]
fn a_model_in_its_own_order_has_no_barriers() {
    let text = text(&feature("views"), &Options::new(Form::Torch)).expect("it is written");
    assert!(!text.contains("flow.tensor.transfer"));
}

#[test]
fn every_attribute_has_its_form() {
    for form in [Form::Torch, Form::OnnxMlir] {
        let name = format!("attributes_{form}");
        insta::assert_snapshot!(
            name,
            text(&support::attributes(), &Options::new(form)).expect("it is written")
        );
    }
}

#[test]
fn elements_of_every_type_become_literals() {
    insta::assert_snapshot!(text(&support::elements(), &Options::new(Form::Remat)).expect("it is written"));
}

#[test]
fn what_a_form_cannot_say_is_refused_with_a_name() {
    let refused = |name: &str, form| match text(&feature(name), &Options::new(form)) {
        Err(error) => error.to_string(),
        Ok(text) => panic!("it was written:\n{text}"),
    };
    insta::assert_snapshot!(
        refused("strings", Form::Torch),
        @"tensor `suffix` cannot be written in form `torch`: it has no elements of type `str`"
    );
    insta::assert_snapshot!(
        refused("sparse_initializer", Form::Remat),
        @"initializer `weight` cannot be written in form `remat`: it has no sparse tensors"
    );
    let mut unknown = node("Softmax", &["x"], &["y"]);
    unknown.attribute.push(support::attribute("saturate", |a| {
        a.type_ = remat_onnx::proto::attribute_proto::AttributeType::TYPE_PROTOS.into();
    }));
    let error = text(
        &support::model(vec![unknown], Vec::new()),
        &Options::new(Form::OnnxMlir),
    );
    insta::assert_snapshot!(
        error.expect_err("no form has lists of types").to_string(),
        @"attribute `saturate` of node `y` cannot be written in form `onnx-mlir`: it has no attributes of kind TYPE_PROTOS"
    );
}
