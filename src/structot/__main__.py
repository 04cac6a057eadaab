"""``python -m structot`` is the command ``structot``."""

from structot.cli import main

if __name__ == "__main__":
    main()
