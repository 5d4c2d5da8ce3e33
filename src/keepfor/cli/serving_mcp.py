"""`mcp`: answers an agent over stdin and stdout, until it has no more to ask."""

from __future__ import annotations

import signal

from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.cli.loglines import written
from keepfor.errors import ConfigError, KeepforError


def mcp(run: Invocation, *, allow_apply: bool = False) -> Answer:
    """Serve the tools of the MCP server. Stdout belongs to the protocol; what is said is on stderr.

    A configuration that cannot be read does not keep the server from starting: whoever started it
    sees its log seldom, and each tool says what is wrong, until it is mended.

    Parameters:
        allow_apply: whether there is a tool that deletes.

    Raises:
        ConfigError: when the SDK is not installed.
    """
    try:
        from keepfor.mcp import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        what, fix = (
            "the MCP SDK is not installed here.",
            "Install keepfor with its extra: pip install '.[mcp]' in a clone.",
        )
        raise ConfigError(where="mcp", what=what, fix=fix) from None
    with written(run.out) as log:
        try:
            facts: dict[str, object] = {"config": str(run.config.path)}
        except KeepforError as error:
            facts = {"error": type(error).__name__, "message": str(error)}
        event = {"event": "start", "allow_apply": allow_apply, **facts}
        log.info("start", extra={"facts": event})
        before = signal.getsignal(signal.SIGINT)
        # Python would wait for the next line on stdin. Every store is whole wherever it is left.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            serve(run.named, run.environ, run.clock, allow_apply=allow_apply)
        finally:
            signal.signal(signal.SIGINT, before)
    return Answer(verb="mcp", facts={})
