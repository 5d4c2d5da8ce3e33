"""`python -m keepfor` is `keepfor`."""

from __future__ import annotations

from keepfor.cli import main

if __name__ == "__main__":
    main()
