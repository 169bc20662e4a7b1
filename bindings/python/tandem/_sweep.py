"""Many simulated calls as a table and as a plot."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from . import errors
from ._library import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._results import Result


class Table(list[dict[str, Any]]):
    """Rows of a sweep: a list of dicts with text, HTML, pandas and matplotlib views.

    A row has the options that were swept and the columns of its result. Times are in simulated microseconds, and sizes in
    bytes. "error" is None, or the reason why this machine cannot run it.
    """

    def columns(self) -> list[str]:
        """All keys, in the order in which rows have them."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self)))

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame. Raises MissingPackage where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise errors.MissingPackage(
                "pandas is not installed, and to_pandas needs it: pip install pandas"
            ) from error
        return pandas.DataFrame(list(self), columns=self.columns())

    def plot(self, x: str = "bytes", y: str = "time_us", by: str = "algorithm", ax: Any = None) -> Any:
        """Draws one line of `y` over `x` for each value of `by`, on logarithmic axes. Returns the matplotlib axes.

        `ax`: axes to draw on; None: new ones. Raises MissingPackage where matplotlib is not installed.
        """
        for name, column in (("x", x), ("y", y), ("by", by)):
            if column not in self.columns():
                raise errors.InvalidArgument(f"{name}: {shown(column)} given, allowed is one of {self.columns()}")
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise errors.MissingPackage(
                    "matplotlib is not installed, and plot needs it: pip install matplotlib"
                ) from error
            ax = pyplot.subplots()[1]
        rows = [row for row in self if row.get(y) is not None]
        for value in dict.fromkeys(row.get(by) for row in rows):
            line = sorted((row[x], row[y]) for row in rows if row.get(by) == value)
            ax.plot([point[0] for point in line], [point[1] for point in line], marker=".", label=str(value))
        ax.set(xscale="log", yscale="log", xlabel=x, ylabel=f"{y}, predicted")
        ax.legend()
        return ax

    def _cells(self) -> list[list[str]]:
        return [[_cell(row.get(column)) for column in self.columns()] for row in self]

    def __str__(self) -> str:
        lines = [self.columns(), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[cell.rjust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
        return "\n".join(map("  ".join, padded))

    def _repr_html_(self) -> str:
        import html

        def line(tag: str, cells: list[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        return (
            "<table>" + line("th", self.columns()) + "".join(line("td", cells) for cells in self._cells()) + "</table>"
        )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def run_all(function: Callable[..., Result], options: dict[str, Any]) -> Table:
    """Calls `function` once for each combination of the options that are lists, in order, and returns the table."""
    for name in ("arrays", "a", "b"):
        if options.get(name) is not None:
            raise errors.InvalidArgument(f"{name}: given, allowed is a sweep without data")
    swept = {name: list(value) for name, value in options.items() if isinstance(value, (list, range))}
    fixed = {name: value for name, value in options.items() if name not in swept}
    table = Table()
    for values in itertools.product(*swept.values()):
        chosen = dict(zip(swept, values, strict=True))
        try:
            result = function(**fixed, **chosen)
        except errors.Unsupported as error:
            table.append({**chosen, "time_us": None, "error": str(error)})
        except TypeError as error:
            if isinstance(error, errors.Error):
                raise
            raise errors.InvalidType(f"options: {error}") from error
        else:
            table.append({**chosen, **result._row(), "error": None})
    return table
