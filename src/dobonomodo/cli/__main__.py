"""`python -m dobonomodo.cli` is `dobo`."""

from dobonomodo.cli.main import main

if __name__ == "__main__":
    main()
