"""The library with NCCL's interface, for PyTorch of this process."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from . import _c, errors
from ._library import text_option

_IN_FOLDER = Path("tandem") / "nccl" / "libnccl.so.2"


def preload_nccl(path: str | os.PathLike[str] | None = None) -> None:
    """Lets PyTorch call Tandem for NCCL's functions. A program calls it before it imports torch.

    `path` is that of libtandem_nccl.so. The default is the one beside the library that TANDEM_LIBRARY names, or that of
    the package's GPU part. Processes that this one starts keep their own NCCL: `tandem launch --nccl` serves them, too.
    """
    if "torch" in sys.modules:
        raise errors.InvalidArgument("preload_nccl: called after `import torch`, allowed is a call before it")
    if path is None:
        path = Path(_c.path()).parent / _IN_FOLDER
        if not path.exists() and not os.environ.get("TANDEM_LIBRARY"):
            raise errors.InvalidArgument(
                "path: None given without TANDEM_LIBRARY and without the package's GPU part, allowed is libtandem_nccl.so"
            )
    text = text_option("path", path)
    try:
        # PyTorch's libraries look a function up in the order of loading, so the first NCCL is the one that they call.
        loaded = ctypes.CDLL(text, ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise errors.Failure(f"path: {text} given, which does not load: {error}") from error
    if not hasattr(loaded, "tandem_nccl_identity"):
        raise errors.InvalidArgument(f"path: {text} given, which is not Tandem's, allowed is libtandem_nccl.so")
