"""Private names of torch that compression in compiled graphs needs, and the versions it is tested with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from cdu_tools.errors import UserError
from torch import Tensor, fx, nn
from torch._dynamo.exc import TorchDynamoException as CompilerError
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.utils._python_dispatch import _disable_current_modes as without_modes

from actcodec.graph.torch_loops import loop_settings, prepare_loops

__all__ = [
    "TESTED",
    "CompilerError",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensorMode",
    "FusionLimits",
    "Kernel",
    "OpOverload",
    "autograd_node",
    "check_version",
    "compile_parts",
    "compiles_recurrent_layers",
    "decompositions",
    "descriptions",
    "fusion_limits",
    "inductor",
    "joint_graphs",
    "kernels_of",
    "min_cut",
    "next_autograd_number",
    "notices_hooks",
    "partition_by",
    "partitioner",
    "partitioner_base",
    "recorded_part",
    "saved_output",
    "storage_is_gone",
    "storage_of",
    "with_tensors",
    "without_modes",
]

#: Releases of torch that the tests have run with.
TESTED = ("2.13", "2.14")


def check_version() -> None:
    """Raise UserError for a release of torch whose private functions are not known to fit."""
    if ".".join(torch.__version__.split(".")[:2]) not in TESTED:
        raise UserError(
            f"actcodec.compiled is not tested with torch {torch.__version__}, whose private functions it needs: use torch "
            f"{' or '.join(TESTED)}, or compress_activations, which uses public functions alone"
        )


def compiles_recurrent_layers() -> bool:
    """Return whether the compiler has been set to compile ``nn.RNN``, ``nn.GRU`` and ``nn.LSTM``, as by default it is not."""
    from torch._dynamo import config

    return bool(config.allow_rnn)


def notices_hooks() -> AbstractContextManager[None]:
    """Return a context in which compiled code is compiled anew when hooks of modules have come or gone."""
    from torch._dynamo import config

    context: AbstractContextManager[None] = config.patch(skip_nnmodule_hook_guards=False)
    return context


def min_cut(joint: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Return torch's own forward and backward graph of a joint graph: values that are cheap to compute are computed again."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(joint, inputs, **options)


def inductor(graph: fx.GraphModule, inputs: Sequence[Any], partitioner: object) -> Callable[..., Any]:
    """Compile a graph of dynamo with inductor, which partitions with ``partitioner`` and schedules for a low peak.

    By default the partitioner keeps on the CPU as much as eager execution does, and a freed buffer may be taken by a smaller
    one that lives longer.
    """
    import torch._functorch.config as functorch
    from torch._inductor.compile_fx import compile_fx

    prepare_loops()
    settings = {"custom_partitioner_fn": partitioner, **_settings()}
    with functorch.patch(ban_recompute_materialized_backward=False):
        compiled: Callable[..., Any] = compile_fx(graph, inputs, config_patches=settings)  # type: ignore[assignment]
    return compiled


def _settings() -> dict[str, Any]:
    return {"allow_buffer_reuse": False, "layout_optimization": False, **loop_settings()}


@dataclass(frozen=True)
class Kernel:
    """One kernel of a graph as inductor schedules it, before code is generated."""

    is_extern: bool  #: a library's function; a loop otherwise
    reads: frozenset[str]  #: inputs of the graph and buffers
    made: Mapping[str, tuple[int, int]]  #: buffers: bytes that appear with the kernel, bytes that go when the buffer does
    over: Mapping[str, tuple[str, ...]]  #: buffers or inputs that the kernel may write over, by the buffer in their place
    nodes: frozenset[fx.Node]  #: operations of the graph that it computes


class _ScheduledError(BaseException):
    """Ends compilation once the order of kernels is known; no error that inductor would wrap."""


def kernels_of(graph: fx.GraphModule, *, is_backward: bool) -> list[Kernel]:
    """Return the kernels of a graph with fake values in the order in which :func:`inductor` runs them; the graph is changed.

    The result of a graph that has none is empty. Names of a buffer that is written into stand for the first of them.
    """
    from torch._guards import TracingContext, detect_fake_mode, tracing
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.virtualized import V

    found: list[Kernel] = []

    def stop(nodes: list[Any]) -> list[Any]:
        found.extend(_scheduled(nodes))
        raise _ScheduledError

    _write_numbers(graph)
    inputs = [node.meta["val"] for node in graph.graph.find_nodes(op="placeholder")]
    mode = detect_fake_mode(inputs)
    assert mode is not None, "values are fake"
    settings = {**_settings(), "_post_fusion_custom_pass": stop, "force_disable_caches": True}
    with suppress(_ScheduledError), config.patch(settings), V.set_fake_mode(mode), tracing(TracingContext(mode)):
        compile_fx_inner(graph, inputs, is_backward=is_backward)
    return found


def _write_numbers(graph: fx.GraphModule) -> None:
    """Put numbers in place of operations on known sizes, whose quotients inductor does not take (torch 2.13)."""
    numbers: dict[fx.Node, fx.node.Argument] = {}
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        if node.op == "call_function" and isinstance(value, torch.SymInt | torch.SymFloat) and not free_symbols(value):
            numbers[node] = int(value) if isinstance(value, torch.SymInt) else float(value)
        if node.op != "output":
            node.args, node.kwargs = fx.node.map_arg((node.args, node.kwargs), lambda one: numbers.get(one, one))
    for node in reversed(numbers):
        if not node.users:
            graph.graph.erase_node(node)


def _scheduled(nodes: Sequence[Any]) -> list[Kernel]:
    """Return the kernels of nodes of inductor's scheduler, in the order that takes least memory."""
    from torch._inductor.memory import reorder_for_peak_memory
    from torch._inductor.scheduler import ExternKernelSchedulerNode
    from torch._inductor.virtualized import V
    from torch.utils._ordered_set import OrderedSet

    if not nodes:
        return []
    scheduler = nodes[0].scheduler
    first = scheduler.mutation_real_name
    given, returned = OrderedSet(V.graph.graph_inputs), OrderedSet(V.graph.get_output_names())
    order = reorder_for_peak_memory(list(nodes), scheduler.name_to_buf, scheduler.name_to_fused_node, given, returned)
    kernels = []
    for node in order:
        results = {one.get_name(): one.mpi_buffer for one in node.get_outputs() if one.get_name() not in first}
        kernels.append(
            Kernel(
                is_extern=isinstance(node, ExternKernelSchedulerNode),
                reads=frozenset(first.get(read.name, read.name) for read in node.read_writes.reads),
                made={name: (size.size_alloc, size.size_free) for name, size in results.items()},
                over={name: _places(node, name) for name in results},
                nodes=frozenset().union(*(one.node.get_origins() for one in node.get_nodes() if one.node is not None)),
            )
        )
    last = frozenset(first.get(name, name) for name in returned)
    return [*kernels, Kernel(True, last, {}, {}, frozenset())]


def _places(kernel: Any, name: str) -> tuple[str, ...]:
    """Return the names of what a loop of a kernel reads at the place where alone it writes a buffer."""
    loops = kernel.get_nodes()
    found = []
    for loop in loops:
        if name not in {one.get_name() for one in loop.get_outputs()} or not hasattr(loop, "can_inplace"):
            continue
        for read in loop.read_writes.reads:
            others = [one for one in loops if read.name in {dep.name for dep in one.read_writes.reads}]
            uses = {dep for one in loops for dep in one.read_writes.reads_and_writes() if dep.name == read.name}
            alone = [one for one in others if one.get_name() not in loop.ancestors] == [loop] and len(uses) == 1
            if alone and loop.can_inplace(read):
                found.append(read.name)
    return tuple(found)


def partitioner_base() -> type:
    """Return the class of which inductor's setting ``custom_partitioner_fn`` takes an object."""
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    return CustomPartitionerFn


def descriptions(end: fx.Node, count: int) -> list[object]:
    """Return torch's descriptions of the first outputs of a forward: None where it has lost them (2.14, random numbers)."""
    return list(end.meta.get("desc", [None] * count))[:count]


def saved_output(value: object, index: int) -> object:
    """Return torch's description of an output of the forward that the backward takes."""
    from torch._functorch._aot_autograd import descriptors

    unchecked = isinstance(value, fx.Node) and value.meta.get("saved_tensor_with_no_vc_check")
    kind = descriptors.SavedForBackwardsNoVcCheckAOTOutput if unchecked else descriptors.SavedForBackwardsAOTOutput
    return kind(index)


def partitioner(partition: Callable[..., Any], key: str) -> object:
    """Return what inductor takes as its partitioner; ``key`` tells its cache what the partitioner does.

    Inductor copies and pickles its settings, and with them this object: a copy is the object, a pickle its key alone.
    """

    class Partition(partitioner_base()):  # type: ignore[misc]
        def __call__(self, joint: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
            return partition(joint, inputs, **options)

        def uuid(self) -> str:
            return key

        def __deepcopy__(self, memo: object) -> Any:
            return self

        def __reduce__(self) -> Any:
            return str, (key,)

    return Partition()


def partition_by(partitioner: object | None) -> Callable[..., Any]:
    """Return inductor's function from a joint graph to two, with its passes over the first, and a partitioner or its own."""
    import torch._functorch.config as functorch
    from torch._inductor import config
    from torch._inductor.compile_fx import partition_fn

    def split(joint: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        if partitioner is None:
            return partition_fn(joint, inputs, **options)
        with config.patch(custom_partitioner_fn=partitioner), functorch.patch(ban_recompute_materialized_backward=False):
            return partition_fn(joint, inputs, **options)

    return split


class _TracedError(Exception):
    """Ends the tracing once there are graphs: nothing is compiled."""


def joint_graphs(
    whole: Callable[..., Any], given: Sequence[Any], mode: FakeTensorMode, budget: float, partition: Callable[..., Any]
) -> tuple[fx.GraphModule, fx.GraphModule] | None:
    """Return the forward and the backward graph of ``whole(*given)``, None if nothing in it has a gradient.

    ``budget`` is torch's ``activation_memory_budget``; ``partition`` makes the graphs from the joint one. Fake tensors that
    ``whole`` reads and is not given are buffers of the graphs, which torch refuses elsewhere.
    """
    import torch._dynamo.utils as dynamo
    import torch._functorch.config as functorch
    from torch._functorch.aot_autograd import aot_function
    from torch._inductor.virtualized import V

    pairs: list[tuple[fx.GraphModule, fx.GraphModule]] = []

    def recorded(*args: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        pairs.append(partition(*args, **options))
        return pairs[-1]

    def stop(gm: fx.GraphModule, example_inputs: Any) -> Any:
        raise _TracedError

    compiled = aot_function(
        whole,
        fw_compiler=stop,
        bw_compiler=stop,
        partition_fn=recorded,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    options = {"activation_memory_budget": budget, "enable_autograd_cache": False}
    allowed = patch.object(dynamo, "assert_no_fake_params_or_buffers", lambda graph: None)
    with mode, V.set_fake_mode(mode), functorch.patch(options), allowed, suppress(_TracedError):
        compiled(*given)
    return pairs[0] if pairs else None


def with_tensors(model: nn.Module, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
    """Return a context in which a model has other parameters and buffers."""
    return torch.nn.utils.stateless._reparametrize_module(model, dict(tensors))


def next_autograd_number() -> int:
    """Return the number that the next node of autograd's graph will have."""
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


def autograd_node() -> Any:
    """Return the node of autograd's graph whose backward is running, None for none."""
    return torch._C._current_autograd_node()


@dataclass(frozen=True)
class FusionLimits:
    """Bounds beyond which inductor makes a buffer of what a loop computes."""

    reuse: int  #: buffers read by a value that several operations read
    reads: int  #: buffers read by any value
    operations: int  #: operations that a value takes


def fusion_limits(*, on_cpu: bool) -> FusionLimits:
    """Return inductor's bounds as they are set."""
    from torch._inductor import config

    reads = config.realize_acc_reads_threshold
    operations = config.realize_opcount_threshold
    return FusionLimits(
        config.realize_reads_threshold,
        reads or (config.realize_cpu_acc_reads_threshold if on_cpu else config._realize_acc_reads_threshold_default),
        operations or (config.realize_cpu_opcount_threshold if on_cpu else config._realize_opcount_threshold_default),
    )


def recorded_part(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    edit: Callable[..., Any],
    run: Callable[..., Any],
    measure: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function that runs a graph of dynamo operation by operation, in the graphs that inductor would have.

    ``edit(forward, backward, outputs, static)`` returns both graphs, edited; ``run(forward, values)`` runs the one and
    ``measure(backward, values)`` the other.
    """
    import torch._functorch.config as functorch
    from torch._dynamo.backends.common import aot_autograd
    from torch._guards import detect_fake_mode
    from torch._inductor.virtualized import V

    class Recorder(partitioner_base()):  # type: ignore[misc]
        def __call__(self, joint: fx.GraphModule, given: Sequence[Any], *, num_fwd_outputs: int, **options: Any) -> Any:
            static = frozenset(options.get("static_lifetime_input_indices") or ())
            return edit(*min_cut(joint, given, num_fwd_outputs=num_fwd_outputs, **options), num_fwd_outputs, static)

        def uuid(self) -> None:
            return None

    def boxed(one: fx.GraphModule, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(values: list[Any]) -> Any:
            taken = list(values)
            values.clear()
            return run(one, taken)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    options = {
        "fw_compiler": lambda one, _: boxed(_seeded(one), run),
        "bw_compiler": lambda one, _: boxed(_seeded(one), measure),
        "partition_fn": partition_by(Recorder()),
        "decompositions": decompositions(),
    }
    with functorch.patch(enable_autograd_cache=False), V.set_fake_mode(detect_fake_mode(inputs)):
        return aot_autograd(**options)(graph, inputs)


def _seeded(graph: fx.GraphModule) -> fx.GraphModule:
    """Let random operations of inductor draw the numbers of their seeds, which the graph may ask for twice."""
    from torch._inductor import inductor_prims

    own = {inductor_prims.random: _random, inductor_prims.randint: _random_integers}
    for node in graph.graph.nodes:
        node.target = own.get(node.target, node.target)
    graph.recompile()
    return graph


def _random(size: Sequence[int], seed: Tensor, kind: str, **_: object) -> Tensor:
    return getattr(torch, kind)(size, device=seed.device, generator=_generator(seed))  # type: ignore[no-any-return]


def _random_integers(low: int, high: int, size: Sequence[int], seed: Tensor) -> Tensor:
    return torch.randint(low, high, size, device=seed.device, generator=_generator(seed))


def _generator(seed: Tensor) -> torch.Generator:
    return torch.Generator(seed.device).manual_seed(int(seed))


def storage_of(value: Tensor) -> int:
    """Return the number of a tensor's storage, the same for all tensors that share it while one of them lives."""
    return int(value.untyped_storage()._cdata)


def storage_is_gone(value: torch.Tensor) -> Callable[[], bool]:
    """Return a function that says whether all tensors with the storage of a tensor are gone; it holds none."""
    from torch.multiprocessing.reductions import StorageWeakRef

    reference = StorageWeakRef(value.untyped_storage())  # type: ignore[no-untyped-call]
    return lambda: bool(reference.expired())  # type: ignore[no-untyped-call]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return inductor's decompositions."""
    from torch._inductor.decomposition import select_decomp_table

    return select_decomp_table()


def compile_parts(whole: fx.GraphModule, inputs: Sequence[Any], compile_part: Callable[..., Any]) -> Callable[..., Any]:
    """Compile each part of a graph that :func:`torch.fx.passes.split_module.split_module` has cut, and return the whole."""
    from torch._dynamo.backends.distributed import SubmodCompiler
    from torch._guards import detect_fake_mode

    mode = detect_fake_mode(inputs)
    assert mode is not None, "dynamo gives fake tensors"
    compiler = SubmodCompiler(whole, compile_part, mode)
    compiler.extra_traceback = False  # an error keeps its own message
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value):  # not those around the model
        compiler.run(*inputs)
    whole.recompile()
    return whole
