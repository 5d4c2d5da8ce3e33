"""Sizes in bytes, strictly parsed and written back: `25MiB` counts in 2^20, `25MB` in 10^6.

The write site takes sizes too, so this imports no more than `times` does.
"""

from __future__ import annotations

from keepfor.errors import BadSize

#: Bytes in a unit, the largest first.
UNITS = {
    "TiB": 2**40,
    "TB": 10**12,
    "GiB": 2**30,
    "GB": 10**9,
    "MiB": 2**20,
    "MB": 10**6,
    "KiB": 2**10,
    "KB": 10**3,
    "B": 1,
}
#: No file system holds a larger file.
LARGEST = 2**63 - 1

#: Longer numbers are not even read; Python refuses those of more than 4,300 digits.
_MOST_DIGITS = 19

_EXAMPLE = '"25MiB" (or "25MB" for powers of 1,000)'
_TOO_LARGE = {
    "why": "no file can be that large",
    "fix": "a smaller one, or leave it out for no ceiling",
}


def parse_size(value: object) -> int:
    """A size given by a program.

    Parameters:
        value: a number of bytes, or text as `parse_size_text` takes it.

    Returns:
        The size in bytes.

    Raises:
        BadSize: when it is neither, or not above zero; it says what to write.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked(value, value)
    return parse_size_text(value)


def parse_size_text(value: object) -> int:
    """A size as written in a policy, where a bare number would leave its unit to be guessed.

    Parameters:
        value: `25MiB`, `10KiB`, `1GiB` (powers of 1,024), or `25MB` (powers of 1,000).

    Returns:
        The size in bytes.

    Raises:
        BadSize: for anything else, bare numbers, zero and negatives included; it says what to
            write.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        size = _checked(value, value)
        raise BadSize(value=value, **_without_unit(size))
    if not isinstance(value, str):
        raise BadSize(value=value, why="it is not a number with a unit", fix=_EXAMPLE)
    unit = next((unit for unit in UNITS if value.endswith(unit)), "")
    number = value.removesuffix(unit)
    if not unit or not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise BadSize(value=_brief(value), **_advice(value))
    return _checked(int(number) * UNITS[unit], value)


def format_size(size: int) -> str:
    """The size as a policy would write it, exactly: `25MiB`, `25MB`, `1234567B`."""
    for unit, each in UNITS.items():
        if size >= each and size % each == 0:
            return f"{size // each}{unit}"
    return f"{size}B"


def _checked(size: int, value: int | str) -> int:
    if size > LARGEST:
        raise BadSize(value=_brief(value), **_TOO_LARGE)
    if size < 0:
        raise BadSize(value=_brief(value), why="it is negative", fix=_EXAMPLE)
    if size == 0:
        raise BadSize(
            value=value, why="nothing would be kept", fix=f"a size above zero: {_EXAMPLE}"
        )
    return size


def _advice(text: str) -> dict[str, str]:
    import re

    shape = r"\s*([+-]?)(\d*)((?:\.\d*)?)\s*([A-Za-z]*)\s*"
    loose = re.fullmatch(shape, text, re.ASCII)
    if loose is None or not (loose[2] or loose[3]):
        return {"why": "it is not a number with a unit", "fix": _EXAMPLE}
    sign, number, fraction, unit = loose.groups()
    if sign == "-":
        return {"why": "it is negative", "fix": _EXAMPLE}
    if fraction:
        return {"why": "fractions are not understood", "fix": '"1536MiB" for one and a half GiB'}
    if len(number) > _MOST_DIGITS:
        return _TOO_LARGE
    if not unit:
        return _without_unit(int(number))
    if unit in UNITS:
        return {"why": "there is more than digits and a unit", "fix": f'"{number}{unit}"'}
    scale, rest = unit[0].upper(), unit[1:].lower()
    fix = _EXAMPLE
    if scale in "KMGT" and rest in ("", "b"):
        fix = f'"{number}{scale}iB" for powers of 1,024, or "{number}{scale}B" for powers of 1,000'
    elif scale in "KMGT" and rest == "ib":
        fix = f'"{number}{scale}iB"'
    return {"why": f"{unit} is not a unit", "fix": fix}


def _without_unit(number: int) -> dict[str, str]:
    # A small number most likely meant MiB, a large one bytes.
    meant = f"{number or 25}MiB" if number < 1000 else format_size(number)
    return {"why": "it has no unit", "fix": f'"{meant}"'}


def _brief(value: int | str) -> str:
    # Python refuses to print an integer of more than 4,300 digits.
    if isinstance(value, int):
        return str(value) if abs(value) <= LARGEST else "a huge number"
    return value if len(value) <= 40 else f"{value[:37]}..."
