"""Many searches at once: processes, executors, a cluster on this machine; interrupted, lost, and continued."""

import json
import signal

import models
import pytest
import wheel

pytestmark = wheel.is_there

CHAIN = models.ROOT / "test" / "cli" / "training_chain.json"
SMALL = models.ROOT / "test" / "models" / "mlp_tiny_train.onnx"

SHOW = """
def shown(jobs):
    return [[job.model, job.budget, job.point and job.point["peak_bytes"], type(job.error).__name__, job.attempts] for job in jobs]
"""


def test_models_times_budgets_run_in_processes_and_are_not_run_again(environment, tmp_path):
    code = (
        SHOW
        + """
seen = []
problem = remat_opt.Problem.load(sys.argv[1])
jobs = remat_opt.sweep_many({"chain": problem, "mlp": sys.argv[2]}, ["80%", 0.6, 1000], output=sys.argv[3], **SEARCH, progress=seen.append, workers=2)
print(json.dumps({"jobs": shown(jobs), "seen": len(seen), "html": jobs._repr_html_(), "failed": len(jobs.failed),
    "why": str(jobs.failed[0].error)}))"""
    )
    first = environment.python(code, CHAIN, SMALL, tmp_path / "jobs")
    names = [(model, budget) for model, budget, *_ in first["jobs"]]
    assert names == [(model, budget) for model in ("chain", "mlp") for budget in ("80%", "60%", "1000")]
    assert first["jobs"][1][2] == 4 << 20
    assert [(job[3], job[4]) for job in first["jobs"]] == [("NoneType", 1), ("NoneType", 1), ("InfeasibleError", 1)] * 2
    assert (first["seen"], first["failed"]) == (6, 2)
    assert "op `b5` needs 4.0 MiB" in first["why"]
    assert "op `b5` needs 4.0 MiB" in first["html"]
    files = sorted((tmp_path / "jobs").iterdir())
    assert len(files) == 6
    assert {json.loads(path.read_text())["format"] for path in files} == {"remat-job/1"}
    again = environment.python(code, CHAIN, SMALL, tmp_path / "jobs")
    assert [job[:4] for job in again["jobs"]] == [job[:4] for job in first["jobs"]]
    assert {job[4] for job in again["jobs"]} == {0}
    # A file that was cut off counts as none.
    files[0].write_text(files[0].read_text()[:-20])
    repaired = environment.python(code, CHAIN, SMALL, tmp_path / "jobs")
    assert sorted(job[4] for job in repaired["jobs"]) == [0, 0, 0, 0, 0, 1]


def test_jobs_that_a_machine_lost_are_tried_again_and_what_follows_from_the_model_is_not(environment, tmp_path):
    found = environment.python(
        SHOW
        + """
from concurrent.futures import Executor, Future, BrokenExecutor
class Loses(Executor):
    def __init__(self, times):
        self.left, self.calls = times, 0
    def submit(self, call, *arguments):
        self.calls += 1
        if self.left:
            self.left -= 1
            raise BrokenExecutor("the worker is gone")
        future = Future()
        future.set_result(call(*arguments))
        return future
once, always = Loses(1), Loses(100)
jobs = remat_opt.sweep_many([sys.argv[1]], ["60%", 1000], executor=once, **SEARCH)
lost = remat_opt.sweep_many([sys.argv[1]], ["60%"], executor=always, retries=1, output=sys.argv[2])
later = remat_opt.sweep_many([sys.argv[1]], ["60%"], executor=Loses(0), output=sys.argv[2], **SEARCH)
try:
    remat_opt.sweep_many([sys.argv[1], sys.argv[1]], ["60%"])
    named = None
except remat_opt.UsageError as error:
    named = str(error)
print(json.dumps([shown(jobs), once.calls, shown(lost), str(lost[0].error), always.calls, shown(later), named]))""",
        CHAIN,
        tmp_path / "jobs",
    )
    jobs, calls, lost, why, tries, later, named = found
    assert [job[3:] for job in jobs] == [["NoneType", 2], ["InfeasibleError", 1]]
    assert calls == 3
    assert lost[0][3:] == ["LimitError", 2]
    assert "the worker is gone" in why
    assert tries == 2
    assert later[0][3:] == ["NoneType", 1]
    assert "same name" in named


def test_a_job_that_kills_its_process_leaves_the_others_alone(environment):
    found = environment.python(
        SHOW
        + """
class Kills(remat_opt.Problem):
    def __reduce__(self):
        return eval, ("__import__('os')._exit(9)",)
whole = remat_opt.Problem.load(sys.argv[1])
jobs = remat_opt.sweep_many({"kills": Kills(whole.document), "whole": whole}, ["60%"], retries=1, **SEARCH)
print(json.dumps([shown(jobs), str(jobs[0].error)]))""",
        CHAIN,
    )
    jobs, why = found
    assert [job[3:] for job in jobs] == [["LimitError", 2], ["NoneType", 1]]
    assert "exit status 9" in why


def test_ctrl_c_ends_it_and_what_is_done_stays(environment, large, tmp_path):
    code = """
try:
    remat_opt.sweep_many({"short": sys.argv[1], "long": sys.argv[2]}, ["30%"], output=sys.argv[3], workers=2, solver="search",
        time_limit=600, step_limit=10**12, progress=lambda job: print("begun", flush=True), threads=1)
except KeyboardInterrupt:
    print("ended", flush=True)
"""
    process = environment.start("python", "-c", "import json, sys, remat_opt\n" + code, CHAIN, large, tmp_path / "jobs")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out == "ended\n", err
    assert len(list((tmp_path / "jobs").glob("short-*.json"))) == 1


def test_two_workers_of_a_cluster_share_the_jobs(environment, tmp_path):
    if not wheel.is_pinned("ray"):
        pytest.skip("there is no wheel of Ray for this machine")
    found = environment.python(
        SHOW
        + """
import logging, os, ray, remat_opt.cluster
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False, object_store_memory=80 << 20)
with remat_opt.cluster.RayExecutor(num_cpus=1) as executor:
    workers = {future.result() for future in [executor.submit(os.getpid) for _ in range(4)]}
    jobs = remat_opt.sweep_many({"chain": sys.argv[1], "mlp": sys.argv[2]}, ["80%", "60%", 1000], executor=executor, output=sys.argv[3], **SEARCH)
    lost = executor.submit(os._exit, 1)
    try:
        lost.result()
        reason = None
    except Exception as error:
        reason = type(error).__name__
try:
    executor.submit(os.getpid)
    is_open = True
except RuntimeError:
    is_open = False
here = os.getpid() in workers
ray.shutdown()
print(json.dumps([shown(jobs), len(workers), here, reason, is_open]))""",
        CHAIN,
        SMALL,
        tmp_path / "jobs",
    )
    jobs, workers, is_here, reason, is_open = found
    assert [job[3:] for job in jobs] == [["NoneType", 1], ["NoneType", 1], ["InfeasibleError", 1]] * 2
    assert workers == 4
    assert not is_here
    assert reason is not None
    assert not is_open
    assert len(list((tmp_path / "jobs").iterdir())) == 6
