"""A memory policy for torchtitan's graph trainer: a budget in bytes instead of a list of ops to save.

    torchtitan_policy.register()                     # before the trainer is built
    config.compile.memory_policy = "remat_opt"       # in a function of a config registry: the command line takes
                                                     # torchtitan's own policies only
    REMAT_OPT_MEMORY=40GiB                           # what a step may take on one GPU, parameters among it

torchtitan traces a step into one graph, has a policy tag the nodes of its forward, and runs again in the backward what is
tagged so. The tags are those of a plan for this budget. Other passes of the trainer reorder the graph, so look at the
peak that torchtitan logs, and lower the budget by what it is above.
"""

import logging
import os

import remat_opt.torch

log = logging.getLogger(__name__)


def is_backward(node):
    """As torchtitan's passes tell: autograd's own nodes say so, and what was traced for them."""
    return bool(node.meta.get("autograd_backward")) or node.meta.get("partitioner_tag") == "is_backward"


def remat_policy(gm, *, config=None):
    """Tags a graph, and gives it back."""
    report = remat_opt.torch.tag(gm, os.environ.get("REMAT_OPT_MEMORY", "60%"), is_backward)
    log.info("%s", report)
    return gm


def register():
    """Makes the policy known to torchtitan."""
    from torchtitan.experiments.graph_trainer.registry import register_memory_policy

    register_memory_policy("remat_opt")(remat_policy)
