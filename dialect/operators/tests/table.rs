//! The table is well-formed, and its operators exist.

use std::collections::{BTreeMap, BTreeSet};

use remat_operators::{
    AttentionLayout, Effect, Element, Formula, Operator, ResultType, StandIn, Updates, Workspace, operator, rows,
};

/// `schemas.tsv`, made by `schemas.py`: the most operands and results that any version of an operator takes.
fn schemas() -> BTreeMap<(&'static str, &'static str), (usize, usize)> {
    let parse = |line: &'static str| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("a line has four fields");
        let (domain, name) = (next(), next());
        let mut count = || next().parse().expect("counts are numbers");
        let domain = if domain == "ai.onnx" { "" } else { domain };
        ((domain, name), (count(), count()))
    };
    include_str!("schemas.tsv").lines().map(parse).collect()
}

/// Operators that no released build of ONNX Runtime and no version of `onnx` has: those of builds for training, and of MLIR.
const WITHOUT_SCHEMA: &str = "
AdamOptimizer AdamWOptimizer AllGather AllReduce AllToAll AveragePoolGrad BatchNormInternal BatchNormalizationGrad BiasFastGeluGrad_dX
BiasGeluGrad_dX BiasSoftmaxDropout BitmaskDropoutGrad BroadcastGradientArgs ConcatTraining ConvGrad ConvTransposeGrad
DistributedAllGather DropoutGrad FakeQuant FakeQuantGrad FastGeluGrad FlattenAndUnpad GRUGrad GRUTraining GatherElementsGrad GatherGrad
GatherNDGrad GeluGrad Group InPlaceAccumulator InPlaceAccumulatorV2 InplaceClipGradNorm InvertibleLayerNormalizationGrad LSTMGrad
LSTMTraining LambOptimizer LayerNormalizationGrad LeakyReluGrad LogSoftmaxGrad LogSoftmaxGrad_13 MaxPoolGrad PadAndUnflatten PassThrough
PythonOp PythonOpGrad QuickGeluGrad RecordEvent Recv ReduceAllL2 ReduceSumTraining ReluGrad ResizeGrad SGDOptimizer SGDOptimizerV2 Scale
Send ShrunkenGather SigmoidGrad SimplifiedLayerNormalizationGrad SinGrad SliceGrad SoftmaxCrossEntropy SoftmaxCrossEntropyGrad
SoftmaxCrossEntropyLossGrad SoftmaxCrossEntropyLossInternal SoftmaxCrossEntropyLossInternalGrad SoftmaxDropoutGrad SoftmaxGrad
SoftmaxGrad_13 SparseSoftmaxCrossEntropy SparseSoftmaxCrossEntropyGrad SplitTraining TanhGrad TritonOp WaitEvent YieldOp ZeroGradient
EntryPoint Print Return Yield
";

fn has_schema_somewhere(domain: &str) -> bool {
    schemas().keys().any(|(known, _)| *known == domain)
}

/// Operands that a row names, each with the column that names it.
fn operands(row: &Operator) -> Vec<(&'static str, usize)> {
    let mut named: Vec<(&'static str, usize)> = row.lists.iter().map(|&index| ("lists", index)).collect();
    let single = [
        ("shape_operand", row.shape_operand),
        ("overwrites", row.overwrites),
        ("packs", row.packs),
    ];
    named.extend(single.into_iter().filter_map(|(column, index)| Some((column, index?))));
    match row.cost {
        Formula::Conv { weight } | Formula::ConvTranspose { weight } => named.push(("cost", weight)),
        Formula::Recurrent { weights } => named.extend(weights.map(|index| ("cost", index))),
        Formula::Attention(AttentionLayout::Separate { past } | AttentionLayout::Projected { past }) => {
            named.push(("cost", past));
        }
        _ => {}
    }
    match row.workspace {
        Workspace::Operand(index) | Workspace::PerOperand { operand: index, .. } => named.push(("workspace", index)),
        Workspace::Flash { bias: Some(index) } => named.push(("workspace", index)),
        _ => {}
    }
    for result in row.results {
        match *result {
            ResultType::Like(index) | ResultType::LikeOf(index, _) | ResultType::Leading(index) => {
                named.push(("results", index));
            }
            ResultType::Listed { shape, element } => named.extend([("results", shape), ("results", element)]),
            ResultType::Other | ResultType::Flag => {}
        }
    }
    if let Some(StandIn { operands, element, .. }) = row.stand_in {
        named.extend(operands.iter().map(|&index| ("stand_in", index)));
        if let Element::OfOperand(index, _) = element {
            named.push(("stand_in", index));
        }
    }
    named
}

#[test]
fn no_operator_has_two_rows() {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = rows().filter(|row| !seen.insert((row.domain, row.name))).collect();
    assert_eq!(twice, Vec::<&Operator>::new());
}

#[test]
fn every_operator_exists() {
    let schemas = schemas();
    let unknown =
        rows().filter(|row| has_schema_somewhere(row.domain) && !schemas.contains_key(&(row.domain, row.name)));
    let unknown: BTreeSet<&str> = unknown.map(|row| row.name).collect();
    assert_eq!(unknown, WITHOUT_SCHEMA.split_whitespace().collect());
}

#[test]
fn every_named_operand_is_one_that_the_operator_takes() {
    let schemas = schemas();
    for row in rows() {
        let Some(&(most_operands, most_results)) = schemas.get(&(row.domain, row.name)) else {
            continue;
        };
        for (column, index) in operands(row) {
            assert!(
                index < most_operands,
                "{}: `{column}` names operand {index} of {most_operands}",
                row.name
            );
        }
        let (operands, results) = row.slots;
        assert!(
            operands <= most_operands && results <= most_results,
            "{}: slots",
            row.name
        );
    }
}

#[test]
fn lists_of_operands_are_sorted() {
    for row in rows() {
        let stand_in = row.stand_in.map_or(&[][..], |stand_in| stand_in.operands);
        for list in [row.lists, stand_in] {
            assert!(list.is_sorted_by(|a, b| a < b), "{}: {list:?}", row.name);
        }
    }
}

#[test]
fn stand_ins_are_operators_of_the_standard_that_need_none() {
    for row in rows() {
        let Some(stand_in) = row.stand_in else { continue };
        let other = operator("", stand_in.name);
        assert_eq!(other.name, stand_in.name, "{}: stands in and has no row", stand_in.name);
        assert_eq!(other.stand_in, None, "{}", row.name);
    }
}

#[test]
fn what_splits_or_hides_a_workspace_has_one() {
    // Kernels whose workspace was seen on the heap, but is not modelled.
    let unknown = ["NonMaxSuppression", "TopK", "GatherND", "Unique"];
    for row in rows().filter(|row| row.pieces > 1 || row.on_heap) {
        let has_one = row.workspace != Workspace::Nothing;
        assert!(has_one || unknown.contains(&row.name), "{}", row.name);
        assert!(row.pieces > 0);
    }
}

/// Every operator of the default domain that is charged by its bytes on purpose: what it does depends on data, or nobody uses it any more.
const BY_BYTES: &str = "
Affine BitCast CausalConvWithState Crop DFT Det DisentangledAttention_TRT DynamicSlice EfficientNMS_TRT GRUUnit GivenTensorFill If
ImageDecoder ImageScaler LinearAttention Loop MemcpyFromHost MemcpyToHost MultilevelCropAndResize_TRT Multinomial NonMaxSuppression
ParametricSoftplus PyramidROIAlign_TRT RegexFullMatch STFT Scale ScaledTanh Scan SequenceMap StringConcat StringNormalizer StringSplit
SwiGLU TfIdfVectorizer
";

#[test]
fn every_operator_of_the_standard_has_a_formula_or_is_charged_by_its_bytes_on_purpose() {
    let schemas = schemas();
    let standard = schemas.keys().filter(|(domain, _)| domain.is_empty());
    let by_bytes = standard.filter(|(_, name)| operator("", name).cost == Formula::Bytes);
    let by_bytes: BTreeSet<&str> = by_bytes.map(|&(_, name)| name).collect();
    assert_eq!(by_bytes, BY_BYTES.split_whitespace().collect());
}

/// What ONNX Runtime's optimizers put in the place of several operators.
const FUSED: &str = "
Attention BiasGelu BiasSoftmax EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul Gelu GemmFastGelu
GroupQueryAttention MatMulIntegerToFloat MultiHeadAttention NhwcMaxPool QLinearAdd QuickGelu RotaryEmbedding
SkipLayerNormalization SkipSimplifiedLayerNormalization
";

#[test]
fn every_operator_that_optimizers_make_has_a_formula() {
    let unknown = FUSED
        .split_whitespace()
        .filter(|name| operator("com.microsoft", name).cost == Formula::Bytes);
    assert_eq!(unknown.count(), 0);
    assert_ne!(operator("", "SimplifiedLayerNormalization").cost, Formula::Bytes);
}

#[test]
fn a_name_means_different_operators_in_different_domains() {
    let cost = |domain: &str, name: &str| operator(domain, name).cost;
    assert_ne!(cost("", "Attention"), cost("com.microsoft", "Attention"));
    assert_ne!(cost("", "AveragePool"), cost("com.microsoft.nchwc", "AveragePool"));
    assert_eq!(cost("com.microsoft", "FusedConv"), cost("com.microsoft.nchwc", "Conv"));
    assert_eq!(operator("ai.onnx", "Relu"), operator("", "Relu"));
    assert_eq!(cost("tosa", "matmul"), Formula::MatMul);
    assert_eq!(cost("linalg", "matmul"), Formula::Stated);
    assert_eq!(cost("tosa", "exp"), cost("math", "exp"));
    assert_eq!(cost("arith", "addf"), Formula::Elementwise(1));
    assert_eq!(cost("com.microsoft", "Relu"), Formula::Bytes);
    assert_eq!(cost("org.example", "Relu"), Formula::Bytes);
}

/// What generating artifacts for training adds to a model: gradients and what they ask of the forward pass, the accumulators of gradients,
/// clipping, optimizers, and where a graph hands its results over. Source: ONNX Runtime, `orttraining/core/graph/gradient_builder.cc` and
/// the package `onnxruntime.training.onnxblock`.
const TRAINING: &str = "
AdamWOptimizer BatchNormInternal BatchNormalizationGrad BiasFastGeluGrad_dX BiasGeluGrad_dX BitmaskDropoutGrad BroadcastGradientArgs
ConcatTraining ConvGrad ConvTransposeGrad DropoutGrad FakeQuantGrad FastGeluGrad GRUGrad GRUTraining GatherElementsGrad GatherGrad
GatherNDGrad GeluGrad InPlaceAccumulatorV2 InplaceClipGradNorm InvertibleLayerNormalizationGrad LSTMGrad LSTMTraining
LayerNormalizationGrad LeakyReluGrad LogSoftmaxGrad LogSoftmaxGrad_13 PassThrough QuickGeluGrad ReduceAllL2 ReduceSumTraining ReluGrad
ResizeGrad SGDOptimizerV2 Scale SigmoidGrad SimplifiedLayerNormalizationGrad SliceGrad SoftmaxCrossEntropyGrad
SoftmaxCrossEntropyLossGrad SoftmaxCrossEntropyLossInternal SoftmaxCrossEntropyLossInternalGrad SoftmaxDropoutGrad SoftmaxGrad
SoftmaxGrad_13 SplitTraining TanhGrad YieldOp
";

#[test]
fn every_operator_that_training_adds_has_a_row_and_those_that_update_an_operand_are_stateful() {
    let rows: Vec<&Operator> = TRAINING
        .split_whitespace()
        .map(|name| operator("com.microsoft", name))
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names, TRAINING.split_whitespace().collect::<Vec<_>>());
    let updates = rows.iter().filter(|row| row.effects == Effect::Stateful);
    let updates: BTreeSet<&str> = updates.map(|row| row.name).collect();
    let expected = "AdamWOptimizer BatchNormInternal InPlaceAccumulatorV2 InplaceClipGradNorm SGDOptimizerV2 YieldOp";
    assert_eq!(updates, expected.split_whitespace().collect());
    let known = rows.iter().filter(|row| row.updates != Updates::Nothing);
    let known: BTreeSet<&str> = known.map(|row| row.name).collect();
    let mut in_place = updates.clone();
    in_place.remove("YieldOp");
    assert_eq!(known, in_place);
    for name in [
        "AveragePoolGrad",
        "MaxPoolGrad",
        "SinGrad",
        "SparseSoftmaxCrossEntropyGrad",
    ] {
        assert_eq!(operator("", name).name, name);
    }
}
