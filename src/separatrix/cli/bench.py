"""``separatrix bench``: the benchmarks, with the peers in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from separatrix.cli.screen import CommandError

#: Libraries to compare with, each installed by itself: not every machine can have each of them.
PEERS = ("scikit-learn-intelex", "libsvm-official", "liblinear-official", "skglm", "faiss-cpu")


def run(words: list[str]) -> int:
    """Run the benchmarks and return their exit code; ``--here`` uses this environment as it is."""
    sources = home()
    if sources is None:
        raise CommandError(
            "the benchmarks are not part of this installation; get the sources (git clone), then: make bench"
        )
    python = sys.executable if "--here" in words else str(environment(_folder()))
    path = os.pathsep.join(filter(None, (str(sources), os.environ.get("PYTHONPATH"))))
    command = [python, "-m", "benchmarks", *(word for word in words if word != "--here")]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode


def home() -> Path | None:
    """Return the folder that holds the package of benchmarks: of a source checkout, or of the wheel."""
    import separatrix

    assert separatrix.__file__ is not None
    package = Path(separatrix.__file__).resolve().parent
    for folder in (Path.cwd(), package.parent.parent, package / "_bench"):
        if (folder / "benchmarks" / "families.py").is_file():
            return folder
    return None


def environment(folder: Path) -> Path:
    """Return the Python of an environment with the peers, made when it is first needed.

    It sees this environment's packages behind its own, so that it is this separatrix that is measured.
    """
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / ".made"
    if done.exists() and done.read_text(encoding="utf-8") == sys.prefix:
        return python
    print(f"the peers are installed into {folder}, once; --here does without", file=sys.stderr)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=False)
    if made.returncode != 0:
        raise CommandError(f"no environment could be made in {folder}; try separatrix bench -- --here")
    for peer in PEERS:
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", peer]
        if subprocess.run(install, check=False).returncode != 0:
            print(f"{peer} cannot be installed here; the benchmarks leave it out", file=sys.stderr)
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.check_output([str(python), "-c", query], text=True).strip()
    behind = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    lines = [f"import site; site.addsitedir({place!r})" for place in behind]
    Path(own, "separatrix_bench.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done.write_text(sys.prefix, encoding="utf-8")
    return python


def _folder() -> Path:
    """Return where the environment of this version of Python is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "separatrix", f"bench-{sys.version_info.major}.{sys.version_info.minor}")
