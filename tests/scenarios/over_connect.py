"""Runs scenarios of this folder over a Spark Connect server and prints the differences of each as JSON."""

import json
import sys
from pathlib import Path

from dobonomodo.engine import open_session
from dobonomodo.model import Definitions
from dobonomodo.scenarios import find_scenarios, run_suite


def main(url: str, names: frozenset[str]) -> None:
    folder = Path(__file__).parent
    found, _ = find_scenarios([folder], root=folder)
    session = open_session(remote=url)
    results = run_suite([each for each in found if each.name in names], lambda: session, definitions=Definitions())
    sys.stdout.write(json.dumps({result.name: result.differences for result in results}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], frozenset(json.load(sys.stdin)))
