#!/usr/bin/env python3
"""Measures `isolario check` on histories that differ from the usual ones in one respect.

    scripts/bench cliffs [--against PATH]... [--row NAME]... [--runs N] [--seed S] [--part F] [--huge]

Each row of the table differs from a base history in its generator options, and has targets. A target is a ratio of processor
times (user and system), so it means the same on every machine and hardly depends on what else the machine does:

    own     time per operation, relative to that of the base history at the same level
    growth  time at the largest size, relative to half of it
    peer    time relative to AWDIT's on the same history
    before  time relative to an earlier build of Isolario
    versus  time relative to another level, or to `check` without --follow, on the same history

`--against` names a program to compare with, and may be repeated: AWDIT or an earlier build of Isolario, recognised by "awdit" or
"isolario" in the name of the file. All programs take turns; figures are medians of three runs. A run that needs more than 120 s
of processor time is stopped there and not repeated. `--part 0.01` makes all histories smaller, to see that everything works.
ISOLARIO names the build to measure; otherwise, it is built.
"""

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ISOLARIO = os.environ.get("ISOLARIO", "target/release/isolario")
# Processor seconds after which a run is stopped.
LIMIT = 120
# Limit in seconds of the clock: a run that mostly sleeps needs little processor time.
WALL_LIMIT = 15 * LIMIT
BASE = {"workload": "general", "level": "serializable", "ops": 8, "keys": 10_000, "sessions": 50}
BASE_TXNS = 200_000
AWDIT_LEVELS = {"rc": "read-committed", "ra": "read-atomic", "cc": "causal"}
# Formats other than `.iso` have no times.
EXTENSIONS = {"iso": "iso", "dbcop": "bincode", "plume": "txt"}


def row(name, levels, txns, *, format="iso", follow=False, huge=False, targets, **shape):
    """A row: its levels, the number of transactions, the largest ratios that are allowed, and the options that differ."""
    return {
        "name": name,
        "shape": {option.replace("_", "-"): value for option, value in shape.items()},
        "levels": levels.split(),
        "txns": txns,
        "format": format,
        "follow": follow,
        "huge": huge,
        "targets": targets,
    }


ROWS = [
    row("1", "rc", 3200, level="read-committed", ops=1000, targets={"peer": 1, "growth": 2.4}),
    row("1b", "ra", 3200, level="read-committed", ops=1000, targets={"peer": 1, "growth": 2.6}),
    row("1c", "cc", 3200, level="causal", ops=1000, targets={"peer": 1, "growth": 2.6}),
    row("1c-ra", "rc ra cc", 3200, level="read-atomic", ops=1000, targets={"growth": 2.6}),
    # 1.6 million operations, in transactions of three lengths.
    row("2-200", "rc ra", 8000, level="causal", ops=200, targets={"peer": 1}),
    row("2-400", "rc ra", 4000, level="causal", ops=400, targets={"peer": 1}),
    row("2-800", "rc ra", 2000, level="causal", ops=800, targets={"peer": 1}),
    # Violated at ra and cc, satisfied at rc.
    row("3", "ra cc", 800_000, level="read-committed", distribution="zipf:2", targets={"peer": 1, "versus rc": 2}),
    row("4", "ra cc", 200_000, level="read-committed", sessions=2, targets={"peer": 1, "versus rc": 2}),
    row("5", "cc", 400_000, level="causal", sessions=10_000, targets={"peer": 1, "growth": 2.4}),
    row("6", "rc ra cc", 200_000, sessions=1000, targets={"own": 3}),
    row("6b", "ser si", 400_000, sessions=1000, targets={"own": 12, "growth": 2.4}),
    row("7", "ser", 80_000, sessions=20, keys=20, format="dbcop", targets={"own": 40, "growth": 2.6}),
    row("8", "si", 80_000, sessions=20, keys=20, targets={"versus ser": 1.2}),
    row("9", "si", 10_000, keys=100, read_ratio=0.05, targets={"versus ser": 1.2}),
    row("9-untimed", "si", 10_000, keys=100, read_ratio=0.05, format="dbcop", targets={"versus ser": 1.2}),
    row("10", "cc", 400_000, unknown_ratio=0.1, targets={"own": 6, "growth": 2.4}),
    row("10b", "ser si", 1_000_000, unknown_ratio=0.1, targets={"own": 8}),
    row("10c", "cc", 800_000, unknown_ratio=0.1, workload="append", targets={"own": 8}),
    row("11", "ser", 400_000, duplicate_ratio=0.1, targets={"own": 8, "growth": 2.4}),
    row("11b", "rc cc", 1_000_000, duplicate_ratio=0.1, targets={"own": 8, "growth": 2.4}),
    row(
        "12",
        "sser",
        10_000_000,
        workload="append",
        level="strict-serializable",
        huge=True,
        targets={"before": 0.5, "bytes": 300},
    ),
    row("13", "rc si", 1_000_000, level="snapshot-isolation", follow=True, targets={"versus check": 3}),
    row("13b", "rc", 1_000_000, unknown_ratio=0.01, follow=True, targets={"growth": 2.2}),
    row("13c", "rc ser", 400_000, sessions=1000, follow=True, targets={"versus check": 3}),
    row("16", "rc ra cc ser si sser", BASE_TXNS, keys=1_000_000, targets={"own": 1.8}),
]


class Run:
    """The median processor time of a command and the most memory that it had; whether it was stopped."""

    def __init__(self):
        self.times, self.bytes, self.stopped = [], 0, False

    @property
    def time(self):
        return LIMIT if self.stopped else statistics.median(self.times)

    def add(self, command):
        if self.stopped:
            return
        ended, usage = run_limited(command)
        self.bytes = max(self.bytes, usage.ru_maxrss * 1024)
        self.times.append(usage.ru_utime + usage.ru_stime)
        if ended in (-signal.SIGXCPU, -signal.SIGKILL):
            self.stopped = True
        elif ended not in (0, 1, 3):
            sys.exit(f"failed with {ended}: {' '.join(map(str, command))}")


def run_limited(command):
    """Runs a command within its limits: its exit code, negative for a signal, and what it used."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))

    devnull = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, preexec_fn=limit, **devnull)
    deadline = time.monotonic() + WALL_LIMIT
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            # Popen must not wait for it once more.
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.002)


class Histories:
    """Generated histories, each written once."""

    def __init__(self, directory, seed, part):
        self.directory, self.seed, self.part, self.written = Path(directory), seed, part, {}

    def txns(self, size):
        return max(2, round(size * self.part))

    def file(self, shape, size, format):
        key = (tuple(sorted(shape.items())), size, format)
        if key not in self.written:
            path = self.directory / f"{len(self.written)}.{EXTENSIONS[format]}"
            options = {**BASE, **shape, "txns": self.txns(size), "seed": self.seed}
            flags = [word for option, value in options.items() for word in (f"--{option}", str(value))]
            # A Plume text and an .iso file of one shape are one history.
            names = ["--format", format] if format == "plume" else []
            subprocess.run([ISOLARIO, "-q", "gen", "history", *flags, *names, "-o", path], check=True)
            self.written[key] = path
        return self.written[key]

    def clear(self):
        for path in self.written.values():
            path.unlink(missing_ok=True)
        self.written.clear()


def check(program, level, file, follow=False):
    return [program, "-q", "check", "--level", level, *(["--follow", "--until-idle", "0s"] if follow else []), file]


def measure(histories, programs, row, level, runs):
    """What a row takes at a level: this build, and whatever else its targets compare with."""
    shape, format, targets = row["shape"], row["format"], row["targets"]
    txns = row["txns"]
    file = histories.file(shape, txns, format)
    commands = {"ours": check(ISOLARIO, level, file, row["follow"])}
    if "growth" in targets:
        commands["half"] = check(ISOLARIO, level, histories.file(shape, txns // 2, format), row["follow"])
    if "own" in targets:
        commands["base"] = check(ISOLARIO, level, histories.file({}, BASE_TXNS, "iso"))
    if "before" in programs:
        commands["before"] = check(programs["before"], level, file, row["follow"])
    if "peer" in programs and level in AWDIT_LEVELS and "peer" in targets:
        text = histories.file(shape, txns, "plume")
        commands["peer"] = [programs["peer"], "check", "-i", AWDIT_LEVELS[level], text]
    for target in targets:
        if target.startswith("versus "):
            other = target.removeprefix("versus ")
            commands[target] = check(ISOLARIO, level if other == "check" else other, file)
    measured = {name: Run() for name in commands}
    # Programs take turns, so that a change of the machine's speed hits all of them.
    for _ in range(runs):
        for name, command in commands.items():
            measured[name].add(command)
    return measured


def ratios(row, measured, histories):
    """The ratios of a row, by name."""
    ours, txns = measured["ours"], histories.txns(row["txns"])
    # The clock of the system may not see a process that ends within a millisecond.
    found = {name: ours.time / max(run.time, 0.001) for name, run in measured.items()}
    named = {"bytes": ours.bytes / txns}
    if "half" in found:
        named["growth"] = found["half"]
    if "base" in found:
        ops = {**BASE, **row["shape"]}["ops"] * txns
        named["own"] = found["base"] * BASE["ops"] * histories.txns(BASE_TXNS) / ops
    return {**found, **named}


def words(row):
    """What differs from the base history, as options."""
    shape = " ".join(f"--{option} {value}" for option, value in row["shape"].items())
    return " ".join(filter(None, [shape, row["format"] if row["format"] != "iso" else "", "follow" if row["follow"] else ""]))


def print_row(row, txns, level, ours, found):
    cells = []
    for name, most in row["targets"].items():
        if name not in found:
            cells.append(f"{name} - ({most:g})")
        else:
            cells.append(f"{name} {found[name]:.2f} ({most:g}{', MISSED' if found[name] > most else ''})")
    if "before" in found and "before" not in row["targets"]:
        cells.append(f"before {found['before']:.2f}")
    spent = f"over {LIMIT} s" if ours.stopped else f"{ours.time:.2f} s"
    columns = [row["name"], words(row), f"{txns:,}", level, spent, "; ".join(cells)]
    print("| " + " | ".join(columns) + " |", flush=True)


def programs_of(paths):
    """AWDIT and an earlier build, by the names of their files."""
    programs = {}
    for path in paths:
        name = Path(path).name.lower()
        role = "peer" if "awdit" in name else "before" if "isolario" in name else None
        if role is None:
            sys.exit(f"{path}: neither awdit nor isolario is in its name")
        programs[role] = path
    return programs


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench cliffs", description=__doc__.split("\n")[0])
    parser.add_argument("--against", metavar="PATH", action="append", default=[], help="AWDIT or an earlier build of isolario")
    parser.add_argument("--row", metavar="NAME", action="append", help="only this row; may be repeated")
    parser.add_argument("--runs", type=int, default=3, help="runs of each command [3]")
    parser.add_argument("--seed", type=int, default=1, help="seed of all histories [1]")
    parser.add_argument("--part", type=float, default=1.0, help="make histories smaller by this factor [1]")
    parser.add_argument("--huge", action="store_true", help="rows with ten million transactions, too")
    options = parser.parse_args()
    programs = programs_of(options.against)
    known = [row["name"] for row in ROWS]
    for name in options.row or []:
        if name not in known:
            parser.error(f"there is no row {name}: expected {', '.join(known)}")
    if "ISOLARIO" not in os.environ:
        subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "isolario-cli"], check=True)
    print("| row | what differs | transactions | level | processor time | ratios (targets) |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        histories = Histories(directory, options.seed, options.part)
        for row in ROWS:
            if row["name"] in (options.row or known) and (options.huge or options.row or not row["huge"]):
                for level in row["levels"]:
                    measured = measure(histories, programs, row, level, options.runs)
                    txns = histories.txns(row["txns"])
                    print_row(row, txns, level, measured["ours"], ratios(row, measured, histories))
                histories.clear()


if __name__ == "__main__":
    main()
