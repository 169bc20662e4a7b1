"""The checker: races, hangs, and results that other schedules change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import errors
from ._library import shown, text_option, whole_option
from ._results import Timeline
from ._tool import run_json

if TYPE_CHECKING:
    import os

    _Path = str | os.PathLike[str]


class Site(NamedTuple):
    """A place in the source that has to do with a finding."""

    file: str
    line: int
    operation: str
    """Such as "put", "load", "wait"."""
    by: str
    """Such as "PE 1 block 0 of ShiftAdd"."""
    launch: int = 0
    """Which launch of that kernel in its stream, from 1; 0: no kernel."""
    occurrence: int = 0
    """Which time this launch came by here, from 1; 0: not known."""


class Finding:
    """A mistake that a schedule showed."""

    def __init__(self, finding: dict[str, Any]) -> None:
        self.kind: str = finding["kind"]
        """Such as read_before_write_is_visible, hang, wrong_result; docs/reference/checker.md lists all."""
        self.sites: list[Site] = [Site(**site) for site in finding["sites"]]
        """The earlier one first."""
        self.pes: list[int] = finding["pes"]
        self.buffer: str = finding.get("buffer", "")
        self.signal: str = finding.get("signal", "")
        self.missing: str = finding["missing"]
        """What order is missing, and which operation gives it."""
        self.replay: str = finding["replay"]
        """The command that reproduces it exactly."""

    def _words(self) -> list[str]:
        import shlex

        return shlex.split(self.replay)[1:]  # without "tandem"

    def run_again(self, timeout_s: float | None = None) -> CheckResult:
        """Runs the schedule of this finding again. The result has the same finding."""
        return CheckResult(run_json(self._words(), _seconds(timeout_s)))

    @property
    def timeline(self) -> Timeline:
        """The timeline of this finding's schedule, with both sites marked: a page."""

        def draw(kind: str, path: str) -> None:
            if kind != "report":
                raise errors.InvalidArgument(
                    f"path: '{path}' given, allowed for a finding is a name that ends in .html"
                )
            run_json([*self._words(), "--report", path])

        return Timeline(draw)

    def __repr__(self) -> str:
        sites = " and ".join(f"{site.operation} at {site.file}:{site.line} by {site.by}" for site in self.sites)
        return f"<{self.kind}: {sites or 'no site'}; replay: {self.replay}>"


class CheckResult:
    """The outcome of a check."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.op: str = answer["op"]
        self.strategy: str = answer["strategy"]
        self.seed: int = answer["seed"]
        self.configurations: int = answer["configurations"]
        self.runs: int = answer["runs"]
        """Schedules that were run, of all configurations."""
        self.exhausted: bool | None = answer.get("exhausted")
        """With the strategy dfs: whether no other choice is left in any configuration."""
        self.findings: list[Finding] = [Finding(one) for one in answer["findings"]]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        found = "clean" if self.clean else f"{len(self.findings)} findings"
        return f"<check of {self.op}: {self.configurations} configurations, {self.runs} schedules, {found}>"


class Mutant(NamedTuple):
    """A program with one synchronising operation broken."""

    op: str
    algorithm: str
    broken: str
    """The operation and its place, as the argument `broken` of `check` takes it."""


def _words(name: str, value: object) -> list[str]:
    return [] if value is None else [name, text_option(name.lstrip("-").replace("algo", "algorithm"), value)]


def _choice(op: object, algorithm: object, pes: object) -> list[str]:
    operation = text_option("op", op)
    if operation.startswith("-"):
        raise errors.InvalidArgument(f"op: {shown(op)} given, allowed is a name, or all")
    words = ["check", operation, *_words("--algo", algorithm)]
    if pes is not None:
        numbers = list(pes) if isinstance(pes, (list, tuple, range)) else [pes]
        if not numbers:
            raise errors.InvalidArgument("pes: none given, allowed are numbers of PEs from 1 to 32")
        words += ["--pes", ",".join(str(whole_option("pes", one)) for one in numbers)]
    return words


def _seconds(timeout_s: object) -> float | None:
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)):
        raise errors.InvalidType(f"timeout_s: {shown(timeout_s)} given, allowed is a number of seconds")
    if not 0 < timeout_s < 1e7:
        raise errors.InvalidArgument(f"timeout_s: {timeout_s} given, allowed is more than 0 and less than 1e7")
    return timeout_s


def check(
    op: str = "all",
    *,
    algorithm: str | None = None,
    case: str | None = None,
    pes: int | Sequence[int] | None = None,
    schedules: int = 20,
    strategy: str = "random",
    seed: int = 1,
    broken: str | None = None,
    timeout_s: float | None = None,
) -> CheckResult:
    """Checks the library's own program of a collective or operator under many schedules.

    `op`: a collective, an operator, layers, barrier, send_recv_group, or all.
    `algorithm`, `case`: one algorithm or one configuration alone.
    `pes`: numbers of PEs to try (default: 2, 3 and 4).
    `schedules`: how many of each configuration, with the seeds from `seed` on.
    `strategy`: random, pct, delay or dfs.
    `broken`: a synchronising operation to break, as `mutants` names it, to see the checker find it.
    `timeout_s`: seconds after which the check is ended with `tandem.Timeout`.

    The check runs in processes of its own, several at once.
    """
    words = _choice(op, algorithm, pes)
    words += [*_words("--case", case), *_words("--strategy", strategy), *_words("--break", broken)]
    words += ["--schedules", str(whole_option("schedules", schedules)), "--seed", str(whole_option("seed", seed))]
    return CheckResult(run_json(words, _seconds(timeout_s)))


def mutants(op: str, *, algorithm: str | None = None, pes: int | Sequence[int] | None = None) -> list[Mutant]:
    """Names what can be broken in the program of `op`, for the argument `broken` of `check`. Nothing is checked."""
    rows = run_json([*_choice(op, algorithm, pes), "--mutants", "--list"])
    return [Mutant(one["op"], one["algorithm"], one["mutant"]) for one in rows]
