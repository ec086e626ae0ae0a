"""The means of torch that benchmarks compare with: torch.compile, a budget of saved bytes, the FP8 pass, and two switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from torch import nn

#: torch's pass that stores what crosses from forward to backward in FP8 (e4m3, one scale a tensor), for tensors from 0.1 MB.
FP8_PASS = {
    "activation_quantization_aten_pass": {
        "quant_type": "torch.float8_e4m3fn",
        "use_scaling": True,
        "size_in_mb": 0.1,
        "exclude_primals": True,
        "allowed_dtypes": "torch.float32;torch.bfloat16",
    }
}


@contextmanager
def settings(budget: float = 1.0, fp8: bool = False, switches: bool = False) -> Iterator[None]:
    """Apply torch's settings to what is compiled while the context is open.

    Parameters
    ----------
    budget
        Share of the saved bytes that ``torch._functorch.config.activation_memory_budget`` leaves, 0 to 1.
    fp8
        Whether the FP8 pass runs.
    switches
        Whether values that the backward pass would materialise may be computed again, and freed buffers are not reused.
    """
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    with ExitStack() as stack:
        stack.enter_context(functorch.patch(activation_memory_budget=budget))
        if fp8:
            stack.enter_context(inductor.patch(post_grad_fusion_options=FP8_PASS))
        if switches:
            stack.enter_context(functorch.patch(ban_recompute_materialized_backward=False))
            stack.enter_context(inductor.patch(allow_buffer_reuse=False))
        yield


PLAIN = "inductor"
#: Settings by name; contexts that are open during the first step of a model, in which it is compiled.
TORCH_MEANS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    PLAIN: settings,
    "inductor, budget 0.5": partial(settings, budget=0.5),
    "inductor, budget 0.2": partial(settings, budget=0.2),
    "FP8 pass": partial(settings, fp8=True),
    "FP8 pass, budget 0.5": partial(settings, fp8=True, budget=0.5),
    "FP8 pass, two switches": partial(settings, fp8=True, switches=True),
}
#: The same for tables in which torch's means are a few rows of many.
FEW = ("inductor, budget 0.5", "FP8 pass", "FP8 pass, budget 0.5")


def compile_in_place(model: nn.Module) -> None:
    """Have torch compile a model for every shape that it meets, apart from other models of its class in the process.

    Models of one class share what was compiled for any of them, with that one's settings, unless they are compiled apart.
    """
    model.compile(dynamic=False, isolate_recompiles=True)
