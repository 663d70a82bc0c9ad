"""Results on disk: a file for each tier and family, written again after every part, merged when shown."""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.contest import Row

FOLDER = Path("benchmarks/results")
_VERDICTS = "verdicts.json"


class Kept:
    """The results of one family in one folder. What is finished stays, whatever happens to the run."""

    def __init__(self, folder: Path, tier: str, family: str, machine: dict[str, str]) -> None:
        self.path = folder / f"{tier}-{family}.json"
        self._content: dict[str, Any] = {"tier": tier, "family": family, "machine": machine, "items": {}}
        if self.path.exists():
            self._content["items"] = json.loads(self.path.read_text(encoding="utf-8"))["items"]
        self._machine = machine

    def has(self, item: str) -> bool:
        return item in self._content["items"]

    def add(self, item: str, rows: list[Row], seconds: float) -> None:
        self._content["items"][item] = {
            "rows": rows,
            "took": round(seconds, 2),
            "when": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
            "revision": self._machine["revision"],
        }
        write(self.path, self._content)


def write(path: Path, content: Any) -> None:
    """Write JSON, all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def load(paths: Iterable[Path]) -> dict[str, Any]:
    """Results of files and folders as one: rows by family, the latest of each part, and the machines."""
    files: list[Path] = []
    for path in paths:
        files += sorted(path.glob("*.json")) if path.is_dir() else [path] if path.exists() else []
    items: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    machines: list[dict[str, str]] = []
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        if file.name == _VERDICTS or "items" not in content:
            continue
        if content["machine"] not in machines:
            machines.append(content["machine"])
        for name, item in content["items"].items():
            key = content["family"], name
            if key not in items or items[key][1]["when"] < item["when"]:
                items[key] = content["tier"], item
    families: dict[str, list[Row]] = {}
    for (family, _), (tier, item) in items.items():
        families.setdefault(family, []).extend({**row, "tier": tier} for row in item["rows"])
    machines.sort(key=lambda machine: machine.get("date", ""))
    return {
        "machine": machines[-1] if machines else {},
        "machines": machines,
        "families": families,
        "revisions": sorted({item["revision"] for _, item in items.values()}),
    }


def write_verdicts(folder: Path, machine: dict[str, str], judged: list[dict[str, Any]]) -> Path:
    write(folder / _VERDICTS, {"machine": machine, "targets": judged})
    return folder / _VERDICTS


def read_verdicts(path: Path) -> dict[tuple[str, str], str]:
    """Verdict of each target and case of a finished run."""
    file = path / _VERDICTS if path.is_dir() else path
    targets = json.loads(file.read_text(encoding="utf-8"))["targets"]
    return {(each["target"], each["case"]): each["verdict"] for each in targets}
