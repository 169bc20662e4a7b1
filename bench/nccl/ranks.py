"""Processes as ranks, which end in time: one that fails or is late ends the others, and a line says which one and where."""
import faulthandler
import json
import os
import pathlib
import signal
import sys
import time

PATIENCE_S = 10.0  # of ranks with others, after one has failed


class Place:
    """Files in which a rank notes where it is, which parts it has ended, and what it found."""

    def __init__(self, folder, rank, ranks):
        self.folder, self.rank, self.ranks = pathlib.Path(folder), rank, ranks

    def note(self, text):
        """Keeps where this rank is."""
        self.folder.joinpath(f"rank{self.rank}.place").write_text(text, encoding="utf-8")

    def keep(self, found):
        """Keeps what this rank found; a rank that is ended meanwhile leaves the former file."""
        made = self.folder.joinpath(f"rank{self.rank}.new")
        made.write_text(json.dumps(found), encoding="utf-8")
        made.replace(self.folder.joinpath(f"rank{self.rank}.json"))

    def meet(self, part, failed):
        """Waits until all ranks have ended a part; after a failure here only so long as they may end alike."""
        self.note(f"{part} {'failed' if failed else 'is over'} here, and is not over on all other ranks")
        self.folder.joinpath(f"{part}.{self.rank}").touch()
        until = time.monotonic() + PATIENCE_S
        while not all(self.folder.joinpath(f"{part}.{rank}").exists() for rank in range(self.ranks)):
            if failed and time.monotonic() > until:
                raise SystemExit(f"rank {self.rank}: {part} failed here and did not end elsewhere")
            time.sleep(0.005)


def kept(folder):
    """The findings of each rank that ended a part."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(pathlib.Path(folder).glob("rank*.json"))]


def place_of(folder, rank):
    """Where a rank was last."""
    file = pathlib.Path(folder, f"rank{rank}.place")
    return file.read_text(encoding="utf-8") if file.exists() else "before its first call"


def begin_rank(seconds_left):
    """In a rank: a signal prints its stacks, and it ends by itself when nobody is there to end it."""
    faulthandler.enable()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(1, int(seconds_left + PATIENCE_S)))


def end_in_time(seconds):
    """In the process that starts ranks: if it is late until then, it ends with its stacks."""
    faulthandler.dump_traceback_later(max(1.0, seconds), exit=True)


def start(count, life):
    """Starts processes, each of which calls `life(rank)` and then ends. Returns their numbers."""
    children = []
    faulthandler.cancel_dump_traceback_later()  # a process that is forked would wait for its thread
    for rank in range(count):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                life(rank)
                code = 0
            except SystemExit as end:
                print(end, flush=True)
            except BaseException:  # pylint: disable=broad-except
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return children


def watch(children, deadline, folder):
    """Waits for all ranks, at most until `deadline` of time.monotonic(). Returns what was wrong, a text for each rank."""
    left, wrong, until = dict(enumerate(children)), [], deadline
    while left and time.monotonic() < until:
        for rank, child in list(left.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended == 0:
                continue
            del left[rank]
            if status != 0:
                wrong.append(f"rank {rank} ended with {os.waitstatus_to_exitcode(status)} at: {place_of(folder, rank)}")
                print(f"ranks: {wrong[-1]}; the others have {PATIENCE_S / 2:.0f} s to end", flush=True)
                until = min(until, time.monotonic() + PATIENCE_S / 2)
        time.sleep(0.01)
    return wrong + _end(left, folder, time.monotonic() >= deadline)


def _end(left, folder, late):
    """Ends the ranks that are left, with their stacks."""
    texts = []
    for rank, child in left.items():
        why = "was late" if late else "was ended after that"
        texts.append(f"rank {rank} {why} at: {place_of(folder, rank)}")
        print(f"ranks: {texts[-1]}; its stacks follow", flush=True)
        os.kill(child, signal.SIGABRT)
    time.sleep(0.5 if left else 0)
    for child in left.values():
        os.kill(child, signal.SIGKILL)
    until = time.monotonic() + PATIENCE_S / 2  # a driver may hold a process for longer
    while left and time.monotonic() < until:
        left = {rank: child for rank, child in left.items() if os.waitpid(child, os.WNOHANG)[0] == 0}
        time.sleep(0.01)
    return texts
