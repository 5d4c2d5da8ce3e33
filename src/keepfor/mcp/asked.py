"""What each tool takes, checked strictly: an argument that is not understood is told of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

#: The longest name that a file system gives a file, with all its folders.
_LONGEST_ID = 4096
#: How many items, runs or recalls one answer may hold, and how many ids one call may bring.
MOST = 200

Name = Annotated[
    str,
    Field(
        max_length=200, description="The store's name in keepfor.yaml; retention_status lists them."
    ),
]
Names = Annotated[
    list[Name],
    Field(max_length=MOST, description="The stores' names; all stores if none is given."),
]
Id = Annotated[str, Field(min_length=1, max_length=_LONGEST_ID)]
Digest = Annotated[
    str,
    Field(
        max_length=_LONGEST_ID,
        description="The digest of a plan, as retention_plan gave it out since this server began.",
    ),
]


class Asked(BaseModel):
    """What all calls have in common."""

    model_config = ConfigDict(extra="forbid")


class Stores(Asked):
    """Which stores it is about."""

    stores: Names = []


class Planned(Asked):
    """Which stores a plan is made for, and how much of it is told."""

    stores: Names = []
    limit: Annotated[
        int,
        Field(ge=1, le=MOST, description="How many single items of each store are told at most."),
    ] = 50


class OneStore(Asked):
    """Which store it is about."""

    store: Name


class OneItem(Asked):
    """Which item of which store it is about."""

    store: Name
    id: Annotated[Id, Field(description="The note, session or run, as retention_plan names it.")]


class OneNote(Asked):
    """Which note to trace, in which ledger of recalls."""

    store: Name
    slug: Annotated[Id, Field(description="The note's slug, as the ledger has it.")]
    limit: Annotated[int, Field(ge=1, le=MOST, description="How many recalls at most.")] = 3


class NewestRuns(Asked):
    """How many runs, of which directory."""

    store: Name
    limit: Annotated[int, Field(ge=1, le=MOST, description="How many runs at most.")] = 10


class Recalled(Asked):
    """What was recalled, of which store."""

    store: Name
    ids: Annotated[
        list[Id],
        Field(
            min_length=1,
            max_length=MOST,
            description="The notes or sessions that were recalled, as retention_plan names them.",
        ),
    ]


class OnePlan(Asked):
    """Which plan to carry out; nothing else can be said of it."""

    digest: Digest
