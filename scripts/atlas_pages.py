"""The pages of the book's atlas, from what `scripts/atlas` measured: one table, and a page per product."""

from pathlib import Path

BOOK = Path("docs/book/src")
# Directories of the programs NAME_FINDING.rs, which show a violation without Isolario, and how to run them.
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
    "postgres-10-6": "PostgreSQL 10.6",
    "postgres-10-20": "PostgreSQL 10.20",
    "postgres-18-4": "PostgreSQL 18.4",
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

# How a run describes a claim that comes from a driver program, or from the file of an embedded store.
ELSEWHERE = (["what the driver says"], ["what its author says"])
# What a store documents about commits that are not requested to be durable.
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
# Sections of the book about findings of random SQL that are no anomalies of a history.
SECTIONS = {"OldVersionBesideOwnWrite": "old-versions", "WrongResult": "wrong-results"}
# With fewer committed transactions, nothing is concluded.
ENOUGH = 500

INTRODUCTION = """# The atlas

This is what databases and embedded stores claim, and how they behaved. `scripts/atlas` writes these pages: at each setting it
runs each workload briefly, checks every level, and then [hunts](guide/running.md#hunting) for a violation of
the claim. It also plays the [probes](guide/probing.md) on databases that are no embedded stores.

- *Kept* means that nothing was found in that time with those transactions, which is no proof that there is nothing.
- *Broken* names the anomalies of the shortest counterexample. `isolario verify` re-checks the proof, and the run is
  repeated with its seed: the page of the product has both results.
- *Broken by a probe* names the probes that broke the claim, where no run did.
- *Broken earlier* names a violation that the same version showed in an earlier measurement, but not in the last one. The bug may
  still be there.
- *Failed* is a store that panics, hangs or cannot go on, or a run that ended early for another reason.
- *Too few* means that less than 500 transactions committed, which is no evidence.
- The levels measured are the strongest that every run of the mini workload satisfied. A store that shows more than it
  claims does not promise it.
- *Known* bugs that short runs seldom find are on the page of the product, each with a script for two terminals:
  PostgreSQL, MariaDB and DuckDB have some.
- Stores with files are killed and opened again at their default setting, with durable commits. The page of a store says how many
  acknowledged commits it [lost](guide/faults.md#what-was-acknowledged-must-be-there).

Claims are quoted [with their sources](guide/claims.md); those of databases behind a [driver program](guide/drivers.md)
are there, too. `isolario-engines` is
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
        for setting, found in sorted(measured[name]["settings"].items()):
            rows.append((rank(found), row(name, setting, found)))
    # What is broken comes first; what is equal stays in the order of names.
    rows.sort(key=lambda row: row[0])
    head = ["product", "version", "setting", "claim", "measured", "first violation", "to repeat"]
    dates = sorted({measured[name]["date"] for name in names})
    machines = sorted({measured[name]["machine"] for name in names})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(line for _, line in rows)]
    measurement = f"Measured {when} on {'; '.join(machines)}."
    return "\n".join([INTRODUCTION, measurement, "", *table, ""])


def rank(found):
    verdict = judgement(found)
    return next((n for n, word in enumerate(["**broken**", "**failed**"]) if word in verdict), 2)


def row(name, setting, found):
    hunt = found["hunt"]
    when, broken = first_finding(found) or ("", None)
    probed = found["probes"]["command"] if broken_probes(found) else hunt["command"]
    command = broken["command"] if broken else probed
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
    versions = [found["hunt"].get("version"), *(run.get("version") for run in found["runs"])]
    text = next((text for text in versions if text), "")
    number = next((word for word in text.split(" ") if word[:1].isdigit()), text)
    return number.split("-")[0]


def claims(found):
    return list(dict.fromkeys(level for run in found["runs"] for level in run.get("claim", [])))


def broken_probes(found):
    return found.get("probes", {}).get("broken", [])


def judgement(found):
    """The cell of the overview: what broke the claim, or else what held."""
    words = measured_by_runs(found)
    if broken_probes(found) and not words.startswith("**"):
        words = "**broken** by a probe: " + ", ".join(broken_probes(found))
    scripts = found.get("sql", {}).get("scripts", {})
    return f"{words}; random SQL shows {', '.join(scripts)}" if scripts else words


def measured_by_runs(found):
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
    for setting, found in sorted(product["settings"].items()):
        parts += setting_part(setting, found)
    if "crashes" in product:
        parts += [*crashes(product["crashes"]), *([DURABILITY[name]] if name in DURABILITY else [])]
    return "\n\n".join([*parts, *known(name), *programs(name)]) + "\n"


def known(name):
    """The known bugs of a product, each with a script for two terminals."""
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
    if "probes" in found:
        parts += probes(found["probes"])
    _, first = first_finding(found) or (None, None)
    return [*parts, *finding(first)] if first else parts


def probes(found):
    """The probes that break the claim."""
    link, command = "[probes](../guide/probing.md)", f"```sh\n{found['command']}\n```"
    if "failure" in found:
        return [f"The {link} failed: {found['failure']}", command]
    if not found["broken"]:
        return [f"None of {found['played']} {link} broke the claim.", command]
    titles = ", ".join(f"*{title}*" for title in found["broken"])
    return [f"Of {found['played']} {link}, {len(found['broken'])} **broke** the claim: {titles}.", command]


def random_sql(found):
    """The results of random SQL, and the smallest scripts of findings that are no anomalies of a history."""
    link, command = "[random SQL](../guide/relational.md)", f"```sh\n{found['command']}\n```"
    if "failure" in found:
        return [f"With {link}, it failed: {found['failure']}", command]
    what = f"{found['rounds']:,} rounds of {link} with {found['committed']:,} transactions"
    if found["anomalies"]:
        anomalies = ", ".join(found["anomalies"])
        parts = [f"{what} showed these, which Adya's level of that name forbids: {anomalies}."]
    else:
        parts = [f"{what} showed nothing that Adya's level of that name forbids."]
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
    """The commits that a store lost when its process was killed."""
    if "failure" in found:
        return [f"## Crashes\n\nKilled and opened again: **failed**: {found['failure']}"]
    lost = "no acknowledged commit is missing" if not found["lost"] else f"**{found['lost']:,} lost commits**"
    phases = "once" if found["phases"] == 1 else f"{found['phases']} times"
    lost_line = f"Killed {phases} with {found['committed']:,} transactions, and opened again: {lost}."
    return ["## Crashes", lost_line]


def finding(found):
    anomalies = ", ".join(found["anomalies"])
    parts = []
    if found.get("date"):
        parts.append(f"The same version showed this on {found['date']}, but not in the last measurement.")
    if found.get("stopped_because"):
        parts.append(f"The run ended early: {found['stopped_because']}.")
    verified = "`isolario verify` accepts it" if found.get("verified") else "it is not verified"
    if found.get("shrunk"):
        introduction = f"The smallest part of that history ({found['workload']}) that shows {anomalies}; {verified}:"
        parts += [introduction, f"```text\n{found['shrunk'].strip()}\n```"]
    elif found.get("verified"):
        parts.append(f"It shows {anomalies}, and could not be shrunk in time; {verified}.")
    repeated = found.get("repeated")
    if "repeated" not in found:
        introduction = "The command that ran it:"
    elif repeated is None:
        introduction = "Run again with its seed, it did not show in five attempts:"
    else:
        introduction = f"Run again with its seed, it shows at attempt {repeated}:"
    return [*parts, introduction, f"```sh\n{found['command']}\n```"]
