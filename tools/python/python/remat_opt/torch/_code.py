"""What runs the two graphs of a training step: generated code, op by op or by Inductor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import _inductor as inductor
from torch import fx
from torch.fx.graph import CodeGen

from ._bindings import bind
from ._check import Run
from ._partition import Partitioner
from ._versions import inductor_partitions_with

Half = Callable[[list[Any]], Any]
"""The forward or the backward of a graph: it takes a list of arguments, which it empties."""
Around = Callable[[bool, Half], Half]
"""What stands around a half; it is told whether that is the backward."""


def _nothing(_: bool, half: Half) -> Half:
    return half


@dataclass(frozen=True)
class Inner:
    """The compiler behind a plan."""

    name: str
    """`"aot_eager"` runs ops one by one as they stand in a graph, `"inductor"` generates kernels."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of Inductor."""

    def compile(
        self,
        gm: fx.GraphModule,
        inputs: Sequence[Any],
        partitioner: Partitioner | None = None,
        around: Around = _nothing,
    ) -> Run:
        """Compiles a graph of Dynamo.

        Args:
            gm: It may be changed.
            inputs: Examples.
            partitioner: Splits the joint graph; without one, PyTorch's own does.
            around: Of both halves.
        """
        if self.name == "aot_eager":
            return op_by_op(gm, inputs, partitioner, around)
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner

        if partitioner is None:
            return compile_fx(gm, inputs, config_patches=dict(self.options))

        def compile_half(*arguments: Any, **keywords: Any) -> Any:
            # The split is known now; that of the backward is compiled when it first runs.
            with inductor.config.patch(partitioner.fusion):
                compiled = compile_fx_inner(*arguments, **keywords)
            return compiled if keywords.get("is_inference") else _with(around, bool(keywords.get("is_backward")), compiled)

        with inductor_partitions_with(partitioner) as patches:
            return compile_fx(gm, inputs, compile_half, config_patches={**self.options, **patches})


def _with(around: Around, is_backward: bool, compiled: Any) -> Any:
    """A half that Inductor has compiled, with what stands around it: what PyTorch reads of it beside calling it stays."""
    if hasattr(compiled, "current_callable"):
        compiled.current_callable = around(is_backward, compiled.current_callable)
        return compiled
    run = around(is_backward, compiled)  # Without any op, it is a function.
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def op_by_op(
    gm: fx.GraphModule, inputs: Sequence[Any], partitioner: Partitioner | None = None, around: Around = _nothing
) -> Run:
    """A graph of Dynamo whose ops run one by one; each value is dropped after its last use."""
    from torch._dynamo.backends.common import aot_autograd

    def compiler(is_backward: bool) -> Callable[[fx.GraphModule, Sequence[Any]], Half]:
        def compile_half(graph: fx.GraphModule, _: Sequence[Any]) -> Half:
            run = around(is_backward, boxed(graph))
            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compile_half

    keywords = {} if partitioner is None else {"partition_fn": partitioner}
    run: Run = aot_autograd(fw_compiler=compiler(False), bw_compiler=compiler(True), **keywords)(gm, inputs)
    return run


def boxed(gm: fx.GraphModule, _: Sequence[Any] = ()) -> Half:
    """A graph as one generated function. It takes a list, which it empties, so that inputs die after their last use."""
    for node in gm.graph.find_nodes(op="placeholder"):
        node.target = node.name  # Under another name the code would hold it to the end.
    bind(gm.graph)
    gm.graph.set_codegen(_Boxed())
    gm.recompile()
    forward = gm.forward

    def run(arguments: list[Any]) -> Any:
        return forward(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class _Boxed(CodeGen):
    """A function of one list of arguments."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **_: Any) -> str:
        """The first lines of the function."""
        names = [one.partition(":")[0].partition("=")[0].strip() for one in free_vars if one != "self"]
        lines = [f"def {getattr(self, '_func_name', 'forward')}(self, arguments){maybe_return_annotation}:"]
        if names:
            lines.append(f"    {', '.join(names)}, = arguments")
        return "\n".join([*lines, "    arguments.clear()"])
