"""What history a store holds, what it will hold, and what became of what it holds no longer.

Pure: each part judges what stores, plans or the trail told. Only `standing` looks at a store.
"""

from __future__ import annotations

from keepfor.history.window import Window, window

__all__ = ["Window", "window"]
