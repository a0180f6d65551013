"""Makes the pictures of this folder: a terminal while `dobo` runs, and the report of a run.

Needs a terminal emulator and a browser: `pip install pyte`, and Chromium on the PATH. Run it where `dobo` is installed:

    .venv/bin/python docs/pictures/make.py [FOLDER]
"""

from __future__ import annotations

import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

from dobonomodo.cli.demo import MISTAKES
from dobonomodo.workspace import Workspace

DOBO = str(Path(sys.executable).with_name("dobo"))
COLORS = {"brown": "yellow", "brightbrown": "bright_yellow"}


def main(folder: Path, *, columns: int = 108, theme: TerminalTheme = DIMMED_MONOKAI) -> None:
    """Make all pictures."""
    os.environ["LOGNAME"] = "finance"
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "sales"
        subprocess.run([DOBO, "init", root, "--template", "sales"], check=True, capture_output=True)
        record(["run", "monthly-sales", "--period", "2026-01"], root, folder / "run.svg", columns=columns, theme=theme)
        take_report(root, folder / "report.png")
        project = root / "projects" / "monthly-sales.yaml"
        text = project.read_text(encoding="utf-8")
        for right, wrong in MISTAKES:
            text = text.replace(right, wrong, 1)
        project.write_text(text, encoding="utf-8")
        record(["validate"], root, folder / "validate.svg", columns=columns, theme=theme)


def record(arguments: list[str], root: Path, target: Path, *, columns: int, theme: TerminalTheme) -> None:
    """Run a command in a terminal of its own, and draw what is on the screen in the end."""
    screen = pyte.HistoryScreen(columns, 60, history=2_000, ratio=1)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(root)
        os.execve(DOBO, ["dobo", *arguments], {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)})
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:
            break
        if not data:
            break
        stream.feed(data)
    os.waitpid(process, 0)
    lines = [*screen.history.top, *(screen.buffer[number] for number in range(screen.cursor.y + 1))]
    console = Console(record=True, width=columns, file=open(os.devnull, "w"))  # noqa: SIM115  lives as long as the script
    console.print(Text("$ dobo " + " ".join(arguments), style="bold"))
    for line in lines:
        console.print(_draw(line, columns), soft_wrap=True)
    console.save_svg(str(target), title="dobo", theme=theme)


def _draw(line: Any, columns: int) -> Text:
    text = Text()
    for at in range(columns):
        cell = line[at]
        color = None if cell.fg == "default" else COLORS.get(cell.fg, cell.fg.replace("bright", "bright_"))
        if color and len(color) == 6 and all(char in "0123456789abcdef" for char in color):
            color = f"#{color}"
        text.append(cell.data, Style(color=color, bold=cell.bold, underline=cell.underscore))
    text.rstrip()
    return text


def take_report(root: Path, target: Path) -> None:
    """The report of the latest run, as a browser shows it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("no Chromium on the PATH")
    run = Workspace.open(root).runs(limit=1)[0]
    page = root / "report.html"
    subprocess.run([DOBO, "-C", root, "runs", "report", run.id, "--to", page], check=True, capture_output=True)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,1300"]
    subprocess.run([*command, f"--screenshot={target.resolve()}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
