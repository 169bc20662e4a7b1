#!/usr/bin/env python3
"""Runs PyTorch's own tests of its `nccl` backend (torch.testing._internal.distributed.distributed_test).

Start it twice, with NCCL and with Tandem, and compare what passes:

  python3 bench/nccl/distributed_test.py --out nccl.json
  tandem launch -n 1 --nccl python3 bench/nccl/distributed_test.py --out tandem.json --expected nccl.json

With --expected the exit code is 1 if a test fails that passed there. The option --together runs many tests in the same
processes, so that each takes a fraction of a second. A test that fails or hangs costs new processes.
"""
import argparse
import fnmatch
import importlib.util
import json
import mmap
import os
import signal
import sys
import tempfile
import time
import types
import unittest

# The suite reads these when it is imported. A launcher's own variables would make its processes one job.
for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(name, None)
os.environ.setdefault("BACKEND", "nccl")
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # with --together the parent must not start CUDA
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp(prefix="distributed_test_"))
os.environ["WORLD_SIZE"] = os.environ.get("TANDEM_TEST_RANKS", "2")
os.environ.setdefault("INIT_METHOD", "file://" + os.environ["TEMP_DIR"] + "/shared_init_file")
for folder in ("barrier", "test_dir", "init_dir"):
    os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)

if importlib.util.find_spec("expecttest") is None:  # the suite takes its class and a flag, and none of its functions
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False

from torch.testing._internal.distributed import distributed_test  # noqa: E402


class TestDistBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """The suite, with a process for each rank."""

    def setUp(self):
        super().setUp()
        self._spawn_processes()


class Names(unittest.TextTestResult):
    """Notes the names of the tests that pass."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id().rsplit(".", 1)[-1])


STATES = ("not run", "started", "passed", "failed", "skipped")


class Together:
    """Runs tests one after the other in one process for each rank."""

    def __init__(self, names, ranks):
        self.names, self.ranks = names, ranks
        self.states = mmap.mmap(-1, max(1, len(names) * ranks))  # a byte for each test and rank

    def set(self, test, rank, state):
        self.states[test * self.ranks + rank] = STATES.index(state)

    def state(self, test):
        """The worst state of the ranks; skipped where all skipped it."""
        all_of = {STATES[self.states[test * self.ranks + rank]] for rank in range(self.ranks)}
        for state in ("failed", "started", "not run", "passed"):
            if state in all_of:
                return state
        return "skipped"

    def run_rank(self, rank, first):
        """The life of one rank: all tests from `first` on, until one fails."""
        suite = TestDistBackend(self.names[first])
        suite.rank, suite.file_name = rank, os.environ["TEMP_DIR"] + "/store"
        distributed_test.Barrier.init()
        if distributed_test.torch.cuda.device_count() > rank:
            distributed_test.torch.cuda.set_device(rank)
        distributed_test.dist.init_process_group(
            init_method="file://" + suite.file_name, backend=os.environ["BACKEND"], world_size=self.ranks, rank=rank)
        for test in range(first, len(self.names)):
            self.set(test, rank, "started")
            suite = TestDistBackend(self.names[test])
            suite.rank, suite.file_name = rank, os.environ["TEMP_DIR"] + "/store"
            try:
                suite._barrier()
                getattr(suite, self.names[test])()
                self.set(test, rank, "passed")
            except (unittest.SkipTest, SystemExit):
                self.set(test, rank, "skipped")
            except Exception as error:  # pylint: disable=broad-except
                print(f"rank {rank}: {self.names[test]}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                self.set(test, rank, "failed")
                return

    def start(self, first):
        os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="distributed_test_")
        for folder in ("barrier", "test_dir", "init_dir"):
            os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
        children = []
        for rank in range(self.ranks):
            sys.stdout.flush()
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    self.run_rank(rank, first)
                finally:
                    sys.stdout.flush()
                    os._exit(0)
        return children

    def run(self, seconds, each):
        """Runs tests for `seconds`, `each` at most for one."""
        end, first = time.monotonic() + seconds, 0
        while first < len(self.names) and time.monotonic() < end:
            children, test, since = self.start(first), first, time.monotonic()
            while test < len(self.names) and time.monotonic() < min(end, since + each + (5 if test == first else 0)):
                if self.state(test) in ("passed", "skipped"):
                    test, since = test + 1, time.monotonic()
                elif self.state(test) == "failed":
                    break
                else:
                    time.sleep(0.005)
            if test < len(self.names) and time.monotonic() < end:
                print(f"{self.names[test]}: {'failed' if self.state(test) == 'failed' else 'did not end'}", flush=True)
                for rank in range(self.ranks):
                    self.set(test, rank, "failed")
            time.sleep(0.2)  # for the other ranks' words
            for child in children:
                os.kill(child, signal.SIGKILL)  # all before the first wait: else a rank reports the one that was ended
            for child in children:
                os.waitpid(child, 0)
            first = test + 1
        return {state: [name for test, name in enumerate(self.names) if self.state(test) == state] for state in STATES}


def run_together(options):
    patterns = options.only.split(",")
    all_names = unittest.TestLoader().getTestCaseNames(TestDistBackend)
    names = [name for pattern in patterns for name in all_names if fnmatch.fnmatch(name, pattern)]
    left_out = options.leave_out.split(",")
    names = list(dict.fromkeys(name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in left_out)))
    if options.expected:  # only what can be compared
        with open(options.expected, encoding="utf-8") as file:
            passed = json.load(file)["passed"]
        names = [name for name in names if name in passed] or names
    together = Together(names, int(os.environ["WORLD_SIZE"]))
    print(f"{len(names)} tests to run", flush=True)
    while options.after and not os.path.exists(options.after):
        time.sleep(0.02)
    found = together.run(options.seconds, options.each)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    print({state: len(which) for state, which in found.items()}, "failed:", *found["failed"])
    return 1 if options.expected and found["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file for the names of the tests that pass")
    parser.add_argument("--expected", help="such a file; its tests must pass here too")
    parser.add_argument("--only", default="test_", help="beginning of the names of the tests to run; with --together "
                        "patterns, with commas between them")
    parser.add_argument("--together", action="store_true", help="many tests in the same processes")
    parser.add_argument("--leave-out", default="", help="with --together: patterns of tests that do not run, with commas")
    parser.add_argument("--seconds", type=float, default=600, help="with --together: for all tests")
    parser.add_argument("--each", type=float, default=20, help="with --together: for one test")
    parser.add_argument("--after", help="with --together: a file; when it exists, the ranks start")
    options = parser.parse_args()
    if options.together:
        return run_together(options)
    expected = json.load(open(options.expected, encoding="utf-8"))["passed"] if options.expected else []
    loader = unittest.TestLoader()
    loader.testMethodPrefix = options.only
    result = unittest.TextTestRunner(resultclass=Names, verbosity=2).run(loader.loadTestsFromTestCase(TestDistBackend))
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"passed": sorted(result.passed)}, file, indent=1)
    missing = sorted(set(expected) - set(result.passed))
    print(f"{len(result.passed)} of {result.testsRun} tests passed" + "".join(f"\nfailed here: {name}" for name in missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
