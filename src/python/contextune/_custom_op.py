"""PyTorch's custom ops that have several implementations."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from contextune._custom_op_config import CustomOpConfig
from contextune._errors import Error

if TYPE_CHECKING:
    from contextune._custom_op_kernel import CustomOpAutotuning

_OF_PYTORCH = {
    "config_generator": "list the configs of all sizes, and give those that are not for all `supports`",
    "min_speedup_threshold": "what is kept was shown to be faster than the default",
    "benchmark_with_cudagraphs": "what is measured is the time on the GPU",
}

__all__ = ["CustomOpConfig", "register_custom_op_autotuning"]


def register_custom_op_autotuning(custom_op: Any, configs: Iterable[CustomOpConfig], *,
                                  name: str | None = None, input_gen_fns: Any = None,
                                  dispatch_on: Any = None, split_points: Any = None, group: Any = None,
                                  collective: bool | None = None,
                                  **options: Any) -> "CustomOpAutotuning":
    """Has calls of a custom op run the best of its implementations, which the first call finds.

        @torch.library.custom_op("mylib::all_reduce", mutates_args=())
        def all_reduce(x: torch.Tensor, group_name: str) -> torch.Tensor: ...      # the default

        @all_reduce.register_fake
        def _(x, group_name): return torch.empty_like(x)

        contextune.register_custom_op_autotuning(all_reduce, configs=[
            CustomOpConfig(one_shot), CustomOpConfig(two_shot, chunk=65536)])

    It stays an op, in models that torch.compile() makes, too: what is chosen takes the place of its
    kernel on the GPU. A call of another size is another problem. It is searched as a call of a Choice:
    in the passes of a region that is repeated, else at once and alone. A CUDA graph captures what is
    chosen by then, else the default: call the op once before, as warm-ups do.

    An op is a collective if its name, or that of an implementation, has all_reduce, all_gather,
    reduce_scatter or all_to_all in it. All ranks of its process group search it together: they make
    the same calls in the same order, and wait for one another for at most presync_timeout. If they do
    not come, all run the default.

    Args:
        custom_op: Made by torch.library.custom_op(), or, from PyTorch 2.10 on, any operator. Its own
            function is the default. Its fake implementation says how large results are.
        configs: The other implementations. Each returns, or writes, what the default does.
        name: What logs and the store call it; by default the name of the op.
        input_gen_fns: Functions by names of parameters. Each makes a tensor of a fake one, so that
            the search does not run on the caller's tensors.
        dispatch_on: {"tensor_name": ..., "dim": ...}: sizes of that dimension in one of `buckets`,
            which are those of the tensor in bytes, are one problem.
        split_points: Values of that dimension where a range ends, in place of `buckets`.
        group: The process group of a collective. By default it is the one that the parameter
            `group_name` or `group` names, else the whole job.
        collective: Whether it is one, where the names do not tell.
        options: Those of a Choice, as `tolerance="bf16:1e-2"` or `fusion="on"`.
    """
    from contextune._custom_op_kernel import CustomOpAutotuning

    for option in options:
        if option in _OF_PYTORCH:
            raise Error(f"{option} is an option of PyTorch's own function alone; {_OF_PYTORCH[option]}")
    return CustomOpAutotuning(custom_op, configs, name=name, input_gen_fns=input_gen_fns or {},
                              dispatch_on=dispatch_on, split_points=split_points, group=group,
                              collective=collective, options=options)
