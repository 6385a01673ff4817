"""The pages of the book's atlas, from what `scripts/atlas` measured: one table, and a page per product."""

from pathlib import Path

BOOK = Path("docs/book/src")
# Where the programs are that show without Isolario what is broken, NAME_FINDING.rs, and how they are run.
PROGRAMS = {
    "engines/examples": "In `engines`, `cargo run --release --features {name} --example {program}`:",
    "crates/db/examples": "`cargo run --release -p isolario-db --example {program} URL URL URL`:",
}
NAMES = {
    "canopydb": "Canopydb",
    "derby": "Apache Derby",
    "duckdb": "DuckDB",
    "etcd": "etcd",
    "firebird": "Firebird",
    "fjall": "Fjall",
    "galera": "Galera",
    "h2": "H2",
    "hsqldb": "HSQLDB, two-phase locking",
    "hsqldb-mvcc": "HSQLDB, MVCC",
    "mace": "Mace",
    "mariadb": "MariaDB",
    "noxu": "Noxu DB",
    "persy": "Persy",
    "postgres": "PostgreSQL",
    "redb": "redb",
    "redis": "Redis",
    "rocksdb": "RocksDB",
    "slatedb": "SlateDB",
    "sled": "sled",
    "sqlite": "SQLite",
    "stoolap": "Stoolap",
    "surrealkv": "SurrealKV",
    "surrealmx": "SurrealMX",
    "turso": "Turso",
}

# What a run says of a claim that comes from a driver program, or from the file of an embedded store.
ELSEWHERE = (["what the driver says"], ["what its author says"])
# What a store documents of commits that nobody told it to keep.
DURABILITY = {
    "redb": """There, commits are `Durability::Immediate`. Other runs take `Durability::None`, "not \
persisted to disk unless followed by a commit with `Durability::Immediate`", as its documentation says: after a kill, \
not even the table is left, which is what it promises.""",
    "sled": """There, transactions call `flush`, of which its documentation says: "If this succeeds, it is guaranteed that \
all previous writes will be recovered if the system crashes". Other runs do not. Then a kill costs what was committed \
since sled last wrote by itself, every 500 ms: it "automatically tries to sync all data to disk several times per second in the \
background", says its README, and `flush` is for who requires "high durability guarantees". So a commit that is \
missing there is no violation.""",
}
# Where the book says what random SQL finds and no history shows.
SECTIONS = {"OldVersionBesideOwnWrite": "old-versions", "WrongResult": "wrong-results"}
# Less than this tells nothing.
ENOUGH = 500

INTRODUCTION = """# The atlas

What databases and embedded stores claim, and what was measured. `scripts/atlas` writes these pages: at each setting it
runs each workload for a moment, checks every level, and then [hunts](guide/running.md#hunting) for a violation of
the claim.

- *Kept* means that nothing was found in that time with those transactions, which is no proof that there is nothing.
- *Broken* names the anomalies of the shortest counterexample. `isolario verify` re-checks the proof, and the same run is
  tried again with its seed: the page of the product says what came of both.
- *Broken earlier* is what the same version was found to do before, and what did not show this time: that a bug does not
  show does not mean that it is gone.
- *Failed* is a store that panics, hangs or cannot go on, or a run that ended early for another reason.
- *Too few* is what was measured with less than 500 transactions: that tells nothing.
- The levels measured are the strongest that every run of the mini workload satisfied. A store that shows more than it
  claims does not promise it.
- *Known* bugs that a run of a moment seldom meets are on the page of the product, each with a script for two terminals:
  PostgreSQL, MariaDB and DuckDB have some.
- Stores with files are killed and opened again at their default setting, with commits that are to be durable. What
  they had acknowledged and [lost](guide/faults.md#what-was-acknowledged-must-be-there) is on their page.

Claims are quoted [with their sources](guide/claims.md); those of databases that a [driver program](guide/drivers.md)
speaks to are there, too. `isolario-engines` is
[Isolario with embedded stores](guide/engines.md#stores-of-others); `URL` is what `scripts/servers start` prints.
"""


def write_pages(measured):
    folder = BOOK / "atlas"
    folder.mkdir(exist_ok=True)
    for page in folder.glob("*.md"):
        page.unlink()
    names = sorted(measured, key=lambda name: NAMES[name].lower())
    for name in names:
        (folder / f"{name}.md").write_text(product_page(name, measured[name]))
    (BOOK / "atlas.md").write_text(overview(measured, names))
    list_pages(names)


def list_pages(names):
    """The atlas in the book's table of contents."""
    summary = BOOK / "SUMMARY.md"
    lines = [line for line in summary.read_text().splitlines() if "(atlas" not in line]
    at = next(n for n, line in enumerate(lines) if "(guide/engines.md)" in line) + 1
    pages = [f"  - [{NAMES[name]}](atlas/{name}.md)" for name in names]
    lines[at:at] = ["- [The atlas](atlas.md)", *pages]
    summary.write_text("\n".join(lines) + "\n")


def overview(measured, names):
    rows = []
    for name in names:
        for setting, found in measured[name]["settings"].items():
            rows.append((rank(found), row(name, setting, found)))
    # What is broken comes first; what is equal stays in the order of names.
    rows.sort(key=lambda row: row[0])
    head = ["product", "version", "setting", "claim", "measured", "first violation", "to repeat"]
    dates = sorted({measured[name]["date"] for name in names})
    machines = sorted({measured[name]["machine"] for name in names})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(line for _, line in rows)]
    told = f"Measured {when} on {'; '.join(machines)}."
    return "\n".join([INTRODUCTION, told, "", *table, ""])


def rank(found):
    verdict = judgement(found)
    return next((n for n, word in enumerate(["**broken**", "**failed**"]) if word in verdict), 2)


def row(name, setting, found):
    hunt = found["hunt"]
    when, broken = first_finding(found) or ("", None)
    command = broken["command"] if broken else hunt["command"]
    cells = [
        f"[{NAMES[name]}](atlas/{name}.md)",
        version(found),
        setting,
        ", ".join(claims(found)) or "nothing",
        judgement(found),
        when,
        f"`{command}`",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def first_finding(found):
    """When the claim was first seen to be broken, and what a run with its seed shows; by the hunt, or else by a workload."""
    hunt = found["hunt"]
    if hunt.get("found"):
        return f"{hunt['seconds']} s", hunt["found"]
    for run in found["runs"]:
        if run.get("found", {}).get("command"):
            return f"{run['seconds']} s", run["found"]
    if found.get("earlier"):
        return f"on {found['earlier']['date']}", found["earlier"]
    return None


def version(found):
    told = [found["hunt"].get("version"), *(run.get("version") for run in found["runs"])]
    text = next((text for text in told if text), "")
    number = next((word for word in text.split(" ") if word[:1].isdigit()), text)
    return number.split("-")[0]


def claims(found):
    return list(dict.fromkeys(level for run in found["runs"] for level in run.get("claim", [])))


def judgement(found):
    hunt = found["hunt"]
    broken = [run for run in found["runs"] if run.get("broken")]
    failures = [run["failure"] for run in found["runs"] if run.get("failure")]
    if hunt.get("found"):
        anomalies = hunt["found"]["anomalies"]
        if anomalies:
            return "**broken**: " + ", ".join(anomalies)
        return "**failed**: " + (hunt["found"].get("stopped_because") or "")
    if broken:
        return "**broken**: " + ", ".join(broken[0]["broken"])
    if found.get("earlier"):
        return "**broken** earlier: " + ", ".join(found["earlier"]["anomalies"])
    if "failure" in hunt and claims(found):
        return "**failed**: " + hunt["failure"]
    if failures:
        return "**failed**: " + failures[0]
    committed = hunt.get("committed", 0) + sum(run.get("committed", 0) for run in found["runs"])
    if committed < ENOUGH:
        return "too few"
    mini = next((run for run in found["runs"] if run["workload"] == "mini"), {})
    levels = ", ".join(mini.get("strongest", []))
    word = "kept" if claims(found) else "nothing is claimed"
    return f"{word}; {levels}" if levels else word


def product_page(name, product):
    took = [found["took"] for found in product["settings"].values() if "took" in found]
    slowest = f"; no setting took longer than {max(took)} s" if took else ""
    parts = [f"# {NAMES[name]}", f"Measured {product['date']} on {product['machine']}{slowest}."]
    for setting, found in product["settings"].items():
        parts += setting_part(setting, found)
    if "crashes" in product:
        parts += [*crashes(product["crashes"]), *([DURABILITY[name]] if name in DURABILITY else [])]
    return "\n\n".join([*parts, *known(name), *programs(name)]) + "\n"


def known(name):
    """What was found by other ways than a measurement, each with a script for two terminals."""
    page = BOOK.parent / "known" / f"{name}.md"
    return [page.read_text().strip()] if page.exists() else []


def programs(name):
    """The programs that show what is broken without Isolario."""
    parts = []
    for folder, words in PROGRAMS.items():
        for program in sorted(Path(folder).glob(f"{name}_*.rs")):
            source = f"{{{{#include ../../../../{program}}}}}"
            parts += [words.format(name=name, program=program.stem), f"```rust,ignore\n{source}\n```"]
    return ["## Without Isolario", *parts] if parts else []


def setting_part(setting, found):
    hunt = found["hunt"]
    words = list(dict.fromkeys(run["claim_words"] for run in found["runs"] if run.get("claim")))
    parts = [f"## {setting}", f"Version {version(found)}: {judgement(found)}."]
    if words in ELSEWHERE:
        parts.append("What it claims is [quoted with its source](../guide/claims.md).")
    elif words:
        parts.append("What it claims: " + "; ".join(words) + ".")
    parts.append(workloads(found["runs"]))
    if "failure" in hunt:
        parts.append(f"The hunt failed: {hunt['failure']}")
    else:
        committed = f"{hunt['committed']:,}"
        phases = "1 phase" if hunt["phases"] == 1 else f"{hunt['phases']} phases"
        what = "found a violation" if hunt["found"] else "found nothing"
        parts.append(f"A hunt {what} in {hunt['seconds']} s, {phases} and {committed} transactions.")
    parts.append(f"```sh\n{hunt['command']}\n```")
    if "sql" in found:
        parts += random_sql(found["sql"])
    _, first = first_finding(found) or (None, None)
    return [*parts, *finding(first)] if first else parts


def random_sql(found):
    """What rounds of random SQL came to, and the smallest scripts of what no history shows."""
    link, command = "[random SQL](../guide/relational.md)", f"```sh\n{found['command']}\n```"
    if "failure" in found:
        return [f"With {link}, it failed: {found['failure']}", command]
    what = f"{found['rounds']:,} rounds of {link} with {found['committed']:,} transactions"
    if found["anomalies"]:
        anomalies = ", ".join(found["anomalies"])
        parts = [f"In {what}, these showed, which Adya's level of that name forbids: {anomalies}."]
    else:
        parts = [f"In {what}, nothing showed that Adya's level of that name forbids."]
    if found["broken"]:
        parts.append(f"The claim was **broken** in {found['broken']:,} of these rounds.")
    parts.append(command)
    for kind, script in found.get("scripts", {}).items():
        link = f"[{kind}](../guide/relational.md#{SECTIONS[kind]})"
        parts += [f"The smallest script that shows {link}:", f"```sql\n{script.strip()}\n```"]
    return parts


def workloads(runs):
    head = "| workload | claim | strongest levels that hold | anomalies of stronger levels | committed | overlapped |"
    lines = [head, "|---|---|---|---|---|---|"]
    for run in runs:
        if "failure" in run:
            lines.append(f"| {run['workload']} | | failed: {run['failure']} | | | |")
            continue
        cells = [
            run["workload"],
            ", ".join(run["claim"]),
            ", ".join(run["strongest"]),
            ", ".join(run["anomalies"]),
            f"{run['committed']:,}",
            "" if run["overlapped"] is None else f"{run['overlapped']:,}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def crashes(found):
    """What was left of a store whose process was killed."""
    if "failure" in found:
        return [f"## Crashes\n\nKilled and opened again: **failed**: {found['failure']}"]
    lost = "nothing that was acknowledged is missing" if not found["lost"] else f"**{found['lost']:,} lost commits**"
    phases = "once" if found["phases"] == 1 else f"{found['phases']} times"
    told = f"Killed {phases} with {found['committed']:,} transactions, and opened again: {lost}."
    return ["## Crashes", told]


def finding(found):
    anomalies = ", ".join(found["anomalies"])
    parts = []
    if found.get("date"):
        parts.append(f"This is what the same version did on {found['date']}. This time it did not show.")
    if found.get("stopped_because"):
        parts.append(f"The run ended early: {found['stopped_because']}.")
    verified = "`isolario verify` accepts it" if found.get("verified") else "it is not verified"
    if found.get("shrunk"):
        told = f"The smallest part of that history ({found['workload']}) that shows {anomalies}; {verified}:"
        parts += [told, f"```text\n{found['shrunk'].strip()}\n```"]
    elif found.get("verified"):
        parts.append(f"It shows {anomalies}, and was not shrunk in the time that there was; {verified}.")
    repeated = found.get("repeated")
    if "repeated" not in found:
        told = "The command that ran it:"
    elif repeated is None:
        told = "Run again with its seed, it did not show in five attempts:"
    else:
        told = f"Run again with its seed, it shows at attempt {repeated}:"
    return [*parts, told, f"```sh\n{found['command']}\n```"]
