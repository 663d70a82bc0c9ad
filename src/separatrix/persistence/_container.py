"""The container of model files: safetensors with a checked JSON description, written all or nothing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import stat
import uuid
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
# Safetensors reads no header beyond 100 MB, and the description is quoted once more within it.
_LONGEST_DESCRIPTION = 40_000_000
# Lists and objects cost Python up to 25 times their text. Models have tens of them: all that is long (names,
# categories, a history) is one list of plain values, or a tensor.
_MOST_NESTED = 10_000
_STRING_OR_NEST = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]', re.DOTALL)

Tensors = dict[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A model cannot be saved to or loaded from a file; the message names the file and the remedy."""


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the path of a temporary neighbour that replaces `path` when the block ends without error.

    The neighbour is flushed to the disk first. After an error, or Ctrl-C, `path` is as it was before and
    the neighbour is gone.
    """
    final, temporary, mode = _begin(os.fspath(path))
    try:
        # A writer may put a file of its own in the neighbour's place: the permissions are set again.
        mode = os.stat(temporary).st_mode if mode is None else mode
        yield temporary
        os.chmod(temporary, stat.S_IMODE(mode))
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, final)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise what `atomic_write` would raise at its beginning, and leave nothing behind."""
    _, temporary, _ = _begin(os.fspath(path))
    os.unlink(temporary)


@contextlib.contextmanager
def text_output(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Yield a text file that appears as a whole or not at all; a device or a pipe is written to as it is."""
    if _is_stream(path):
        with open(path, "w", encoding="ascii", newline="\n") as file:
            yield file
        return
    with atomic_write(path) as temporary, open(temporary, "w", encoding="ascii", newline="\n") as file:
        yield file


def check_text_output(path: str | os.PathLike[str]) -> None:
    """Raise what `text_output` would raise at its beginning, and leave nothing behind."""
    if not _is_stream(path):
        check_writable(path)


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a device or a pipe, such as /dev/null and /dev/stdout: nothing to replace."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _begin(name: str) -> tuple[str, str, int | None]:
    """Make the neighbour of a file; return the file's real path, the neighbour's, and the mode, if any."""
    final = os.path.realpath(name)
    folder, base = os.path.split(final)
    # Unlike mkstemp, a plain open gives the file the permissions that the user's umask asks for. The suffix
    # stays last, because writers of pictures read the format from it.
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.{base[-100:]}")
    mode = None
    try:
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(final).st_mode
        if mode is None or stat.S_ISREG(mode):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return final, temporary, mode
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        wrong = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
    except OSError as error:
        code = error.errno or errno.EIO
        if code == errno.ENOENT and os.path.isdir(folder):  # such as /proc
            code = errno.EACCES
        wrong = f"cannot write there: {os.strerror(code).lower()}"
    if code == errno.ENOENT:
        raise FileNotFoundError(code, f"there is no directory {folder}; create it first", name)
    raise OSError(code, f"{wrong}; choose another path", name)  # of the class that belongs to the code


def write_container(name: str, tensors: Tensors, description: dict[str, Any]) -> None:
    """Write arrays and description into one file, with a checksum over both."""
    from safetensors.numpy import save_file

    text = json.dumps(description, allow_nan=False)
    _check_size(name, text)
    with atomic_write(name) as temporary:
        save_file(tensors, temporary, metadata={"separatrix": text, "sha256": _digest(text, tensors)})


def _check_size(name: str, text: str) -> None:
    """Refuse a description that would take many times the memory of its text."""
    if len(text) > _LONGEST_DESCRIPTION:
        raise ModelFileError(
            f"{name}: the model's description has {len(text):,} characters, too many for a file"
        )
    nested = text.count("[") + text.count("{")
    if nested > _MOST_NESTED:  # those in names do not count
        found = (match for match in _STRING_OR_NEST.finditer(text) if match[0] in "[{")
        if sum(1 for _ in itertools.islice(found, _MOST_NESTED + 1)) > _MOST_NESTED:
            raise ModelFileError(
                f"{name}: the model's description has more than {_MOST_NESTED:,} lists, too many for a file"
            )


def read_container(name: str) -> tuple[dict[str, Any], Tensors]:
    """Return description and arrays. The container checks every offset against the file's length."""
    from safetensors import SafetensorError, safe_open

    if not os.path.exists(name):
        raise FileNotFoundError(f"{name}: no such file; check the path (working directory: {os.getcwd()})")
    if not os.path.isfile(name):
        raise ModelFileError(f"{name}: not a regular file; give the path of a model file (.sx)")
    try:
        with safe_open(name, framework="np") as container:
            metadata = container.metadata() or {}
            tensors = {key: container.get_tensor(key) for key in container.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        raise ModelFileError(
            f"{name}: not a separatrix model file, or cut short ({error}); "
            "give a file written by separatrix, or save the model again"
        ) from None
    text = metadata.get("separatrix")
    if text is None:
        raise ModelFileError(
            f"{name}: a safetensors file, but not of separatrix; give a file written by separatrix"
        )
    if metadata.get("sha256") != _digest(text, tensors):
        raise ModelFileError(f"{name}: the file is damaged (checksum differs); copy or save the model again")
    _check_size(name, text)
    try:
        description: dict[str, Any] = json.loads(text)
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(f"{name}: the description is unreadable; save the model again") from None
    if version != FORMAT:
        raise ModelFileError(
            f"{name}: has format {version!r}, and this is separatrix {versions()['separatrix']} which reads "
            f"format {FORMAT}; upgrade with: pip install --upgrade separatrix"
        )
    return description, tensors


def _digest(text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for key in sorted(tensors):
        tensor = np.asarray(tensors[key], order="C")
        digest.update(f"\0{key}\0{tensor.dtype.name}\0{tensor.shape}\0".encode())
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of the libraries that take part in a model."""
    import sklearn

    import separatrix

    libraries = {"separatrix": separatrix, "scikit-learn": sklearn, "numpy": np}
    return {name: str(library.__version__) for name, library in libraries.items()}
