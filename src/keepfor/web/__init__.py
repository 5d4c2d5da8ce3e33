"""The dashboard: what is told of retention as pages, and a plan applied where a person let it."""

from __future__ import annotations

from keepfor.web.serving import serve

__all__ = ["serve"]
