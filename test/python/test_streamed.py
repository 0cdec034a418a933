"""The class `close`: normalizations in two passes and split sums in ONNX Runtime, beside its own kernels and double precision."""

import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models import FLOAT, Builder

CHANNELS, SIDE = 8, 384
FAST = ["--no-arena-plan", "--step-limit", "2000", "--threads", "1", "--time-limit", "10m", "--format", "json"]

KINDS = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "far from zero": lambda random, shape: 1000 + random.standard_normal(shape),
    "constant": lambda random, shape: np.full(shape, 0.7),
    "denormal": lambda random, shape: 1e-40 * random.standard_normal(shape),
}


def norm(b, x, name, groups, epsilon, side=SIDE):
    """A normalization of groups as exporters write it, and what it computes."""
    numbers = np.random.default_rng(len(name)).standard_normal((4, CHANNELS)).astype(np.float32)
    to = b.constant(f"{name}.to", np.array([0, groups, -1]))
    back = b.constant(f"{name}.back", np.array([1, CHANNELS, side, side]))
    scale, bias = (b.constant(f"{name}.{at}", numbers[at, :groups]) for at in (0, 1))
    inner = b.op("Reshape", [x, to], f"{name}.inner")
    inner = b.op("InstanceNormalization", [inner, scale, bias], f"{name}.instances", epsilon=epsilon)
    inner = b.op("Reshape", [inner, back], f"{name}.whole")
    factor, summand = (b.constant(f"{name}.{at}", numbers[at].reshape(CHANNELS, 1, 1)) for at in (2, 3))
    y = b.op("Add", [b.op("Mul", [inner, factor], f"{name}.times"), summand], name)
    numbers[:2] = np.repeat(numbers[:2, :groups], CHANNELS // groups, axis=1)

    def computed(x):
        by_group = x.reshape(groups, -1)
        deviation = np.sqrt(by_group.var(axis=1, keepdims=True) + epsilon)
        normalized = ((by_group - by_group.mean(axis=1, keepdims=True)) / deviation).reshape(x.shape)
        scale, bias, factor, summand = numbers.astype(np.float64)[:, :, None, None]
        return (normalized * scale + bias) * factor + summand

    return y, computed


def group_norm(b, x, name, groups, epsilon):
    """The same as an op that the runtime takes apart."""
    numbers = np.random.default_rng(len(name)).standard_normal((2, CHANNELS)).astype(np.float32)
    scale, bias = (b.constant(f"{name}.{at}", numbers[at]) for at in (0, 1))
    b.opsets[""], b.ir_version = 21, 10
    y = b.op("GroupNormalization", [x, scale, bias], name, num_groups=groups, epsilon=epsilon)

    def computed(x):
        by_group = x.reshape(groups, -1)
        deviation = np.sqrt(by_group.var(axis=1, keepdims=True) + epsilon)
        normalized = ((by_group - by_group.mean(axis=1, keepdims=True)) / deviation).reshape(x.shape)
        scale, bias = numbers.astype(np.float64)[:, :, None, None]
        return normalized * scale + bias

    return y, computed


def layer_norm(b, x, name, groups, epsilon):
    """The same with a factor and a summand for each element, of all channels together or of each by itself."""
    axis = 1 if groups == 1 else 2
    shape = [CHANNELS, SIDE, SIDE][axis - 1 :]
    numbers = np.random.default_rng(len(name)).standard_normal((2, *shape)).astype(np.float32)
    scale, bias = (b.constant(f"{name}.{at}", numbers[at]) for at in (0, 1))
    b.opsets[""] = 17
    y = b.op("LayerNormalization", [x, scale, bias], name, axis=axis, epsilon=epsilon)

    def computed(x):
        by_group = x.reshape(groups, -1)
        deviation = np.sqrt(by_group.var(axis=1, keepdims=True) + epsilon)
        normalized = ((by_group - by_group.mean(axis=1, keepdims=True)) / deviation).reshape(x.shape)
        scale, bias = numbers.astype(np.float64)
        return normalized * scale + bias

    return y, computed


def network(path, groups, epsilon, norm=norm):
    """Two normalizations, a convolution between them, and a mean and a maximum of what comes of it."""
    shape = [1, CHANNELS, SIDE, SIDE]
    pooled = [1, CHANNELS, 1, 1]
    b = Builder([("x", FLOAT, shape)], [("y", FLOAT, pooled), ("most", FLOAT, pooled)])
    first, of_first = norm(b, b.op("Relu", ["x"], "a"), "first", groups, epsilon)
    weights = np.random.default_rng(3).standard_normal((CHANNELS, CHANNELS)).astype(np.float32)
    weights_of = b.constant("weights", weights.reshape(CHANNELS, CHANNELS, 1, 1))
    mixed = b.op("Conv", [b.op("Relu", [first], "b"), weights_of], "mixed")
    second, of_second = norm(b, mixed, "second", groups, epsilon)
    last = b.op("Relu", [second], "c")
    b.op("GlobalAveragePool", [last], "y")
    b.op("GlobalMaxPool", [last], "most")

    def computed(x):
        first = np.maximum(of_first(np.maximum(x.astype(np.float64), 0)), 0)
        last = np.maximum(of_second(np.einsum("oc,nchw->nohw", weights.astype(np.float64), first)), 0)
        return last.mean(axis=(2, 3), keepdims=True), last.max(axis=(2, 3), keepdims=True)

    return b.save(path), computed


def run(path, x):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})


@pytest.mark.parametrize(("groups", "epsilon"), [(1, 1e-5), (2, 1e-5), (8, 1e-6)])
def test_split_sums_are_no_further_from_double_precision_than_twice_the_original(groups, epsilon, remat_opt, tmp_path):
    model, computed = network(tmp_path / "model.onnx", groups, epsilon)
    out = tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"], report["tiling"]
    assert report["outputs"] in ("close", "bit-identical")
    operators = [node.op_type for node in onnx.load(out).graph.node]
    assert operators.count("InstanceNormalization") == 2 - len(report["tiling"]["streamed"])
    for kind, make in KINDS.items():
        x = make(np.random.default_rng(5), (1, CHANNELS, SIDE, SIDE)).astype(np.float32)
        outputs = zip(run(model, x), run(out, x), computed(x), strict=True)
        for before, after, exact in outputs:
            largest = np.abs(exact).max()
            off = [np.abs(found - exact).max() / largest for found in (before, after)]
            assert off[1] <= 2 * off[0] + 4e-7, (kind, off)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_product_is_within_the_bound_of_its_sums(kind, remat_opt, tmp_path):
    """Tiles of `rows` rows each, put together one after the other: every factor and product is rounded, and every addition."""
    rows, width = 8192, 48
    b = Builder([("x", FLOAT, [rows, width])], [("y", FLOAT, [width, width])])
    left = b.op("Transpose", [b.op("Abs", ["x"], "a")], "left", perm=[1, 0])
    b.op("MatMul", [left, b.op("Relu", ["x"], "b")], "y")
    model, out = b.save(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", *FAST)
    assert out.exists(), said.stderr
    chains = json.loads(said.stdout)["tiling"]["fused_chains"]
    tiles = max(chain["tiles"] for chain in chains)
    assert tiles > 1
    x = KINDS[kind](np.random.default_rng(5), (rows, width)).astype(np.float32)
    exact = x.astype(np.float64)
    left, right = np.abs(exact).T, np.maximum(exact, 0)
    bound = (-(-rows // tiles) + tiles) * 2.0**-24 * (left @ right)
    off = np.abs(run(out, x)[0] - left @ right)
    assert (off <= bound + 1e-37).all(), (off - bound).max()


def test_a_norm_that_the_runtime_takes_apart_runs_by_instance(remat_opt, tmp_path):
    model, computed = network(tmp_path / "model.onnx", 2, 1e-5, group_norm)
    out, plan = tmp_path / "out.onnx", tmp_path / "plan.json"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", *FAST, "--emit-plan", plan)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"] and report["outputs"] == "close"
    # As the operator is defined, the variance is found from the mean of squares, which loses what is far from zero.
    for kind in ("normal", "constant"):
        x = KINDS[kind](np.random.default_rng(5), (1, CHANNELS, SIDE, SIDE)).astype(np.float32)
        for before, after, exact in zip(run(model, x), run(out, x), computed(x), strict=True):
            off = [np.abs(found - exact).max() / np.abs(exact).max() for found in (before, after)]
            assert off[1] <= 2 * off[0] + 4e-7, (kind, off)
    again = tmp_path / "again.onnx"
    said = remat_opt(model, "-o", again, "--plan", plan, "--threads", "1", "--no-arena-plan")
    assert said.returncode == 0, said.stderr
    assert [node.op_type for node in onnx.load(again).graph.node] == [node.op_type for node in onnx.load(out).graph.node]
    kept = tmp_path / "exact.onnx"
    said = remat_opt(model, "-o", kept, "-b", "min", "--force", *FAST)
    assert json.loads(said.stdout)["outputs"] != "close", "nothing rounds otherwise unless it is asked for"


@pytest.mark.parametrize("groups", [1, CHANNELS])
def test_a_norm_with_numbers_for_each_element_runs_in_two_passes(groups, remat_opt, tmp_path):
    model, computed = network(tmp_path / "model.onnx", groups, 1e-5, layer_norm)
    out = tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", "--max-overhead", "1000%", *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"] and report["outputs"] == "close"
    for kind, make in KINDS.items():
        x = make(np.random.default_rng(5), (1, CHANNELS, SIDE, SIDE)).astype(np.float32)
        for before, after, exact in zip(run(model, x), run(out, x), computed(x), strict=True):
            off = [np.abs(found - exact).max() / np.abs(exact).max() for found in (before, after)]
            # The runtime finds the mean in double precision: what its rounding leaves of what is constant is divided by almost nothing.
            assert off[1] <= 2 * off[0] + (1e-4 if kind == "constant" else 4e-7), (kind, off)


def test_the_report_says_how_far_outputs_are_apart(remat_opt, tmp_path):
    model, _ = network(tmp_path / "model.onnx", 2, 1e-5)
    said = remat_opt(model, "-o", tmp_path / "out.onnx", "--fission", "close", "-b", "min", *FAST)
    report = json.loads(said.stdout)
    closeness = report["measured"]["closeness"]
    assert [one["kind"] for one in closeness["inputs"]] == ["ordinary", "large-offset", "constant", "denormal"]
    assert not any(output["fault"] for output in closeness["outputs"])
    said = next(entry["lines"] for entry in report["summary"] if entry["name"] == "Outputs")
    if report["outputs"] == "close":
        assert 0 < report["relative_difference"] < closeness["limit"]
        assert said[0].startswith("close: largest difference ")
    else:
        assert said[0] == "bit-identical, with one thread"


def image(path, side=SIDE):
    """Convolutions between normalizations, the last one of so few channels that blocks of them are larger by far."""
    b = Builder([("x", FLOAT, [1, CHANNELS, side, side])], [("y", FLOAT, [1, 3, side, side])])
    random = np.random.default_rng(3)
    at, channels = "x", CHANNELS
    for place, made in enumerate([CHANNELS, CHANNELS, 3]):
        at, _ = norm(b, at, f"norm{place}", 2, 1e-5, side)
        at = b.op("Relu", [at], f"relu{place}")
        weights = b.constant(f"weights{place}", 0.1 * random.standard_normal((made, channels, 3, 3)).astype(np.float32))
        at, channels = b.op("Conv", [at, weights], "y" if made == 3 else f"conv{place}", pads=[1, 1, 1, 1]), made
    return b.save(path)


def test_convolutions_run_in_blocks_where_that_takes_no_memory(remat_opt, tmp_path):
    model = image(tmp_path / "model.onnx", 96)
    out, plan, loaded = (tmp_path / name for name in ("out.onnx", "plan.json", "loaded.onnx"))
    asked = ["--fission", "close", "-b", "40%", "--max-overhead", "1000%", "--emit-plan", plan]
    said = remat_opt(model, "-o", out, *asked, *FAST)
    assert json.loads(said.stdout)["outputs"] == "close", said.stderr
    tiling = json.loads(plan.read_text())["setup"]["tiling"]
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(loaded)
    options.log_severity_level = 4
    ort.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])

    def convolutions(graph):
        for node in graph.node:
            if node.op_type == "Conv":
                yield node.domain == "com.microsoft.nchwc"
            for attribute in node.attribute:
                yield from convolutions(attribute.g)

    blocked = list(convolutions(onnx.load(loaded).graph))
    assert any(blocked)
    assert all(blocked) == (not tiling.get("plain"))


def branches(path, modules=4):
    """Convolutions and pools in branches that meet again: in blocks of channels, most of them read copies of what others made."""
    b = Builder([("x", FLOAT, [1, 3, CHANNELS * 56, CHANNELS * 56])], [("y", FLOAT, [1, 128, 1, 1])])
    random = np.random.default_rng(3)

    def conv(x, name, channels, made, kernel, stride=1):
        shape = (made, channels, kernel, kernel)
        weights = b.constant(f"{name}.weights", 0.1 * random.standard_normal(shape).astype(np.float32))
        y = b.op("Conv", [x, weights], f"{name}.conv", pads=[kernel // 2] * 4, strides=[stride] * 2)
        return b.op("Relu", [y], name)

    pool = {"kernel_shape": [3, 3], "pads": [1] * 4}
    at = b.op("MaxPool", [conv("x", "stem", 3, 64, 7, 2)], "pooled", strides=[2, 2], **pool)
    at = conv(conv(at, "narrow", 64, 64, 1), "wide", 64, 128, 3)
    for place in range(modules):
        if place == 1:
            at = b.op("MaxPool", [at], "half", strides=[2, 2], **pool)
        ends = [conv(at, f"a{place}", 128, 32, 1)]
        ends += [conv(conv(at, f"b{place}", 128, 32, 1), f"c{place}", 32, 48, 3)]
        ends += [conv(conv(at, f"d{place}", 128, 8, 1), f"e{place}", 8, 16, 3)]
        ends += [conv(b.op("MaxPool", [at], f"p{place}", **pool), f"f{place}", 128, 32, 1)]
        at = b.op("Concat", ends, f"joined{place}", axis=1)
    b.op("GlobalAveragePool", [at], "y")
    return b.save(path)


def test_tiles_in_blocks_of_channels_give_their_buffers_back(remat_opt, tmp_path):
    model = branches(tmp_path / "model.onnx")
    said = remat_opt(model, "-o", tmp_path / "out.onnx", "--fission", "close", "-b", "min", "--max-overhead", "1000%", *FAST)
    report = json.loads(said.stdout)
    assert report["is_written"], said.stderr
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert after <= 0.5 * before


def test_a_file_that_rounds_otherwise_is_verified_as_such(remat_opt, tmp_path):
    model, out = image(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    remat_opt(model, "-o", out, "--fission", "close", "-b", "min", "--max-overhead", "1000%", *FAST)
    said = remat_opt("verify", model, out, "--runs", "1")
    assert said.returncode == 1 and "differs in" in said.stdout
    said = remat_opt("verify", model, out, "--runs", "1", "--close", "--format", "json")
    report = json.loads(said.stdout)
    assert said.returncode == 0 and not report["identical"], said.stderr
    assert [one["kind"] for one in report["closeness"]["inputs"]] == ["ordinary", "large-offset", "constant", "denormal"]
    assert "close: largest difference " in remat_opt("verify", model, out, "--runs", "1", "--close").stdout
    broken = onnx.load(out)
    for tensor in broken.graph.initializer:
        if tensor.name.startswith("weights2"):
            tensor.CopyFrom(onnx.numpy_helper.from_array(1.5 * onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(broken, tmp_path / "broken.onnx")
    assert remat_opt("verify", model, tmp_path / "broken.onnx", "--runs", "1", "--close").returncode == 1


def head(path):
    """21 classes that are resized to the size of the image: blocks of channels have more, and all is copied out of them."""
    b = Builder([("x", FLOAT, [1, CHANNELS, SIDE, SIDE])], [("y", FLOAT, [1, 21, SIDE, SIDE])])
    random = np.random.default_rng(3)
    wide, narrow = ((16, CHANNELS, 3, 3), (21, 16, 1, 1))
    weights = [b.constant(f"weights{len(shape)}{shape[0]}", 0.1 * random.standard_normal(shape).astype(np.float32)) for shape in (wide, narrow)]
    at = b.op("Relu", [b.op("Conv", ["x", weights[0]], "wide", pads=[1] * 4, strides=[4, 4])], "positive")
    at = b.op("Conv", [at, weights[1]], "classes")
    scales = b.constant("scales", np.array([1, 1, 4, 4], np.float32))
    b.op("Resize", [at, "", scales], "y", mode="linear", coordinate_transformation_mode="half_pixel")
    return b.save(path)


def test_where_blocks_of_channels_take_the_memory_convolutions_leave_them(remat_opt, tmp_path):
    model, out = head(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    exact = remat_opt(model, "-o", tmp_path / "exact.onnx", *FAST)
    assert not (tmp_path / "exact.onnx").exists(), exact.stdout
    asked = ["--fission", "close", "--max-overhead", "1000%", *FAST]
    said = remat_opt(model, "-o", out, *asked)
    report = json.loads(said.stdout)
    assert report["outputs"] == "close", said.stderr
    assert report["tiling"]["plain"] and not report["tiling"]["fused_chains"]
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert after <= 0.6 * before
    said = remat_opt(model, "-o", tmp_path / "again.onnx", *asked[:-2])
    assert "no tiles, convolutions outside of blocks of channels" in said.stdout


def pooled(path, pool, out, **attributes):
    """A large result before a pool."""
    b = Builder([("x", FLOAT, [1, CHANNELS, SIDE, SIDE])], [("y", FLOAT, out)])
    b.op(pool, [b.op("Relu", [b.op("Concat", ["x"] * 16, "wide", axis=1)], "positive")], "y", **attributes)
    return b.save(path)


def of_sums(path):
    """Normalizations, and a mean."""
    return network(path, 2, 1e-5)[0]


def of_means(path):
    """A mean alone: its parts are split, and nothing runs in two passes."""
    return pooled(path, "GlobalAveragePool", [1, 16 * CHANNELS, 1, 1])


def of_maxima(path):
    """Nothing is summed up."""
    return pooled(path, "MaxPool", [1, 16 * CHANNELS, SIDE // 4, SIDE // 4], kernel_shape=[4, 4], strides=[4, 4])


@pytest.mark.parametrize("make", [of_sums, of_means, image, head])
def test_a_plan_is_written_again_in_its_class(make, remat_opt, tmp_path):
    model = make(tmp_path / "model.onnx")
    out, again, plan = (tmp_path / name for name in ("out.onnx", "again.onnx", "plan.json"))
    remat_opt(model, "-o", out, "--fission", "close", "-b", "min", "--max-overhead", "1000%", "--emit-plan", plan, *FAST)
    assert json.loads(plan.read_text())["setup"]["tiling"]["close"]
    said = remat_opt(model, "-o", again, "--plan", plan, "--no-arena-plan", "--format", "json")
    assert again.exists(), said.stderr
    assert json.loads(said.stdout)["outputs"] in ("close", "bit-identical")
    x = np.random.default_rng(5).standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(run(out, x), run(again, x), strict=True))


def test_where_nothing_is_summed_up_every_bit_stays(remat_opt, tmp_path):
    model = of_maxima(tmp_path / "model.onnx")
    asked = ["-b", "min", "--max-overhead", "1000%", *FAST]
    close, exact = (
        json.loads(remat_opt(model, "-o", tmp_path / f"{how}.onnx", "--fission", how, *asked).stdout) for how in ("close", "exact")
    )
    assert close["tiling"]["fused_chains"] and "close" not in close["tiling"]
    assert close["outputs"] == exact["outputs"] == "bit-identical"
    assert close["measured"]["after"]["arena_off"] <= 1.05 * exact["measured"]["after"]["arena_off"]


def test_without_the_class_no_sum_is_split(remat_opt, tmp_path):
    model, _ = network(tmp_path / "model.onnx", 1, 1e-5)
    said = remat_opt(model, "-o", tmp_path / "out.onnx", "--force", "-b", "min", *FAST)
    report = json.loads(said.stdout)
    assert report["outputs"] == "bit-identical"
    assert "streamed" not in (report.get("tiling") or {})
