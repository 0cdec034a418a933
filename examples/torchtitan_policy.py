"""A memory policy for torchtitan's graph trainer: a budget in bytes instead of a list of ops to save.

    torchtitan_policy.register()                     # before the trainer is built
    config.compile.memory_policy = "remat_opt"       # in a function of a config registry: the command line takes
                                                     # torchtitan's own policies only
    REMAT_OPT_MEMORY=40GiB                           # what a step may take on one GPU, parameters among it

torchtitan traces a step into one graph and has a policy tag the nodes that the backward may run again. This one tags none,
but puts the graph into the order of a plan for this budget, clones among it. Passes that overlap communication reorder the
graph after it, so look at the peak that torchtitan logs, and lower the budget by what it is above.
"""

import logging
import os

import remat_opt.torch

log = logging.getLogger(__name__)


def remat_policy(gm, *, config=None):
    """Puts a graph into the order of a plan, and gives it back."""
    report = remat_opt.torch.reorder(gm, os.environ.get("REMAT_OPT_MEMORY", "60%"))
    log.info("%s", report)
    return gm


def register():
    """Makes the policy known to torchtitan."""
    from torchtitan.experiments.graph_trainer.registry import register_memory_policy

    register_memory_policy("remat_opt")(remat_policy)
