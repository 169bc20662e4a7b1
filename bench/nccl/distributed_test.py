#!/usr/bin/env python3
"""Runs PyTorch's own tests of its `nccl` backend (torch.testing._internal.distributed.distributed_test).

Start it twice, with NCCL and with Tandem, and compare what passes:

  python3 bench/nccl/distributed_test.py --out nccl.json
  tandem launch -n 1 --nccl python3 bench/nccl/distributed_test.py --out tandem.json --expected nccl.json

With --expected the exit code is 1 if a test fails that passed there.
"""
import argparse
import json
import os
import sys
import tempfile
import unittest

# The suite reads these when it is imported. A launcher's own variables would make its processes one job.
for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(name, None)
os.environ.setdefault("BACKEND", "nccl")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp(prefix="distributed_test_"))
os.environ["WORLD_SIZE"] = os.environ.get("TANDEM_TEST_RANKS", "2")
os.environ.setdefault("INIT_METHOD", "file://" + os.environ["TEMP_DIR"] + "/shared_init_file")
for folder in ("barrier", "test_dir", "init_dir"):
    os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file for the names of the tests that pass")
    parser.add_argument("--expected", help="such a file; its tests must pass here too")
    parser.add_argument("--only", default="test_", help="beginning of the names of the tests to run")
    options = parser.parse_args()
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
