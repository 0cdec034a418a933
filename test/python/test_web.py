"""The planner as a page: a model is chosen, seen, planned and saved, in a browser."""

import functools
import http.server
import json
import threading
import time

import browser as browsers
import models
import need
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

PAGE = models.ROOT / "target" / "web"
MOST = 4_000_000
"""Bytes of all files of the page."""

need.require("browser", browsers.CHROMIUM is not None, "no Chromium: third_party/fetch.sh installs it where it can")
need.require("web", (PAGE / "remat_bg.wasm").exists(), "the page is not built: `make web`")


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and notes what is asked for."""

    asked = []

    def do_POST(self):
        self.asked.append("POST")
        self.send_error(405)

    def log_message(self, *_):
        self.asked.append(self.path)


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=PAGE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()


@pytest.fixture
def page(browser, address):
    browser.errors.clear()
    browser.open(address)
    yield browser
    assert not browser.errors


def until(page, script):
    """Waits until an expression is true, far longer than it takes."""
    ends = time.monotonic() + browsers.HANGS
    while not page.run(script):
        assert time.monotonic() < ends, page.run("document.body.innerText")
        time.sleep(0.1)


def choose(page, path):
    """Gives the page a file, as the dialog of the browser does."""
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])


def explored(page):
    until(page, "!document.getElementById('wish').hidden && document.getElementById('status').textContent === ''")


def planned(page):
    until(page, "/at the peak|no plan/.test(document.getElementById('found').textContent)")
    return page.run("document.getElementById('found').textContent")


def outputs(path, feeds, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def random_feeds(path):
    random = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    made = {}
    for one in session.get_inputs():
        is_integer = "int" in one.type
        made[one.name] = random.integers(0, 2, one.shape) if is_integer else random.random(one.shape, np.float32)
    return made


def test_all_files_together_are_small():
    assert sum(file.stat().st_size for file in PAGE.iterdir()) <= MOST


def test_a_model_is_seen_planned_and_saved_and_nothing_leaves(page, remat_opt, tmp_path):
    Files.asked.clear()
    page.run("document.getElementById('example').click()")
    explored(page)
    rows = page.run("[...document.querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
    assert len(rows) >= 4 and rows[0][0] == "100 %" and rows[-1][0] == "lowest"
    bytes_of = [float(row[1].split()[0]) for row in rows]
    assert bytes_of[-1] == min(bytes_of) < 0.7 * bytes_of[0]
    assert page.run("document.querySelectorAll('#curve circle').length") == len(rows)

    page.run("document.getElementById('percent').value = 60; document.getElementById('seconds').value = 1")
    page.run("document.querySelector('#wish [type=submit]').click()")
    assert "ops run again" in planned(page)
    original = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
    written = tmp_path / "small.onnx"
    written.write_bytes(page.saved("[data-file=model]").read_bytes())
    feeds = random_feeds(original)
    assert all(np.array_equal(one, other) for one, other in zip(outputs(original, feeds), outputs(written, feeds), strict=True))
    # What the runtime takes of both by default, measured where the program finds it, else simulated.
    reports = [json.loads(remat_opt("inspect", path, "--format", "json").stdout) for path in (original, written)]
    assert reports[0]["baseline_of"] == reports[1]["baseline_of"]
    assert reports[1]["baseline_peak_bytes"] < 0.8 * reports[0]["baseline_peak_bytes"]
    plan = json.loads(page.saved("[data-file=plan]").read_text())
    assert plan["format"].startswith("remat-plan/") and plan["peak_bytes"] <= 0.6 * plan["baseline_peak_bytes"]
    assert "<canvas" in page.saved("[data-file=page]").read_text()
    assert "POST" not in Files.asked
    assert {path.split("?")[0] for path in Files.asked} <= {f"/{file.name}" for file in PAGE.iterdir()}


def test_weights_are_not_read_and_are_written(page, tmp_path):
    """A model of 64 MB, of which the page reads some kilobytes."""
    width, layers = 1024, 16
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for layer in range(layers):
        weights.append(numpy_helper.from_array(random.random((width, width), np.float32) / width, f"w{layer}"))
        nodes += [helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"]), helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"])]
        last = f"r{layer}"
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, width])
    graph = helper.make_graph([*nodes, helper.make_node("Add", [last, "r0"], ["y"])], "large", [value("x")], [value("y")], weights)
    original, written = tmp_path / "large.onnx", tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), original)
    choose(page, original)
    explored(page)
    page.run("document.getElementById('seconds').value = 1; document.querySelector('#wish [type=submit]').click()")
    planned(page)
    written.write_bytes(page.saved("[data-file=model]").read_bytes())
    feeds = random_feeds(original)
    assert all(np.array_equal(one, other) for one, other in zip(outputs(original, feeds), outputs(written, feeds), strict=True))


def test_chains_run_tile_by_tile(page, tmp_path):
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for layer in range(4):
        weights.append(numpy_helper.from_array(random.random((8, 8, 3, 3), np.float32), f"w{layer}"))
        nodes += [
            helper.make_node("Conv", [last, f"w{layer}"], [f"c{layer}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]),
        ]
        last = f"r{layer}"
    nodes.append(helper.make_node("MaxPool", [last], ["y"], kernel_shape=[4, 4], strides=[4, 4]))
    value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "chain", [value("x", 1, 8, 128, 128)], [value("y", 1, 8, 32, 32)], weights)
    original = tmp_path / "chain.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), original)
    choose(page, original)
    explored(page)
    page.run("document.getElementById('seconds').value = 4; document.getElementById('tiles').checked = true")
    page.run("document.querySelector('#wish [type=submit]').click()")
    assert "chains in tiles" in planned(page)
    feeds, op_by_op = random_feeds(original), onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    pairs = zip(outputs(original, feeds, op_by_op), outputs(page.saved("[data-file=model]"), feeds, op_by_op), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)


def test_open_sizes_are_asked_for(page, tmp_path):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 64])
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "open", [value("x")], [value("y")]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    choose(page, path)
    until(page, "!document.getElementById('sizes').hidden")
    assert page.run("[...document.querySelectorAll('#sizes input')].map(input => input.name)") == ["batch"]
    page.run("document.querySelector('#sizes input').value = 1024; document.querySelector('#sizes button').click()")
    explored(page)
    assert "KiB" in page.run("document.querySelector('#summary dd').textContent")


def test_what_is_no_model_says_where(page, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_text('{"nodes": []}')
    choose(page, path)
    until(page, "document.getElementById('status').classList.contains('bad')")
    assert "byte" in page.run("document.getElementById('status').textContent")


@pytest.mark.parametrize("name", browsers.WINDOWS)
def test_the_page_looks_as_it_should(browser, address, name):
    browser.open(address, *browsers.WINDOWS[name])
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.looks_as_kept(f"web-{name}")


def test_keys_reach_everything_on_a_phone(browser, address):
    browser.errors.clear()
    browser.open(address, width=375, height=800)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.key("Tab")
    assert browser.run("document.activeElement.id") == "file"
    browser.key("Tab", "Enter")
    explored(browser)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    seen = set()
    for _ in range(40):
        browser.key("Tab")
        seen.add(browser.run("document.activeElement.id || document.activeElement.textContent"))
    assert {"percent", "seconds", "tiles", "lowest", "Plan"} <= seen
    assert not browser.errors
