"""Calls of PyTorch's bindings in place of ops: the same ops with the same arguments."""

import models
import pytest
import torch
from remat_opt.torch import _code
from remat_opt.torch._bindings import bind
from torch import fx
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


def bound(op, *args, **kwargs):
    """The node of a call after `bind`; arguments that are tensors are placeholders."""
    graph = fx.Graph()

    def value(one):
        if not isinstance(one, torch.Tensor):
            return one
        node = graph.placeholder("x")
        node.meta["val"] = one
        return node

    node = graph.call_function(op, tuple(value(one) for one in args), kwargs)
    node.meta["val"] = op(*args, **kwargs)
    bind(graph)
    return node


X = torch.ones(4, 6)

REPLACED = [
    (aten.view.default, X, [6, 4]),
    (aten.t.default, X),
    (aten.mm.default, X, X.t()),
    (aten.add.Tensor, X, X),
    (aten.mul.Tensor, X, 2.0),
    (aten.sum.dim_IntList, X, [0], True),
    (aten.native_layer_norm.default, X, [6], X[0], X[1], 1e-5),
    (aten.gelu.default, X),
]


@pytest.mark.parametrize("call", REPLACED, ids=lambda call: str(call[0]))
def test_a_binding_that_calls_the_op_takes_its_place(call):
    op, *args = call
    node = bound(op, *args)
    assert not isinstance(node.target, OpOverload)
    with Recorder() as recorder:
        if node.op == "call_method":
            mine = getattr(args[0], node.target)(*args[1:])
        else:
            mine = node.target(*args)
    assert recorder.ops == [op]
    plain = op(*args)
    assert all(map(torch.equal, *([one] if isinstance(one, torch.Tensor) else one for one in (mine, plain))))


KEPT = [
    (aten.add.Scalar, X, 2),  # `torch.add` takes the number as a tensor: `add.Tensor`.
    (aten.matmul.default, X, X.t()),  # It is made of other ops.
    (aten.split.Tensor, X, 2),  # `torch.split` is code of Python.
    # There is none.
    (aten.native_layer_norm_backward.default, X, X, [6], X[:, :1], X[:, :1], X[0], X[1], [True, True, True]),
]


@pytest.mark.parametrize("call", KEPT, ids=lambda call: str(call[0]))
def test_an_op_whose_binding_does_something_else_stays(call):
    op, *args = call
    assert bound(op, *args).target is op


def test_ops_that_take_no_tensor_stay():
    """`with torch.device(...)` changes what `torch.full` does, but not what its op does."""
    assert bound(aten.full.default, [2, 2], 1.0).target is aten.full.default


def test_a_view_within_a_graph_is_one():
    node = bound(aten._unsafe_view.default, X, [6, 4])
    assert (node.op, node.target) == ("call_method", "view")


def test_results_can_be_overwritten():
    """A custom function of autograd allows that for what is no view."""
    torch.manual_seed(0)
    model, x = torch.nn.Linear(6, 6, bias=False), torch.randn(2, 4, 6)
    step = torch.compile(model, backend=lambda gm, example: _code.op_by_op(gm, example))
    result = step(x)
    result.add_(1).square().sum().backward()
    mine, model.weight.grad = model.weight.grad, None
    model(x).add_(1).square().sum().backward()
    assert torch.equal(mine, model.weight.grad)


@pytest.mark.parametrize("name", ["gpt-dropout-tiny", "unet-tiny"])
def test_a_training_step_runs_the_same_ops(monkeypatch, name):
    """Both halves, with the random numbers of dropout."""

    def record():
        model, inputs = models.make(name)
        step = torch.compile(model, backend=lambda gm, example: _code.op_by_op(gm, example))
        step(*inputs).backward()
        torch.manual_seed(0)
        with Recorder() as recorder:
            loss = step(*inputs)
            loss.backward()
        torch._dynamo.reset()
        return [_plain(one) for one in recorder.ops], loss, [one.grad for one in model.parameters()]

    ops, loss, gradients = record()
    monkeypatch.setattr(_code, "bind", lambda graph: None)
    plain_ops, plain_loss, plain_gradients = record()
    assert ops == plain_ops and len(ops) > 100
    assert torch.equal(loss, plain_loss)
    assert all(map(torch.equal, gradients, plain_gradients))


def _plain(op):
    return aten.view.default if op is aten._unsafe_view.default else op
