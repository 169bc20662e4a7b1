"""How operators of PyTorch are registered and called.

`torch.library.custom_op` would do, but its checks in Python cost more than ten microseconds a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import errors

_library = torch.library.Library("tandem", "FRAGMENT")
# Without them calls are right, but take longer.
_below_autograd = getattr(torch._C, "_AutoDispatchBelowAutograd", None)
_modes: Any = getattr(torch._C, "_len_torch_dispatch_stack", None)
_interpreter: Any = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)
_autograd = getattr(getattr(torch, "_library", None), "autograd", None)
_needs_gradient = getattr(torch._C, "_any_requires_grad", None)
_KINDS = (torch.Tensor, torch.nn.Parameter)
_PLAIN = frozenset((str, int, float, bool, type(None), torch.dtype))
# Kernels that may be called without the dispatcher, by the identity of their operator, whose hash is slower.
_direct: dict[int, Callable[..., Any]] = {}


def register(
    name: str,
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    gradient: Callable[..., Any] | None = None,
    keep: Callable[..., None] | None = None,
) -> None:
    """Registers tandem::name with its kernel for CPUs and GPUs, its shape function and its gradient.

    `keep` saves for `gradient` what it needs. Without a gradient, backward raises Unsupported.
    """

    def none(ctx: Any, *grads: Any) -> Any:
        raise errors.Unsupported(f"{name}: backward given, allowed is forward alone, because it has no gradient")

    _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"tandem::{name}", fake, lib=_library)
    _register_gradient(name, gradient or none, keep)


def _register_gradient(name: str, gradient: Callable[..., Any], keep: Callable[..., None] | None) -> None:
    """Registers a gradient. Calls that record none take the short way from here, too."""
    make, kind = getattr(_autograd, "make_autograd_impl", None), getattr(_autograd, "Info", None)
    if make is None or kind is None or _below_autograd is None or _needs_gradient is None:
        torch.library.register_autograd(f"tandem::{name}", gradient, setup_context=keep, lib=_library)
        return
    operator = getattr(torch.ops.tandem, name).default
    recorded = make(operator, kind(gradient, keep))
    key = id(operator.overloadpacket)  # the namespace keeps it

    def run(keyset: Any, *arguments: Any) -> Any:
        if not (torch.is_grad_enabled() and _needs_gradient(*arguments)):
            kernel = _direct.get(key)
            if kernel is not None and _are_plain(arguments):
                return kernel(*arguments)
        return recorded(keyset, *arguments)

    _library.impl(name, run, "Autograd", with_keyset=True)


def call_directly(operator: Any, kernel: Callable[..., Any]) -> None:
    """Lets `call` take `kernel` for plain tensors of CPUs and GPUs, without the dispatcher before it."""
    if _modes is not None and _interpreter is not None:
        _direct[id(operator)] = kernel


def _is_plain(value: Any) -> bool:
    """Whether the dispatcher would take an argument to the kernel as it is."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind in _KINDS:
        return not value.is_meta and not value.is_neg()
    return all(map(_is_plain, value)) if isinstance(value, list) else not isinstance(value, torch.Tensor)


def _are_plain(arguments: tuple[Any, ...]) -> bool:
    """Whether nothing but autograd stands between the caller and a kernel with these arguments."""
    if _modes() > 0 or _interpreter() is not None:
        return False
    for value in arguments:  # `all` with a generator takes 0.3 us more
        if type(value) not in _PLAIN and not _is_plain(value):
            return False
    return True


def call(operator: Any, *arguments: Any) -> Any:
    """Calls an operator. Where nothing records gradients, it takes the short way to the kernel."""
    if _below_autograd is None or _needs_gradient is None or torch.compiler.is_compiling():
        return operator(*arguments)
    is_recording = torch.is_grad_enabled()
    kernel = _direct.get(id(operator))
    if kernel is not None and not (is_recording and _needs_gradient(*arguments)) and _are_plain(arguments):
        return kernel(*arguments)
    if is_recording:
        return operator(*arguments)
    with _below_autograd():
        return operator(*arguments)
