"""The kernels that functions take on a CUDA device, for programs that run without one: attention, dropout, softmax, and
what autocast casts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from .dry_run import Recorder

_HALF = frozenset(
    "linear matmul __matmul__ __rmatmul__ bmm baddbmm mm mv addmm addmv addbmm chain_matmul einsum conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc prelu scaled_dot_product_attention".split()
)
"""What autocast runs in the lower precision on CUDA (PyTorch's documentation of `torch.amp`, "CUDA Op-Specific Behavior")."""
_FULL = frozenset(
    "acos asin cosh cosine_embedding_loss cdist cosine_similarity cross_entropy cumprod cumsum dist erfinv exp expm1 "
    "group_norm hinge_embedding_loss kl_div l1_loss layer_norm log log10 log1p log2 log_softmax margin_ranking_loss "
    "mse_loss multi_margin_loss multilabel_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow prod reciprocal "
    "rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum renorm tan triplet_margin_loss".split()
)
"""What it runs in single precision."""
_SOFTMAX = ("softmax", "log_softmax", "cross_entropy")


class AsOnCuda(TorchFunctionMode):
    """Has functions take the kernels that they take on CUDA."""

    def __init__(self, precision: torch.dtype | None, is_traced: bool = False) -> None:
        """
        Args:
            precision: The lower precision of autocast, where it is on.
            is_traced: Whether a graph is made of what runs: PyTorch traces no softmax that reads `bfloat16` and writes
                single precision.
        """
        super().__init__()
        self._given = precision
        self._is_traced = is_traced
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """Weights that were cast, which autocast keeps to its end."""

    @property
    def precision(self) -> torch.dtype | None:
        """The lower precision of autocast, where it is on."""
        return self._given

    def forget_casts(self) -> None:
        """Autocast ends."""
        self._casts.clear()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.precision is not None:
            if name in _HALF:
                # The compiler of PyTorch evaluates operands from the last one to the first.
                args = tuple(reversed([tree_map(self._half, one) for one in reversed(args)]))
                kwargs = tree_map(self._half, kwargs)
            elif name in _SOFTMAX and not self._is_traced and (fused := _softmax(name, *args, **kwargs)) is not None:
                return fused
            elif name in _FULL:
                args, kwargs = tree_map(_full, (args, kwargs))
        if name == "multi_head_attention_forward":
            return self._within(func, args, kwargs)
        if name == "scaled_dot_product_attention":
            return _attention(*args, **kwargs)
        if name == "dropout" and not isinstance(args[0] if args else None, torch.nn.Module):
            return _dropout(*args, **kwargs)
        return func(*args, **kwargs)

    def _within(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Functions that are made of others have each of them taken as on CUDA."""
        with mock.patch.object(torch.nn.functional, "has_torch_function", lambda _: False), self:
            return func(*args, **kwargs)

    def _half(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        precision = self.precision
        assert precision is not None
        if not (value.is_leaf and value.requires_grad):
            return value.to(precision)
        if id(value) not in self._casts:
            self._casts[id(value)] = (value, value.to(precision))
        return self._casts[id(value)][1]


def _softmax(name: str, input: Any, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    """The kernels that read half precision and write single precision; nothing for what they are not for."""
    if not isinstance(input, torch.Tensor) or input.dtype not in (torch.bfloat16, torch.float16):
        return None
    if name == "cross_entropy":
        target = args[0] if args else kwargs.get("target")
        if target is None or target.is_floating_point() or kwargs.get("label_smoothing") or len(args) > 1 or input.dim() == 0:
            return None
        rest = {key: value for key, value in kwargs.items() if key in ("weight", "ignore_index", "reduction")}
        scores = torch.ops.aten._log_softmax(input, min(1, input.dim() - 1), True)
        return torch.nn.functional.nll_loss(scores, target, **rest)
    dim = args[0] if args else kwargs.get("dim")
    if not isinstance(dim, int):
        return None
    kernel = torch.ops.aten._softmax if name == "softmax" else torch.ops.aten._log_softmax
    return kernel(input, dim, True)


def _full(value: Any) -> Any:
    is_half = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if is_half else value


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """The fused kernels of CUDA: flash attention in half precision without a mask, else the memory-efficient one."""
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = (one.repeat_interleave(groups, -3) for one in (key, value))
    aten = torch.ops.aten
    is_half = query.dtype in (torch.bfloat16, torch.float16)
    if is_half and attn_mask is None and query.size(-1) <= 256:
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    bias = attn_mask
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, dtype=query.dtype, device=query.device).masked_fill_(bias.logical_not(), float("-inf"))
    if bias is not None:
        bias = bias.expand(query.size(0), query.size(1), query.size(-2), key.size(-2))
    needs = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
    found = aten._scaled_dot_product_efficient_attention(query, key, value, bias, needs, dropout_p, is_causal, scale=scale)
    return found[0]


def _dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """The fused kernel of CUDA, which keeps a byte for each element."""
    if not training or p == 0 or p == 1 or inplace or input.numel() == 0:
        return torch.dropout(input, p, training) if not inplace else torch.dropout_(input, p, training)
    return torch.native_dropout(input, p, training)[0]


@contextmanager
def on_cuda(recorder: Recorder, precision: torch.dtype | None) -> Iterator[None]:
    """Runs what is inside as on CUDA, without numbers."""
    mode = AsOnCuda(precision)
    with recorder, again_within(mode), mode:
        yield


@contextmanager
def again_within(mode: TorchFunctionMode) -> Iterator[None]:
    """What a checkpoint computes again in a backward inside has its functions taken by the mode, too."""
    engine = torch.autograd._engine_run_backward

    def run(*args: Any, **kwargs: Any) -> Any:
        is_inside = mode in torch.overrides._get_current_function_mode_stack()
        with nullcontext() if is_inside else mode:
            return engine(*args, **kwargs)

    with mock.patch.object(torch.autograd, "_engine_run_backward", run):
        yield
