"""`run`: sweeps in the background, as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from logging import Logger
from pathlib import Path
from typing import Any

from keepfor.cli import codes
from keepfor.cli.documents import Answer, error, of_report
from keepfor.cli.invocation import Invocation
from keepfor.cli.loglines import written
from keepfor.config import traps
from keepfor.errors import AlreadyRunning, ConfigError, StoreBusy
from keepfor.history.coming import lock_of
from keepfor.items import Report
from keepfor.stores import files
from keepfor.sweeper import Stopped, Sweeper
from keepfor.sweeper.keeping import outcome

_ENDING = (signal.SIGTERM, signal.SIGINT)


def run(
    invocation: Invocation,
    wanted: Sequence[str],
    *,
    once: bool = False,
    port: int | None = None,
    host: str = "127.0.0.1",
) -> Answer:
    """Sweep stores again and again, until a signal ends it.

    Parameters:
        wanted: the stores; all if none is named.
        once: whether to sweep each of them once, and end.
        port: where metrics are served, if anywhere; 0 for any port that is free.
        host: the address that they are served at.

    Returns:
        The document has `stores`: for each, what `apply` says of its last sweep, where `outcome`
        may be `stopped` too. A store that was never swept to the end has `store`, `outcome` and
        `error` only.

    Raises:
        AlreadyRunning: when another process does this for one of the stores; with `once`, that
            store alone is left out.
        CannotServe: when the metrics cannot be served there.
    """
    if once and port is not None:
        raise ConfigError(
            where="--metrics-port",
            what="with --once there is nobody left to answer.",
            fix="Leave one of the two out.",
        )
    names = invocation.names(wanted)
    with ExitStack() as stack:
        busy = _claimed(invocation, names, stack)
        if busy and not once:
            raise next(iter(busy.values()))
        free = [name for name in names if name not in busy]
        sweeper = Sweeper(invocation.config, stores=free, clock=invocation.clock)
        log = stack.enter_context(written(invocation.out))
        facts = {"once": True} if once else _served(sweeper, host, port, stack)
        _say(log, "start", stores=",".join(names), **facts)
        for name, found in traps(invocation.config).items():
            if name in names:
                for trap in found:
                    message = f"{trap.what} {trap.fix}"
                    _say(log, "trap", store=name, rule=trap.rule, message=message)
        for name, problem in busy.items():
            _say(log, "failure", store=name, error=type(problem).__name__, message=str(problem))
        told = asyncio.run(_swept(sweeper, once, log))
        _say(log, "stop")
    results: dict[str, Report | Exception] = {**sweeper.last_report, **busy}
    documents = [_document(name, results.get(name)) for name in names]
    code = codes.DONE
    if told is signal.SIGINT:
        code = codes.INTERRUPTED
    elif once:
        code = codes.gravest(_code(results.get(name)) for name in names)
    return Answer(verb="run", facts={"stores": documents}, exit_code=code)


async def _swept(sweeper: Sweeper, once: bool, log: Logger) -> signal.Signals | None:
    """Sweep until it is done or a signal comes; the signal, if one did."""
    with _told(log) as told:
        if not once:
            async with sweeper:
                return await told
        sweeps = asyncio.ensure_future(sweeper.sweep_now())
        either: list[asyncio.Future[Any]] = [sweeps, told]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        sweeps.cancel()
        await asyncio.wait([sweeps])
        await sweeper.stop()
        return told.result() if told.done() else None


@contextmanager
def _told(log: Logger) -> Iterator[asyncio.Future[signal.Signals]]:
    """What a signal sets that asks for an end. The second one ends the process at once."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[signal.Signals] = loop.create_future()
    before = {which: signal.getsignal(which) for which in _ENDING}

    def tell(which: signal.Signals) -> None:
        for each in _ENDING:
            loop.remove_signal_handler(each)
            # A store is whole wherever it is left, so a sweep that hangs may be killed.
            signal.signal(each, signal.SIG_DFL)
        _say(log, "stopping", signal=which.name)
        told.set_result(which)

    for which in _ENDING:
        loop.add_signal_handler(which, tell, which)
    try:
        yield told
    finally:
        for which, handler in before.items():
            loop.remove_signal_handler(which)
            signal.signal(which, handler)


def _claimed(
    invocation: Invocation, names: Sequence[str], stack: ExitStack
) -> dict[str, AlreadyRunning]:
    """Lock each store against another process of this kind; those that one has, by name."""
    ours = set[Path]()
    busy = {}
    for name in names:
        lock = lock_of(invocation.config.state_dir, invocation.store(name).target)
        if lock in ours:
            continue
        try:
            # There must be a file to lock.
            files.close(files.open_for_append(str(lock)))
            stack.enter_context(files.locked(str(lock)))
            lock.write_text(f"{os.getpid()}\n")
            ours.add(lock)
        except StoreBusy:
            process = lock.read_text().strip()
            who = f" (process {process})" if process else ""
            busy[name] = AlreadyRunning(store=name, who=who)
        except OSError as problem:
            raise files.explained(problem, str(lock)) from problem
    return busy


def _served(sweeper: Sweeper, host: str, port: int | None, stack: ExitStack) -> dict[str, str]:
    if port is None:
        return {}
    from keepfor.sweeper.metrics import serve

    address, close = serve(sweeper.registry, host, port)
    stack.callback(close)
    return {"metrics": address}


def _document(name: str, result: Report | Exception | None) -> dict[str, Any]:
    match result:
        case Report():
            return {**of_report(result), "outcome": outcome(result), "error": None}
        case None | Stopped():
            problem: Exception = result or Stopped(store=name)
            return {"store": name, "outcome": "stopped", "error": error(problem)}
    return {"store": name, "outcome": "failed", "error": error(result)}


def _code(result: Report | Exception | None) -> int:
    match result:
        case Report():
            return codes.PARTLY if result.skipped or result.failed else codes.DONE
        case None:
            return codes.PARTLY
    return codes.of(result)


def _say(log: Logger, event: str, **facts: object) -> None:
    level = "warning" if event in ("failure", "trap") else "info"
    getattr(log, level)(event, extra={"facts": {"event": event, **facts}})
