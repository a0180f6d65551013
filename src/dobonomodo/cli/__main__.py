"""`python -m dobonomodo.cli` is `dobo`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `dobo`; Ctrl-C ends it without a traceback, even during imports."""
    try:
        from dobonomodo.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
