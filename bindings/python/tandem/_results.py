"""Results of simulated calls, and their timelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import errors
from ._library import call, shown

if TYPE_CHECKING:
    import os

    import numpy

_FORMATS = {".html": "report", ".svg": "svg", ".json": "trace"}


class Timeline:
    """The events of a run, with their times and places. It is drawn when it is shown or saved, by running the call once more.

    In a notebook the page to explore is the cell's output.
    """

    def __init__(self, draw: Callable[[str, str], object]) -> None:
        self._draw = draw  # called with a kind of file and its path

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the timeline to `path` and returns the path.

        The suffix decides: .html is a page to explore that needs no network, .svg a picture, .json a trace for
        ui.perfetto.dev. A timeline of the checker has a page alone.
        """
        try:
            target = Path(path)
        except TypeError as error:
            raise errors.InvalidType(f"path: {shown(path)} given, allowed is a path") from error
        kind = _FORMATS.get(target.suffix)
        if kind is None:
            raise errors.InvalidArgument(f"path: '{path}' given, allowed is a name that ends in .html, .svg or .json")
        self._draw(kind, str(target))
        return target

    def html(self) -> str:
        """The page to explore as text."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            return self.save(Path(folder) / "timeline.html").read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        import html

        page = html.escape(self.html())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; border: 0"></iframe>'


class Share(NamedTuple):
    """A part of the critical path: everything of one name together."""

    name: str
    """Such as "compute", "link out pe 3 and 7 more", "queue of link out pe 3", "latency", "launch"."""
    us: float
    """Simulated microseconds."""


class Result:
    """A simulated call. Times are predicted by a machine model, never measured."""

    predicted = True

    def __init__(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        self._request = dict(request)
        self._critical_path: list[Share] | None = None
        self.op: str = answer["op"]
        self.machine: str = answer["machine"]
        self.pes: int = answer["pes"]
        self.dtype: str = answer["dtype"]
        """Element type of the operands, by the library's name."""
        self.algorithm: str = answer["algorithm"]
        """The algorithm that ran, chosen by the library where the call left it open."""
        self.seed: int = answer["seed"]
        self.time_us: float = answer["time_us"]
        """From the common start to the end of the slowest PE, in simulated microseconds."""
        self.trace_hash: str = answer["trace_hash"]
        """Hash over everything that happened. Equal calls give equal hashes; data may make another one."""
        self.assumption: str = answer.get("assumption", "")
        """What the prediction assumes beyond the machine model; empty: nothing."""
        self.results: list[numpy.ndarray | None] | None = None
        """The result of each PE, None for a PE that gets nothing. Without data it is None itself."""

    def _run_again(self, **more: Any) -> dict[str, Any]:
        return call({**self._request, **more})

    @property
    def critical_path(self) -> list[Share]:
        """The shares of the time along the chain of events that decided the end, the longest first."""
        if self._critical_path is None:
            shares = self._run_again(critical_path=True)["critical_path"]
            self._critical_path = [Share(one["name"], one["us"]) for one in shares]
        return self._critical_path

    @property
    def bound_by(self) -> str:
        """The largest share of the critical path: what to improve first."""
        return self.critical_path[0].name if self.critical_path else "nothing"

    @property
    def timeline(self) -> Timeline:
        """The timeline of the call. That of an operator has the sequential form below it."""
        return Timeline(lambda kind, path: self._run_again(**{kind: path}))

    def _row(self) -> dict[str, Any]:
        names = ["op", "machine", "pes", "dtype", "algorithm", "time_us"]
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return (
            f"<{self.op} of {self._size()} {self.dtype} on {self.pes} PEs of {self.machine}: "
            f"{self.time_us:.2f} us predicted, {self.algorithm}{'; assumed: ' if self.assumption else ''}{self.assumption}>"
        )

    def _size(self) -> str:
        raise NotImplementedError


class CollectiveResult(Result):
    """A simulated collective."""

    def __init__(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        super().__init__(request, answer)
        self.bytes: int = answer["bytes"]
        """Bytes of the larger buffer of a PE, as nccl-tests counts them."""
        self.count: int = answer["count"]
        """Elements, as tandem/collectives.h counts them."""
        self.algorithm_gbps: float | None = answer["algorithm_gbps"]
        """Bytes over time, in GB/s of 1e9 bytes; None without bytes."""
        self.bus_gbps: float | None = answer["bus_gbps"]
        """Bus bandwidth as nccl-tests defines it, in GB/s of 1e9 bytes; None without bytes."""

    def _size(self) -> str:
        return f"{self.bytes} bytes"

    def _row(self) -> dict[str, Any]:
        return {**super()._row(), "bytes": self.bytes, "bus_gbps": self.bus_gbps}


class OperatorResult(Result):
    """A simulated operator: a GEMM and the collective beside it."""

    def __init__(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        super().__init__(request, answer)
        m, n, k = (int(part) for part in answer["shape"].split("x"))
        self.m, self.n, self.k = m, n, k
        self.sequential_us: float | None = answer["sequential_us"]
        """Predicted time of the collective and the GEMM one after the other; None where a part alone was run."""
        self.ideal_us: float | None = answer["ideal_us"]
        """Predicted time of the slower of the two alone."""
        self.overlap_percent: float | None = answer["overlap_percent"]
        """How much of the possible gain was reached: 100 at `ideal_us`, 0 at `sequential_us`."""
        self.beyond_fit: str | None = answer["beyond_fit"]
        """Why such a size was not compared with measurements; None where it was."""
        self.c: numpy.ndarray | None = None
        """The global result, m x n; None without matrices."""

    @property
    def speedup(self) -> float | None:
        """Time of the sequential form over the time of this one."""
        return self.sequential_us / self.time_us if self.sequential_us and self.time_us > 0 else None

    def _size(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    def _row(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ["m", "n", "k", "sequential_us", "ideal_us", "speedup"]}
        return {**super()._row(), **own}
