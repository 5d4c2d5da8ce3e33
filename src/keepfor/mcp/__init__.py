"""An MCP server: what an agent may ask about retention, and do where a person allowed it."""

from __future__ import annotations

from keepfor.mcp.serving import serve

__all__ = ["serve"]
