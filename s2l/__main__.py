"""``python -m s2l`` is ``s2l``."""

from s2l.cli import main

if __name__ == "__main__":
    main()
