//! `isolario run`, against the embedded database and the simulated store.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use crate::sandbox::Sandbox;
#[cfg(unix)]
use crate::sandbox::signal;

/// One read in a hundred is wrong, however threads take turns.
const ALWAYS_WRONG: &str = "sim:rc?anomaly=thin-air-read";

/// The numbers in a run's record.
fn record(sandbox: &Sandbox, directory: &str) -> serde_json::Value {
    serde_json::from_str(&sandbox.read(&format!("{directory}/run.json"))).unwrap()
}

#[test]
fn a_run_leaves_everything_to_look_at_it_again() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["run", "--txns", "500", "--out", "out", "--seed", "7"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for expected in [
        "strict-serializable  satisfied",
        "committed   500 in",
        "latency     p50",
        "checked in",
        "overlapped another one",
        "kept its promise, strict serializability, in this run of 500 transactions.",
        "isolario run --db sqlite: --isolation serializable --workload mini",
        "--seed 7",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for file in ["run.json", "history.iso", "verdict.json", "proof", "report.html"] {
        assert!(sandbox.path(&format!("out/{file}")).exists(), "{file}");
    }
    let record = record(&sandbox, "out");
    assert_eq!(record["schema"], "isolario.run/1");
    assert_eq!((&record["stopped"], &record["counts"]["committed"]), (&"done".into(), &500.into()));
    assert_eq!(record["verdicts"][0]["verdict"], "satisfied");
    assert_eq!(sandbox.code(&["verify", "out/history.iso", "out/proof"]), 0);
    assert_eq!(sandbox.code(&["check", "--level", "sser", "out/history.iso"]), 0);
}

#[test]
fn a_run_is_repeated_by_its_directory() {
    let sandbox = Sandbox::new();
    let run = |flags: &[&str]| {
        let code = sandbox.code(&[&["run", "--quiet"], flags].concat());
        assert_eq!(code, 0, "{flags:?}");
        record(&sandbox, flags[flags.len() - 1])
    };
    let flags = ["--txns", "90", "--sessions", "1", "--keys", "3", "--check", "ser", "--seed", "7"];
    let first = run(&[&flags[..], &["--out", "a"]].concat());
    let again = run(&["--again", "a", "--out", "b"]);
    assert_eq!(first["replay"], again["replay"]);
    for name in ["a", "b"] {
        let history = format!("{name}/history.iso");
        assert_eq!(sandbox.code(&["convert", &history, &format!("{name}.txt")]), 0);
    }
    // But for their times, transactions are the same.
    let operations = |text: &str| -> Vec<String> {
        let line = |line: &str| line.rsplit("]: ").next().map(str::to_owned);
        sandbox.read(text).lines().filter_map(line).collect()
    };
    assert_eq!(operations("a.txt"), operations("b.txt"));
    // What is given anew counts.
    let other = run(&["--keys", "5", "--again=a", "--check", "si", "--out", "c"]);
    assert_eq!((&other["workload"]["keys"], &other["seed"]), (&5.into(), &"7".into()));
    assert_eq!(other["asked"][0], "snapshot-isolation");
    let flags = ["--workload", "sql", "--txns", "60", "--tables", "1", "--check", "ser"];
    let first = run(&[&flags[..], &["--db", "sqlite:it's.db", "--out", "d"]].concat());
    assert_eq!(first["replay"], run(&["--again", "d", "--out", "e"])["replay"]);
    let output = sandbox.run(&["run", "--again", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("nowhere is not the directory of a run"), "{error}");
}

/// The record is edited to have another command, or an outage.
#[test]
fn a_record_is_printed_before_it_is_repeated_or_refused() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.code(&["run", "--txns", "9", "--seed", "7", "--out", "a"]), 0);
    let original = sandbox.read("a/run.json");
    let again = |old: &str, new: &str, flags: &[&str]| {
        let edited = original.replacen(old, new, 1);
        assert!(old.is_empty() || edited != original, "{old}");
        std::fs::write(sandbox.path("a/run.json"), edited).unwrap();
        let output = sandbox.run(&[&["run", "--again", "a"], flags].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = again("", "", &["--out", "b", "--keys", "5"]);
    assert!(code == Some(0) && said.contains("note: repeats what a has: --db=sqlite: "), "{said}");
    assert!(said.contains("--seed=7") && !said.contains("--keys"), "{said}");
    // A URL or a command that was recorded without its password.
    for masked in ["postgres://me:***@127.0.0.1:1/db", "'exec:./driver --password ***'"] {
        let (code, said) = again("--db sqlite:", &format!("--db {masked}"), &["--out", "c"]);
        assert_eq!(code, Some(2), "{said}");
        for expected in ["the password of the database was not recorded", "--db URL"] {
            assert!(said.contains(expected), "{said}");
        }
        let flags = ["--out", masked.get(..4).unwrap(), "--db", "sqlite:"];
        assert_eq!(again("--db sqlite:", &format!("--db {masked}"), &flags).0, Some(0));
    }
    let command = r"--db 'exec:false \u001b[2J'";
    let (code, said) = again("--db sqlite:", command, &["--out", "d"]);
    assert!(code == Some(2) && said.contains("'--db=exec:false \\u{1b}[2J'"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    // The hunt that ended it with a crash is not in its command.
    let (code, said) = again("\"gone\"", "\"outages\": [[5, 6]], \"gone\"", &["--out", "e"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("ended with a crash") && said.contains("hint: hunt again"), "{said}");
}

#[test]
fn schemas_are_as_large_as_flags_say() {
    let sandbox = Sandbox::new();
    let bounds = ["--tables", "1", "--columns", "2", "--rows", "0", "--ops", "3", "--depth", "1"];
    let run =
        [&["run", "--workload", "sql", "--txns", "90", "--out", "out", "--keep"], &bounds[..]]
            .concat();
    let output = sandbox.run(&[&run[..], &["--db", "sqlite:kept.db"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let replay = "--depth 1 --ops 3 --seed";
    for expected in ["--tables 1 --columns 2 --rows 0", replay] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let elsewhere = sandbox.run(&["run", "--rows", "3"]);
    let why = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(why.contains("--rows has no effect on the mini workload"), "{why}");
}

#[test]
fn the_replay_command_asks_for_the_same() {
    for workload in [&["append"][..], &["mini", "--slow-ratio", "0.4"]] {
        replays(workload);
    }
}

fn replays(workload: &[&str]) {
    let sandbox = Sandbox::new();
    let first = ["run", "--sessions", "1", "--txns", "50", "--out", "first", "--workload"];
    assert_eq!(sandbox.code(&[&first, workload].concat()), 0);
    let replay = record(&sandbox, "first")["replay"].as_str().unwrap().to_owned();
    assert!(replay.contains(&workload.join(" ").replace("mini ", "")), "{replay}");
    let mut words: Vec<&str> = replay.split(' ').skip(1).collect();
    words.extend(["--out", "second"]);
    assert_eq!(sandbox.code(&words), 0);
    // With one session there is nothing left to chance but the times.
    let listing = |directory: &str| {
        let history = format!("{directory}/history.iso");
        let text = sandbox.stdout(&["convert", "--to", "jsonl", &history, "-"]);
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.map(|line: serde_json::Value| line["ops"].to_string()).collect::<Vec<_>>()
    };
    assert!(listing("first").len() >= 50);
    assert_eq!(listing("first"), listing("second"));
    assert_eq!(record(&sandbox, "second")["replay"], replay.as_str());
}

#[test]
fn the_help_lists_every_database() {
    let help = Sandbox::new().stdout(&["run", "--help"]);
    assert!(help.contains("Examples:"));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for driver in isolario::db::DRIVERS {
        assert!(help.contains(driver.form), "{}", driver.form);
    }
}

#[test]
fn a_hunt_ends_with_the_first_finding_or_with_its_time() {
    let sandbox = Sandbox::new();
    let found = sandbox.run(&[
        "run",
        "--db",
        "sim:ser?anomaly=LostUpdate",
        "--hunt",
        "60s",
        "--out",
        "found",
    ]);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "{text}");
    assert!(text.contains("broke its promise") && text.contains("\nFound after "), "{text}");
    let directories = std::fs::read_dir(sandbox.path("found")).unwrap().count();
    assert_eq!(directories, 1, "the phase that found something");
    let kept = sandbox.run(&["run", "--db", "sim:sser", "--hunt", "1s", "--out", "kept", "--json"]);
    assert_eq!(kept.status.code(), Some(0));
    let covered: serde_json::Value = serde_json::from_slice(&kept.stdout).unwrap();
    assert_eq!((&covered["schema"], &covered["found"]), (&"isolario.hunt/1".into(), &false.into()));
    assert!(!covered["phases"].as_array().unwrap().is_empty());
    assert!(!sandbox.path("kept").exists());
}

/// SQLite hands its log to the system before it answers, so that a killed process loses nothing.
#[test]
fn levels_that_ranges_do_not_decide_are_named_before_the_run_and_not_hunted() {
    let sandbox = Sandbox::new();
    let run = ["run", "--db", "sim:rc", "--workload", "predicate", "--txns", "100", "--out", "r"];
    let output = sandbox.run(&run);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{notes}");
    let (before, _) = notes.split_once("recording to").unwrap();
    assert!(before.contains("results of ranges are decided at prefix"), "{notes}");
    let hunt = ["run", "--db", "sim:rc", "--hunt", "6s", "--seed", "1", "--out", "h"];
    let output = sandbox.run(&hunt);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Nothing was found") && !text.contains("predicate"), "{text}");
}

#[test]
fn a_hunt_may_kill_the_process_of_an_embedded_store() {
    let sandbox = Sandbox::new();
    let store = format!("sqlite:{}", sandbox.path("store.db").display());
    let args = ["run", "--db", &store, "--hunt", "3s", "--crash", "--out", "hunted", "--json"];
    let hunted = sandbox.run(&args);
    let said = String::from_utf8_lossy(&hunted.stderr).into_owned();
    assert_eq!(hunted.status.code(), Some(0), "{said}");
    let covered: serde_json::Value = serde_json::from_slice(&hunted.stdout).unwrap();
    let committed = |phase: &serde_json::Value| phase["committed"].as_u64().unwrap();
    assert!(covered["phases"].as_array().unwrap().iter().map(committed).sum::<u64>() > 0);
    assert_eq!(covered["crashes"], true);
    for stores in [&["sqlite:"][..], &["redis://127.0.0.1"], &[&store, &store]] {
        let urls = stores.iter().flat_map(|url| ["--db", url]);
        let args: Vec<&str> = ["run", "--hunt", "1s", "--crash"].into_iter().chain(urls).collect();
        assert_eq!(sandbox.code(&args), 2, "{stores:?}");
    }
}

/// A store that is asked to keep what it acknowledges syncs it, and so loses nothing when its power fails.
#[test]
#[cfg(target_os = "linux")]
fn a_hunt_may_take_the_power_from_an_embedded_store() {
    let sandbox = Sandbox::new();
    let disk = sandbox.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let (place, store) = (disk.display().to_string(), format!("sqlite:{}/s.db", disk.display()));
    let args = ["run", "--db", &store, "--hunt", "3s", "--crash", "--disk", &place, "--json"];
    let hunted = sandbox.run(&args);
    let said = String::from_utf8_lossy(&hunted.stderr).into_owned();
    assert_eq!(hunted.status.code(), Some(0), "{said}");
    let covered: serde_json::Value = serde_json::from_slice(&hunted.stdout).unwrap();
    assert_eq!(covered["found"], false);
    let elsewhere = ["--db", "sqlite:other.db", "--hunt", "1s", "--crash", "--disk", &place];
    let idle = [&["--disk", &place][..], &["--fault", "power", "--server", "true"], &elsewhere];
    for idle in idle {
        let args: Vec<&str> = ["run"].into_iter().chain(idle.iter().copied()).collect();
        assert_eq!(sandbox.code(&args), 2, "{idle:?}");
    }
}

#[test]
fn clients_that_think_take_their_time() {
    let sandbox = Sandbox::new();
    let args = ["run", "--db", "sim:ser", "--txns", "20", "--think", "2ms", "--out", "slow"];
    assert_eq!(sandbox.code(&args), 0);
    let record = record(&sandbox, "slow");
    assert_eq!(record["workload"]["think_ms"], 2.0);
    assert!(record["replay"].as_str().unwrap().contains("--think 2ms"));
}

#[test]
fn every_workload_runs_on_sqlite() {
    let sandbox = Sandbox::new();
    for kind in ["mini", "general", "append", "lwt"] {
        let args = ["run", "--workload", kind, "--txns", "300", "--out", kind];
        let output = sandbox.run(&args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{kind}: {text}");
        assert_eq!(record(&sandbox, kind)["counts"]["committed"], 300, "{kind}");
    }
    for preset in ["general-rh", "cobra-mix", "emme-ranges"] {
        let args = ["run", "--preset", preset, "--txns", "100", "--out", preset];
        assert_eq!(sandbox.code(&args), 0, "{preset}");
    }
}

/// Runs until the store has shown what it was told to; says in which directory. Threads take turns
/// as they like, so that it may take more than one run, and longer ones.
fn run_until_violated(sandbox: &Sandbox, url: &str) -> Option<String> {
    for seed in 1..=30 {
        let (seed, txns) = (seed.to_string(), (3000 * seed).to_string());
        let args = ["run", "--db", url, "--keys", "5", "--txns", &txns, "--seed", &seed];
        let out = format!("{}-{seed}", url.replace([':', '?', '='], "-"));
        match sandbox.code(&[&args[..], &["--out", &out]].concat()) {
            0 => {}
            code => {
                assert_eq!(code, 1, "{url}");
                return Some(out);
            }
        }
    }
    None
}

#[test]
fn a_broken_promise_is_found_and_the_exit_code_tells() {
    let sandbox = Sandbox::new();
    for (url, names) in [
        ("sim:si?anomaly=LostUpdate", ["LostUpdate"].as_slice()),
        // A skew may take more than two transactions.
        ("sim:ser?anomaly=write-skew", &["WriteSkew", "ItemAntiDependencyCycle"]),
        ("sim:rc?anomaly=aborted-read", &["AbortedRead"]),
        ("sim:rc?anomaly=thin-air-read", &["ThinAirRead"]),
        ("sim:rc?anomaly=intermediate-read", &["IntermediateRead"]),
    ] {
        let out = run_until_violated(&sandbox, url);
        assert!(out.is_some(), "{url}: never violated");
        let out = out.unwrap_or_default();
        let record = record(&sandbox, &out);
        let anomalies = record["verdicts"][0]["anomalies"].to_string();
        assert!(names.iter().any(|name| anomalies.contains(name)), "{names:?} among {anomalies}");
        assert!(record["first_counterexample"].is_u64());
        let (history, proof) = (format!("{out}/history.iso"), format!("{out}/proof"));
        assert_eq!(sandbox.code(&["verify", &history, &proof]), 0, "{url}");
    }
}

#[test]
fn an_honest_store_keeps_its_promise() {
    let sandbox = Sandbox::new();
    for level in ["rc", "ra", "causal", "si", "ser", "sser"] {
        let url = format!("sim:{level}");
        let args = ["run", "--db", &url, "--keys", "5", "--txns", "2000", "--out", level];
        let output = sandbox.run(&args);
        assert_eq!(output.status.code(), Some(0), "{level}: {output:?}");
    }
}

#[test]
fn json_is_one_line_and_nothing_else() {
    let sandbox = Sandbox::new();
    let text = sandbox.stdout(&["run", "--json", "--txns", "50", "--out", "out"]);
    assert_eq!(text.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["schema"], &json["directory"]), (&"isolario.run/1".into(), &"out".into()));
}

#[test]
fn repeating_goes_through_seeds_and_counts_what_they_found() {
    let sandbox = Sandbox::new();
    let base = ["run", "--db", ALWAYS_WRONG, "--keys", "3", "--txns", "3000"];
    let repeat = ["--repeat", "3", "--seed", "10"];
    let text = sandbox.stdout(&[&base[..], &repeat, &["--out", "out"]].concat());
    assert!(text.contains("3 of 3 runs found a violation"), "{text}");
    assert_eq!(record(&sandbox, "out/3")["seed"], "12");
    let text = sandbox.stdout(&[&base[..], &repeat, &["--out", "again", "--json"]].concat());
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["schema"], &last["violated"]), (&"isolario.repeat/1".into(), &3.into()));
}

#[test]
fn a_run_can_stop_at_the_first_violation() {
    let sandbox = Sandbox::new();
    let args = ["run", "--db", ALWAYS_WRONG, "--rate", "500", "--keys", "3", "--duration", "1h"];
    let args = [&args[..], &["--stop-on-violation", "--out", "out"]].concat();
    assert_eq!(sandbox.code(&args), 1);
    assert_eq!(record(&sandbox, "out")["stopped"], "violation");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_happens() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("full")).unwrap();
    std::fs::write(sandbox.path("full/precious"), "mine").unwrap();
    let cases: &[&[&str]] = &[
        &["run", "--db", "sqlite"],
        &["run", "--isolation", "chaos"],
        &["run", "--workload", "mni"],
        &["run", "--workload", "tpcc", "--keys", "5"],
        &["run", "--scale", "2"],
        &["run", "--ops", "3"],
        &["run", "--duration", "soon"],
        &["run", "--db", "sqlite:/no/such/place.db"],
        &["run", "--out", "full"],
        &["run", "--db", "sim:si", "--db", "sqlite:"],
        &["run", "--db", "sim:si?anomaly=WriteSkew"],
    ];
    let transcripts: Vec<_> = cases.iter().map(|args| sandbox.transcript(args)).collect();
    insta::assert_snapshot!(transcripts.join("\n"));
    // What there is grows: only the beginnings.
    for (args, message) in [
        (["run", "--db", "oracle://host/db"], "there is no database \"oracle\": expected sqlite:"),
        (["run", "--check", "seriliazable"], "did you mean `serializable`?"),
    ] {
        let transcript = sandbox.transcript(&args);
        assert!(transcript.contains(message) && transcript.contains("exit code 2"), "{transcript}");
    }
    assert!(!sandbox.path("isolario-runs").exists());
}

#[test]
fn applications_are_played_and_can_be_repeated() {
    let sandbox = Sandbox::new();
    for name in ["tpcc", "rubis", "twitter"] {
        let shape = ["--workload", name, "--txns", "200", "--scale", "2", "--seed", "1"];
        let transcript = sandbox.transcript(&[&["run", "--out", name], &shape[..]].concat());
        let again = format!("--workload {name} --sessions 8 --txns 200 --scale 2 --max-retries 5");
        assert!(transcript.contains("claim kept") && transcript.contains(&again), "{transcript}");
    }
}

#[test]
fn applications_have_sql_tables_of_their_own_where_asked_for() {
    let sandbox = Sandbox::new();
    for (name, row) in [("tpcc", "stock/1/"), ("rubis", "users/"), ("twitter", "tweets/")] {
        let shape = ["--workload", name, "--txns", "100", "--sql-tables", "--seed", "1"];
        let transcript = sandbox.transcript(&[&["run", "--out", name], &shape[..]].concat());
        let tables = format!("rows are in SQL tables, called isolario_{name}_");
        for expected in [&tables, "claim kept", "--sql-tables"] {
            assert!(transcript.contains(expected), "{expected} in {transcript}");
        }
        let history = format!("{name}/history.iso");
        let listing = sandbox.stdout(&["convert", "--to", "jsonl", &history, "-"]);
        assert!(listing.contains(row), "{row} in {listing}");
    }
}

#[test]
fn sql_tables_take_an_application_and_a_database_that_has_them() {
    let sandbox = Sandbox::new();
    for (args, message, hint) in [
        (
            &["run", "--sql-tables"][..],
            "--sql-tables has no effect on the mini workload",
            "it only applies to --workload tpcc, rubis, twitter",
        ),
        (
            &["run", "--workload", "tpcc", "--sql-tables", "--db", "sim:serializable"],
            "sim cannot keep the rows of the tpcc workload in SQL tables",
            "omit --sql-tables",
        ),
        (
            &["run", "--workload", "sql", "--db", "sim:serializable"],
            "this database has no SQL",
            "choose another one with --workload",
        ),
    ] {
        let transcript = sandbox.transcript(args);
        for expected in [message, hint, "exit code 2"] {
            assert!(transcript.contains(expected), "{expected} in {transcript}");
        }
    }
    assert!(!sandbox.path("isolario-runs").exists());
}

/// Nobody listens on the first port.
#[test]
fn a_server_that_is_not_there_is_named_with_the_remedy() {
    let sandbox = Sandbox::new();
    for (url, other) in [
        ("postgres://me:secret@127.0.0.1:1/db", "postgres://127.0.0.1:1/other"),
        ("mysql://me:secret@127.0.0.1:1/db", "mysql://127.0.0.1:1/other"),
        ("etcd://127.0.0.1:1", "etcd://localhost:1"),
        ("redis://127.0.0.1:1", "redis://localhost:1"),
    ] {
        let transcript = sandbox.transcript(&["run", "--db", url, "--db", other]);
        let (scheme, shown) = (url.split(':').next().unwrap(), url.replace("secret", "***"));
        for expected in [
            format!("\nerror: cannot connect to {shown}: "),
            format!(
                "\n  hint: is there a server at that host and port, and does it speak {scheme}?"
            ),
            "\n--- exit code 2".to_owned(),
        ] {
            assert!(transcript.contains(&expected), "{expected} in {transcript}");
        }
    }
    assert!(!sandbox.path("isolario-runs").exists());
}

#[test]
fn a_url_that_says_too_little_or_too_much_is_refused() {
    let sandbox = Sandbox::new();
    for (url, message) in [
        ("redis:localhost", "expected // after the scheme, as in redis://localhost:1234"),
        ("redis://", "expected a host, as in redis://localhost:1234"),
        ("redis://localhost:port", "expected a host and a port"),
        ("mysql://root@localhost", "expected a database, as in mysql://host/db"),
        ("etcd://localhost/db", "etcd has no databases, so omit /db"),
        ("redis://localhost?tls=on", "expected sslmode or sslrootcert"),
        ("mysql://localhost/db?sslrootcert=/no/such", "sslrootcert /no/such: "),
    ] {
        let transcript = sandbox.transcript(&["run", "--db", url]);
        assert!(transcript.contains(message), "{transcript}");
        assert!(transcript.contains("--- exit code 2"), "{transcript}");
    }
}

#[test]
fn a_table_of_somebody_else_is_left_alone() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("theirs.db");
    let url = format!("sqlite:{}", path.display());
    assert_eq!(sandbox.code(&["run", "--db", &url, "--txns", "10", "--out", "first"]), 0);
    assert_eq!(sandbox.code(&["run", "--db", &url, "--txns", "10", "--out", "again"]), 0);
    change_table(&path);
    let output = sandbox.run(&["run", "--db", &url, "--out", "second"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("has a table isolario_register that is not ours: rename it"), "{text}");
}

fn change_table(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE isolario_register (x)").unwrap();
}

/// Starts a run that would take for ever, and waits until it has recorded something.
#[cfg(unix)]
fn endless(sandbox: &Sandbox, out: &str, more: &[&str]) -> std::process::Child {
    let run = ["run", "--duration", "1h", "--out", out];
    let mut command = sandbox.command(&[&run[..], more].concat());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let history = sandbox.path(&format!("{out}/history.iso"));
    let recorded = || isolario::formats::read(&history).map_or(0, |read| read.history.txn_count());
    while recorded() < 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_complete_and_checked() {
    let sandbox = Sandbox::new();
    let child = endless(&sandbox, "out", &["--rate", "2000"]);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(record(&sandbox, "out")["stopped"], "interrupted");
    assert!(String::from_utf8_lossy(&output.stdout).contains("strict-serializable  satisfied"));
    assert_eq!(sandbox.code(&["verify", "out/history.iso", "out/proof"]), 0);
}

#[cfg(unix)]
#[test]
fn random_sql_ends_when_it_is_asked_to() {
    let sandbox = Sandbox::new();
    for (name, more) in [("-TERM", &["--predicates"][..]), ("-INT", &[])] {
        let run = ["run", "--workload", "sql", "--duration", "1h", "--out", &name[1..]];
        let mut command = sandbox.command(&[&run[..], more].concat());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        // From then on, it listens.
        while !sandbox.path(&name[1..]).exists() {
            assert!(child.try_wait().unwrap().is_none(), "it goes on for an hour");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(500));
        signal(&child, name);
        let begun = std::time::Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if begun.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                panic!("no end after {name}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // On a busy machine, nothing may have committed yet.
        assert!(matches!(code, Some(0 | 2)), "{code:?} after {name}");
    }
}

/// The slot goes with the connection; tables, the mark and the publication, with the next run.
#[cfg(unix)]
#[test]
fn what_a_killed_run_left_in_a_database_goes_with_the_next_one() {
    use isolario::db::{DbUrl, Settings, open};
    use isolario_servers::{Durability, Kind, Servers};

    let sandbox = Sandbox::new();
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let database = open(&DbUrl::parse(servers.url()).unwrap(), &Settings::default()).unwrap();
    let mut line = database.sql().unwrap().connect_sql().unwrap();
    let mut left = || {
        let question = "SELECT (SELECT count(*) FROM pg_replication_slots), \
             (SELECT count(*) FROM pg_publication), \
             (SELECT count(*) FROM pg_tables WHERE tablename LIKE 'isolario%')";
        format!("{:?}", line.statement(question, true).unwrap().rows[0])
    };
    let whitebox = ["--whitebox", "--workload", "predicate", "--db", servers.url()];
    // With and without the log: either cleans up.
    for (number, more) in [&whitebox[..], &whitebox[1..]].into_iter().enumerate() {
        let mut child = endless(&sandbox, &format!("killed{number}"), &whitebox);
        assert_eq!(left(), "[Int(1), Int(1), Int(4)]", "three tables, and the mark of the run");
        signal(&child, "-KILL");
        child.wait().unwrap();
        let out = format!("next{number}");
        assert_eq!(sandbox.code(&[&["run", "--txns", "50", "--out", &out], more].concat()), 0);
        if number == 0 {
            let [history, proof, orders] =
                ["history.iso", "version-order.proof", "version-order.jsonl"]
                    .map(|file| format!("{out}/{file}"));
            let orders = ["--version-order", &orders, "--trust-version-order"];
            assert_eq!(sandbox.code(&[&["verify", &history, &proof], &orders[..]].concat()), 0);
            let page = sandbox.read(&format!("{out}/report.html"));
            assert!(page.contains("By the order of versions in its log"));
        }
        while left() != "[Int(0), Int(0), Int(0)]" {
            // The server may still have to notice that the killed one is gone.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whenever it comes: nothing stays in the directory for temporary files, and the run either did
/// not happen or was checked.
#[cfg(unix)]
#[test]
fn an_early_interruption_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    for (number, wait) in [5, 10, 15, 20, 30, 50].into_iter().enumerate() {
        let out = format!("out{number}");
        let mut command = sandbox.command(&["run", "--duration", "1h", "--out", &out]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => assert_eq!(record(&sandbox, &out)["stopped"], "interrupted"),
            // Before the command listens, there is nothing to clean up.
            None => assert!(!sandbox.path(&out).exists()),
            code => {
                assert_eq!(code, Some(2), "{text}");
                assert!(text.contains("interrupted"), "{text}");
            }
        }
        assert!(sandbox.temporary_files().is_empty(), "after {wait} ms: {text}");
    }
}

/// A second Ctrl-C does not wait for anything, and yet the database's temporary files go, too.
#[cfg(unix)]
#[test]
fn leaving_at_once_leaves_no_temporary_files() {
    let sandbox = Sandbox::new();
    let mut child = endless(&sandbox, "out", &["--statement-timeout", "1h"]);
    let [directory] = sandbox.temporary_files().try_into().unwrap();
    let database = rusqlite::Connection::open(directory.join("sqlite.db")).unwrap();
    database.busy_timeout(Duration::from_secs(60)).unwrap();
    // As long as we hold the lock, the sessions wait, and the first interruption waits for them.
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal(&child, "-INT");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("again to stop now")));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(sandbox.temporary_files().is_empty());
}

/// Whatever the sessions were doing at that moment, what is left is a history of the database, and
/// has the promise that the database keeps.
#[cfg(unix)]
#[test]
fn a_killed_run_leaves_a_history_that_keeps_the_promise() {
    let sandbox = Sandbox::new();
    for (out, more) in [
        ("few", &["--rate", "2000", "--keys", "5"][..]),
        ("many", &["--rate", "20000", "--sessions", "32", "--keys", "5"]),
        ("general", &["--rate", "2000", "--sessions", "16", "--workload", "general"]),
    ] {
        let mut child = endless(&sandbox, out, more);
        signal(&child, "-KILL");
        child.wait().unwrap();
        assert_eq!(record(&sandbox, out)["stopped"], "unfinished");
        let history = format!("{out}/history.iso");
        assert_eq!(sandbox.code(&["check", "--level", "sser", &history]), 0, "{out}");
    }
}

/// A limit on the size of files stands for a disk that is full: the write that would go beyond it
/// writes what fits, and the next one fails.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_what_was_recorded_is_checked() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_isolario");
    // In blocks of 512 bytes. The database is the simulated one: it needs no disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 200; exec {program} run --db sim:sser --txns 100000 --out out"
    );
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-c", &script]).current_dir(sandbox.path("")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("recording the history failed"), "{text}");
    let record = record(&sandbox, "out");
    assert_eq!(record["stopped"], "recording");
    let verdicts = record["verdicts"].to_string();
    assert!(verdicts.contains("satisfied") && !verdicts.contains("violated"), "{verdicts}");
    assert_eq!(sandbox.code(&["check", "--level", "sser", "out/history.iso"]), 0);
}

/// The store gives snapshots, and so write skew: whoever aims at it meets it.
#[test]
fn a_run_that_aims_finds_its_anomaly_and_can_be_repeated() {
    let sandbox = Sandbox::new();
    let aimed = ["run", "--db", "sim:si", "--aim", "WriteSkew", "--check", "ser", "--txns", "2000"];
    assert_eq!(sandbox.code(&[&aimed[..], &["--out", "out"]].concat()), 1);
    let record = record(&sandbox, "out");
    assert_eq!(record["verdicts"][0]["anomalies"][0], "WriteSkew");
    assert_eq!(record["workload"]["keys"], 8);
    let replay = record["replay"].as_str().unwrap();
    assert!(replay.contains("--workload mini --aim write-skew --sessions 8"), "{replay}");
    let words: Vec<&str> = replay.split(' ').skip(1).chain(["--out", "again"]).collect();
    assert_eq!(sandbox.code(&words), 1);
}

#[test]
fn aims_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    let answers = [
        &["run", "--aim", "write-skw"][..],
        &["run", "--aim", "write-skew", "--workload", "append"],
        &["run", "--aim", "long-fork", "--sessions", "3"],
        &["run", "--aim", "lost-update", "--keys", "5"],
    ];
    let answers: Vec<_> = answers.iter().map(|arguments| sandbox.transcript(arguments)).collect();
    insta::assert_snapshot!(answers.join("\n"));
}
