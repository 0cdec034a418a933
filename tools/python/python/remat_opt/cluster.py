"""Jobs on a cluster of Ray (extra `cluster`: `pip install remat-opt[cluster]`).

    import ray, remat_opt, remat_opt.cluster

    ray.init()      # or ray.init("auto") on a cluster
    with remat_opt.cluster.RayExecutor() as executor:
        jobs = remat_opt.sweep_many(models, ["80%", "60%"], executor=executor, output="jobs")
"""

from __future__ import annotations

import concurrent.futures as futures
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["RayExecutor"]

T = TypeVar("T")


class RayExecutor(futures.Executor):
    """An executor whose calls run as tasks of Ray, each in a process of its own, on any machine of the cluster."""

    def __init__(self, **options: Any) -> None:
        """
        Args:
            options: Of `ray.remote`: what a task needs (`num_cpus`, 2 unless given, `memory`, `resources`). Ray itself
                does not run a task again unless `max_retries` says so; `sweep_many` does.
        """
        import ray

        if not ray.is_initialized():
            ray.init()
        # Every task in a new process: what kills one leaves the others alone.
        self._options: dict[str, Any] = {"num_cpus": 2, "max_retries": 0, "max_calls": 1, **options}
        self._ray = ray
        self._running: set[futures.Future[Any]] = set()
        self._is_over = False

    def submit(self, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        """A call as a task; function and arguments are pickled."""
        if self._is_over:
            raise RuntimeError("the executor was shut down")
        task = self._ray.remote(**self._options)(_call)
        future: futures.Future[T] = task.remote(call, *args, **kwargs).future()
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. The cluster stays as it is."""
        self._is_over = True
        if cancel_futures:
            for future in list(self._running):
                future.cancel()
        if wait:
            futures.wait(list(self._running))


def _call(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    # Ray makes tasks of functions that are written in Python only.
    return call(*args, **kwargs)
