"""The command-line tool, which the package brings along."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from . import errors
from ._library import FOLDER

if TYPE_CHECKING:
    import subprocess

TOOL = FOLDER / "bin" / "tandem"
# Options of the tool whose arguments have another name.
_ARGUMENTS = {"algo": "algorithm", "break": "broken"}


def main() -> NoReturn:
    """The console script `tandem`: becomes the tool."""
    try:
        os.execv(TOOL, ["tandem", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tandem: {TOOL} does not start: {error}")


def run_json(arguments: Sequence[str], timeout_s: float | None = None) -> Any:
    """Runs the tool and returns its JSON. Raises its errors; findings (exit code 1) are none."""
    import json
    import re
    import subprocess

    try:
        process = subprocess.Popen(
            [TOOL, *arguments, "--json", "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # its workers are ended with it
        )
    except OSError as error:
        raise errors.Failure(f"{TOOL} does not start: {error}") from error
    try:
        output, message = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise errors.Timeout(f"timeout_s: the tool did not end within {timeout_s} s") from error
    except BaseException:  # an interrupt by the user, too
        _end(process)
        raise
    if process.returncode in (0, 1):
        return json.loads(output)
    text = message.strip().removeprefix("tandem: ") or f"the tool ended with code {process.returncode}"
    text = re.sub(r"^OP: ", "op: ", text)
    # Commands between backticks stay as they are.
    text = re.sub(r"`[^`]*`|(?<!\S)--([a-z][a-z-]*)", lambda m: _argument(m.group(1)) if m.group(1) else m.group(), text)
    raise (errors.InvalidArgument if process.returncode == 2 else errors.Failure)(text)


def _argument(option: str) -> str:
    return _ARGUMENTS.get(option, option.replace("-", "_"))


def _end(process: subprocess.Popen[str]) -> None:
    import contextlib
    import signal

    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
