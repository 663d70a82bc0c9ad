"""Films as one page for a browser that needs nothing from elsewhere: no network, no fonts, no other file."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import BytesIO
from typing import IO, Any

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 15px/1.4 sans-serif; margin: 1em; color: #222; background: #fff; }}
main {{ display: inline-block; }}
img {{ display: block; max-width: 100%; }}
input {{ display: block; width: 100%; }}
button, select {{ font: inherit; padding: 0.2em 0.8em; }}
output {{ margin-left: 1em; }}
</style>
</head>
<body>
<main>
<img id="picture" alt="{title}">
<input id="place" type="range" min="0" value="0" aria-label="frame">
<p>
<button id="first">first</button>
<button id="back">back</button>
<button id="play">play</button>
<button id="next">next</button>
<button id="last">last</button>
<select id="speed" aria-label="speed">
<option value="0.25">speed ¼</option><option value="0.5">speed ½</option>
<option value="1" selected>speed 1</option><option value="2">speed 2</option>
<option value="4">speed 4</option>
</select>
<output id="count"></output>
</p>
<p>Keys: ← and → step, space plays, Home and End go to the ends.</p>
</main>
<script>
const interval = {interval};
const frames = [
"""
_TAIL = """];
const find = (name) => document.getElementById(name);
let at = 0, timer = null;
find("place").max = frames.length - 1;
function show(number) {
  at = Math.min(Math.max(number, 0), frames.length - 1);
  find("picture").src = "data:image/png;base64," + frames[at];
  find("place").value = at;
  find("count").textContent = `frame ${at + 1} of ${frames.length}`;
}
function stop() {
  clearTimeout(timer);
  timer = null;
  find("play").textContent = "play";
}
function tick() {
  if (at === frames.length - 1) return stop();
  show(at + 1);
  timer = setTimeout(tick, interval / find("speed").value);
}
function play() {
  if (timer !== null) return stop();
  if (at === frames.length - 1) show(0);
  find("play").textContent = "pause";
  timer = setTimeout(tick, interval / find("speed").value);
}
const go = (number) => { stop(); show(number); };
const moves = {
  first: () => go(0), back: () => go(at - 1), play: play, next: () => go(at + 1),
  last: () => go(frames.length - 1),
};
for (const name in moves) find(name).onclick = moves[name];
find("place").oninput = (event) => go(Number(event.target.value));
const keys = {ArrowLeft: "back", ArrowRight: "next", " ": "play", Home: "first", End: "last"};
document.onkeydown = (event) => {
  if (!(event.key in keys) || event.target.tagName === "SELECT") return;
  event.preventDefault();
  moves[keys[event.key]]();
};
show(0);
</script>
</body>
</html>
"""


class PageWriter:
    """Write frames into a page one by one, with those methods of matplotlib's writers that are used here."""

    def __init__(self, title: str, fps: float) -> None:
        self.title, self.fps = title, fps
        self._figure: Any = None
        self._file: IO[str]

    @contextmanager
    def saving(self, figure: Any, path: str, dpi: float) -> Iterator[None]:
        """Open the page, and close it when all frames are there."""
        self._figure, self._dpi = figure, dpi
        with open(path, "w", encoding="utf-8", newline="\n") as self._file:
            self._file.write(_HEAD.format(title=escape(self.title), interval=1000 / self.fps))
            yield
            self._file.write(_TAIL)

    def grab_frame(self) -> None:
        """Add the figure as it is now."""
        content = BytesIO()
        self._figure.savefig(content, format="png", dpi=self._dpi)
        self._file.write(f'"{b64encode(content.getvalue()).decode("ascii")}",\n')
