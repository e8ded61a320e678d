"""One line of the table, and the table as text and as a page of the documentation."""

from __future__ import annotations

import os
import platform
import zlib

HEADINGS = ("what", "files", "rewind", "CPU", "compared with", "CPU", "ratio", "wanted", "met")


class Row:
    """One measurement beside what it is compared with. `limit` is what was wanted of it."""

    def __init__(
        self,
        what: str,
        size: int,
        ours: float,
        unit: str,
        *,
        theirs: float | None = None,
        cpu: float | None = None,
        their_cpu: float | None = None,
        other: str = "",
        limit: float | None = None,
        at_least: float | None = None,
        wanted: str = "",
    ) -> None:
        self.what = what
        self.size = size
        self.ours = ours
        self.unit = unit
        self.theirs = theirs
        self.cpu = cpu
        self.their_cpu = their_cpu
        self.other = other
        self.limit = limit  # the most that `ours` may be
        self.at_least = at_least  # the least that theirs / ours may be
        self.wanted = wanted

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None where there is none."""
        if self.limit is not None:
            return self.ours <= self.limit
        if self.at_least is not None:
            assert self.theirs is not None
            return self.theirs / self.ours >= self.at_least
        return None

    def cells(self) -> tuple[str, ...]:
        ratio = ""
        if self.theirs:
            ratio = f"{self.ours / self.theirs:.2f}"
            if self.at_least is not None:
                ratio = f"{self.theirs / self.ours:.1f} x faster"
        other = f"{self.other}: {shown(self.theirs, self.unit)}" if self.theirs else self.other
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        size = f"{self.size:,}" if self.size else ""
        cpu, their_cpu = shown(self.cpu, "s"), shown(self.their_cpu, "s")
        ours = shown(self.ours, self.unit)
        return self.what, size, ours, cpu, other, their_cpu, ratio, self.wanted, met


def shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s":
        return f"{value * 1000:.1f} ms" if value < 10 else f"{value:.1f} s"
    if unit == "bytes":
        return f"{value / (1 << 20):.1f} MiB"
    return f"{value:.0f} {unit}"


def text(rows: list[Row]) -> str:
    """The table for a terminal."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def page(
    rows: list[Row], command: str, git: str, minutes: float, imports: str, load: list[float]
) -> str:
    """docs/benchmarks.md."""
    table = [
        "| " + " | ".join(cells) + " |"
        for cells in [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in rows)]
    ]
    missed = [row for row in rows if row.met is False]
    verdict = "All targets are met." if not missed else (
        f"{len(missed)} of {sum(row.met is not None for row in rows)} targets are missed."
    )
    return _PAGE.format(
        command=command, machine=machine(), git=git, python=platform.python_version(),
        system=system(), zlib=zlib.ZLIB_RUNTIME_VERSION, minutes=minutes,
        table="\n".join(table), verdict=verdict, imports=imports,
        load=f"{min(load):.1f} to {max(load):.1f}",
    )


def system() -> str:
    return f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"


def machine() -> str:
    model = ""
    try:
        with open("/proc/cpuinfo") as file:
            models = [line for line in file if line.startswith("model name")]
            model = models[0].partition(":")[2].strip() if models else ""
    except OSError:
        model = platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} x {model or platform.machine()}, {memory:.0f} GiB"


_PAGE = """\
# Benchmarks

This page is written by `{command}`; do not edit it.

Every ratio was measured in one run, the programs in turn, and is a ratio of their best wall times,
which other work on the machine disturbs least; *CPU* is the median of processor time, children
included. Trees are generated: nested folders with about 12 files each, source-like text (median
2.4 KB), a `.gitignore`, and a quarter as many files again in an ignored `node_modules`. All of it
is committed and packed, as after a clone. *capture* is everything that a checkpoint takes, fsync
and ledger record included, in a Python process that is already running; *process* is `rewind` from
its start to its end. *fresh index* is what several older tools do for a checkpoint: `git add -A`
and `git write-tree` with a temporary index. *tar* is what others do: a `tar.gz` without
`node_modules`. Nothing is kept in memory between two captures, and the disk cache is warm for all.

Machine: {machine}; {system}; Python {python}; {git}; zlib {zlib}. The run took {minutes:.0f}
minutes; the machine was shared, its load {load}.

{table}

{verdict}

## Start-up

What `rewind save` imports, the most costly first (milliseconds, by `python -X importtime`):

{imports}
"""
