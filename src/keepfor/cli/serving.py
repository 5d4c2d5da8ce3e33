"""`serve`: the dashboard, until a signal ends it."""

from __future__ import annotations

from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.errors import ConfigError

#: What the extra `serve` installs.
_MADE_WITH = ("jinja2", "markupsafe", "starlette", "uvicorn")


def serve(run: Invocation, *, host: str, port: int, allow_apply: bool = False) -> Answer:
    """Serve the dashboard. Where it is, and what lets a person apply, is said on stderr.

    A configuration that is not there, or cannot be read, does not keep it from starting: its first
    page says how to begin, or what is wrong, until that is mended.

    Parameters:
        host: the address to listen at.
        port: the port; 0 for any that is free.
        allow_apply: whether a person may apply what is shown.

    Raises:
        CannotListen: when the address is taken, or not to be had.
        ConfigError: when what it is made with is not installed.
    """
    try:
        from keepfor.web import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _MADE_WITH:
            raise
        what = "the dashboard is not installed here."
        fix = "Install keepfor with its extra: pip install '.[serve]' in a clone."
        raise ConfigError(where="serve", what=what, fix=fix) from None
    serve(
        run.named,
        run.environ,
        run.clock,
        host=host,
        port=port,
        allow_apply=allow_apply,
        say=run.out.say,
    )
    return Answer(verb="serve", facts={})
