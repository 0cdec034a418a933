"""What a training step takes on a GPU that is not there: no number of it is computed.

    devices                what is known of the devices
    dry_run, simulated     a step or a script on such a device: every allocation, in order; `kernels` that it takes
    script, captured       a training script up to its third step, and its model and loss
    estimate, budgets      what a step takes, and what less memory costs in time
    snapshot               recordings of a device under other settings
    fit, command, page     all of it as `remat-opt fit`, and as a page for a browser
"""
