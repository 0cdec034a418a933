"""Plans for all models below a folder under several budgets, on this machine or on a cluster of Ray.

    python sweep_many.py FOLDER JOBS [--ray ADDRESS] [--time-limit SECONDS]

Results lie in the folder JOBS, one file each. Interrupted and begun again, it goes on where it ended.
"""

import argparse
import contextlib
import pathlib

import remat_opt


@contextlib.contextmanager
def executor(address):
    """Where jobs run: processes of this machine, or a cluster."""
    if address is None:
        yield None
        return
    import ray
    import remat_opt.cluster

    ray.init(address)
    with remat_opt.cluster.RayExecutor(num_cpus=2) as cluster:
        yield cluster


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("jobs", type=pathlib.Path)
    parser.add_argument("--budgets", default="80%,60%,min")
    parser.add_argument("--time-limit", type=float, default=10)
    parser.add_argument("--ray", metavar="ADDRESS", help="of a cluster; `auto` for the one that this machine is part of")
    args = parser.parse_args()
    models = {str(path.relative_to(args.folder)): path for path in sorted(args.folder.rglob("*.onnx"))}
    with executor(args.ray) as chosen:
        jobs = remat_opt.sweep_many(
            models,
            args.budgets.split(","),
            executor=chosen,
            output=args.jobs,
            time_limit=args.time_limit,
            progress=lambda job: print(job.model, job.budget, "done" if job.report else job.error, flush=True),
        )
    print("model,budget,peak_bytes,overhead_percent")
    for job in jobs:
        point = job.point or {}
        print(f"{job.model},{job.budget},{point.get('peak_bytes', '')},{point.get('overhead_percent', '')}")


if __name__ == "__main__":
    main()
