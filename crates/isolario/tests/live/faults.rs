//! Servers that are killed while sessions go on, and what they have lost then; and networks that part clients from
//! nodes.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isolario::Level;
use isolario::model::{Op, Outcome, StopReason};
use isolario::run::{
    Fault, Faults, Handle, Judgement, LostCommits, PROOF, RunOutcome, Settings, recorded_outages,
    run,
};
use isolario::verify::proof::{ProofPremises, verify_proof_with};
use isolario::workload::Kind as Workload;
use isolario_servers::{Durability, Kind, Servers};
use tempfile::TempDir;

fn with_faults(url: &str, kind: Workload, command: String, directory: &Path) -> Settings {
    let mut settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_txns(500)
        .with_faults(Faults::new(vec![Fault::Kill], command))
        .with_out(directory.join("run"));
    settings.statement_timeout = Duration::from_secs(30);
    settings
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A run against a Redis of its own that is killed when the sessions are done, or before.
fn killed_redis(kind: Workload, persistence: &str) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let place = directory.path().display();
    let command =
        format!("redis-server --bind 127.0.0.1 --port {port} --dir {place} {persistence}");
    let url = format!("redis://127.0.0.1:{port}");
    let settings = with_faults(&url, kind, command, directory.path());
    let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
    assert_proven(&outcome);
    outcome
}

/// What was lost can be found and verified by what the run has left.
fn assert_proven(outcome: &RunOutcome) {
    let outages = recorded_outages(&outcome.record);
    assert_eq!(LostCommits::find(&outcome.history, &outages), outcome.lost);
    let file = fs::read(outcome.directory.join(PROOF)).unwrap();
    let given = ProofPremises::default().with_outages(&outages);
    let verified = verify_proof_with(&outcome.history, given, &file).unwrap();
    assert!(verified.is_right(), "{:?} {:?}", verified.refusals, verified.not_lost);
    assert_eq!(verified.proof.lost.is_empty(), outcome.lost.is_none());
}

/// Without persistence, nothing survives: all that was acknowledged is lost. Registers and lists tell.
#[test]
fn a_killed_redis_loses_what_it_does_not_write_down() {
    for kind in [Workload::Mini, Workload::Append, Workload::Lwt] {
        let outcome = killed_redis(kind, "--save '' --appendonly no");
        let lost = outcome.lost.as_ref().unwrap_or_else(|| panic!("{kind}: nothing is lost"));
        assert_eq!(outcome.judgement(), Judgement::Violated, "{kind}");
        assert_eq!(outcome.record.lost_commits, lost.total);
        assert!(outcome.promise().to_string().contains(" lost "), "{}", outcome.promise());
        assert!(outcome.record.remarks.iter().any(|remark| remark.ends_with("kill")));
        let violated =
            outcome.examination.results.iter().any(|answer| answer.verdict.is_violated());
        assert!(violated, "{kind}: a level in real time forbids it, too");
    }
}

#[test]
fn a_killed_redis_keeps_what_it_has_written_down() {
    for kind in [Workload::Mini, Workload::Append] {
        let kept = killed_redis(kind, "--save '' --appendonly yes --appendfsync always");
        assert_eq!((kept.judgement(), &kept.lost), (Judgement::Satisfied, &None), "{kept:?}");
    }
}

/// A server with data of its own, that a run can start again and again: the command of one that was started
/// for tests, under the account that it had.
fn command_of(servers: &Servers) -> String {
    let pid = servers.pids()[0];
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let quoted = |word: &[u8]| format!("'{}'", String::from_utf8_lossy(word));
    let words: Vec<String> =
        arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(quoted).collect();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let id = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let account = format!("--reuid={} --regid={} --clear-groups", id("Uid:"), id("Gid:"));
    match id("Uid:").as_str() {
        "0" => words.join(" "),
        _ => format!("setpriv {account} {}", words.join(" ")),
    }
}

fn killed(kind: Kind, workload: Workload, isolation: &str, extra: &str) -> RunOutcome {
    let mut servers = Servers::start(kind, Durability::Durable).unwrap();
    let command = format!("{} {extra}", command_of(&servers));
    servers.kill().unwrap();
    let directory = TempDir::new().unwrap();
    let settings = with_faults(servers.url(), workload, command, directory.path());
    let outcome = run(&settings.with_isolation(isolation), &Handle::new(), &mut ()).unwrap();
    assert_proven(&outcome);
    outcome
}

/// By default, a database keeps what it has acknowledged.
#[test]
fn postgres_and_mariadb_lose_nothing_by_default() {
    for (kind, isolation) in [(Kind::Postgres, "serializable"), (Kind::MariaDb, "repeatable-read")]
    {
        let kept = killed(kind, Workload::Mini, isolation, "");
        assert_eq!(
            (kept.judgement(), &kept.lost),
            (Judgement::Satisfied, &None),
            "{}",
            kept.promise()
        );
        assert_eq!(kept.record.stopped, StopReason::Done);
    }
}

/// Rows are read by key when the server is back.
#[test]
fn rows_are_read_again_and_nothing_is_lost_by_default() {
    let kept = killed(Kind::Postgres, Workload::Predicate, "serializable", "");
    assert_ne!(kept.judgement(), Judgement::Violated, "{}", kept.promise());
    assert_eq!((&kept.lost, kept.record.stopped), (&None, StopReason::Done));
    let history = &kept.history;
    let last = history.sessions().last().unwrap();
    let ops = history.session_txns(last).flat_map(|txn| history.txn_ops(txn));
    let keys = ops.filter(|op| matches!(history.op(*op), Op::Read { .. })).count();
    assert_eq!(keys as u32, kept.record.workload.keys, "one session reads them all, by key");
}

/// Whoever does not wait for the log may lose commits, or be lucky. What is certain: a lost commit is a
/// violation, and so is the stale read that shows it, where the level forbids one.
#[test]
fn what_postgres_and_mariadb_lose_without_waiting_for_the_log_has_a_name() {
    let postgres = "-c synchronous_commit=off -c wal_writer_delay=10000";
    let mariadb = "--innodb-flush-log-at-trx-commit=0 --innodb-flush-log-at-timeout=100";
    for (kind, extra) in [(Kind::Postgres, postgres), (Kind::MariaDb, mariadb)] {
        let outcome = killed(kind, Workload::Mini, "serializable", extra);
        let claimed = &outcome.record.claim;
        assert!(claimed.contains(&Level::StrongSnapshotIsolation), "{claimed:?}");
        if outcome.lost.is_some() {
            let both = (outcome.judgement(), outcome.examination.judgement());
            assert_eq!(both, (Judgement::Violated, Judgement::Violated), "{}", outcome.promise());
        }
    }
}

/// A Redis that somebody else starts again whenever it ends, and whose process id is in a file. Both die with the
/// test.
struct Kept {
    keeper: Child,
    port: u16,
    directory: TempDir,
}

impl Kept {
    fn redis(persistence: &str) -> Kept {
        let directory = TempDir::new().unwrap();
        let (port, place) = (free_port(), directory.path().display());
        let script = format!(
            "while :; do setpriv --pdeathsig KILL redis-server --bind 127.0.0.1 --port {port} \
             --dir {place} {persistence} >/dev/null & echo $! >{place}/new; \
             mv {place}/new {place}/pid; wait $!; done"
        );
        let mut command = Command::new("setpriv");
        let keeper = command
            .args(["--pdeathsig", "KILL", "sh", "-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kept = Kept { keeper, port, directory };
        while !kept.is_up() || !kept.pid_file().exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        kept
    }

    fn is_up(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.path().join("pid")
    }

    fn pid(&self) -> String {
        fs::read_to_string(self.pid_file()).unwrap()
    }

    fn run(&self, fault: Fault, change: impl FnOnce(Settings) -> Settings) -> RunOutcome {
        let directory = TempDir::new().unwrap();
        let url = format!("redis://127.0.0.1:{}", self.port);
        let settings = with_faults(&url, Workload::Mini, String::new(), directory.path());
        let settings = settings.with_faults(Faults::by_pid_file(vec![fault], self.pid_file()));
        run(&change(settings), &Handle::new(), &mut ()).unwrap()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

const WRITTEN_DOWN: &str = "--save '' --appendonly yes --appendfsync always";

/// A server of somebody else is killed by its pid file, and found again when somebody has started it. The run leaves
/// it as it is.
#[test]
fn a_server_with_a_pid_file_is_killed_and_found_again() {
    for (persistence, is_kept) in [(WRITTEN_DOWN, true), ("--save '' --appendonly no", false)] {
        let redis = Kept::redis(persistence);
        let before = redis.pid();
        let outcome = redis.run(Fault::Kill, |settings| settings);
        assert_eq!(outcome.record.stopped, StopReason::Done);
        assert!(outcome.record.remarks.iter().any(|remark| remark.ends_with("kill")));
        assert_ne!(redis.pid(), before, "another process serves");
        assert_eq!(outcome.lost.is_none(), is_kept, "{}", outcome.promise());
        let expected = if is_kept { Judgement::Satisfied } else { Judgement::Violated };
        assert_eq!(outcome.judgement(), expected, "{}", outcome.promise());
        assert!(redis.is_up(), "it is not ours to end");
    }
}

#[test]
fn a_server_with_a_pid_file_is_paused_and_goes_on() {
    let redis = Kept::redis(WRITTEN_DOWN);
    let before = redis.pid();
    let paused = |outcome: &RunOutcome| has_made(outcome, "pause");
    // How soon the first fault comes depends on the machine.
    let run = |seconds| redis.run(Fault::Pause, |s| s.with_duration(Duration::from_secs(seconds)));
    let outcome = [3, 6, 12, 24].into_iter().map(run).find(paused).unwrap();
    assert_eq!((outcome.judgement(), &outcome.lost), (Judgement::Satisfied, &None));
    assert_eq!(redis.pid(), before, "it was never ended");
}

fn has_made(outcome: &RunOutcome, fault: &str) -> bool {
    outcome
        .record
        .remarks
        .iter()
        .any(|remark| remark.starts_with("faults: ") && remark.contains(fault))
}

/// What a run with a server of its own ended with, before it began.
fn not_begun(url: &str, command: &str) -> String {
    let directory = TempDir::new().unwrap();
    let settings = with_faults(url, Workload::Mini, command.to_owned(), directory.path());
    run(&settings, &Handle::new(), &mut ()).unwrap_err().to_string()
}

/// A run ends before it begins where the server that it would kill cannot be that of the database.
#[test]
fn a_server_that_is_not_the_database_is_an_error() {
    let redis = Kept::redis(WRITTEN_DOWN);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let error = not_begun(&url, "sleep 100000");
    assert!(error.contains("another server already answers at"), "{error}");
    let error = not_begun("sqlite:", "sleep 100000");
    assert!(
        error.contains("the fault kill needs a server, but sqlite: runs inside this process"),
        "{error}"
    );
    let url = format!("redis://127.0.0.1:{}", free_port());
    let error = not_begun(&url, "sh -c 'echo no room >&2; exit 3'");
    assert!(
        error.contains("exit status: 3") && error.ends_with("its last lines: \"no room\""),
        "{error}"
    );
}

/// Why a run ended early; what it found is there all the same.
fn ended_early(outcome: &RunOutcome) -> &str {
    let promise = outcome.promise().to_string();
    assert!(promise.contains("could not be decided"), "{promise}");
    assert_eq!(outcome.record.stopped, StopReason::Database);
    assert!(outcome.record.counts.committed > 0);
    outcome.record.stopped_because.as_deref().unwrap()
}

/// A process that has nothing to do with the database is killed, and nothing happens to the sessions.
#[test]
fn a_kill_that_kills_nothing_did_not_happen() {
    let redis = Kept::redis(WRITTEN_DOWN);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("pid");
    let mut idle = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(&file, idle.id().to_string()).unwrap();
    let outcome = redis.run(Fault::Kill, |settings| {
        settings.with_faults(Faults::by_pid_file(vec![Fault::Kill], &file))
    });
    let _ = idle.kill();
    idle.wait().unwrap();
    let why = ended_early(&outcome);
    assert!(why.starts_with("the kill did nothing"), "{why}");
    assert!(!has_made(&outcome, "kill"), "{:?}", outcome.record.remarks);
}

/// A server that starts only once.
#[test]
fn a_server_that_does_not_come_back_is_noticed() {
    let directory = TempDir::new().unwrap();
    let (port, place) = (free_port(), directory.path().display());
    let script = format!(
        "test -e {place}/once && {{ echo never again; exit 3; }}; touch {place}/once; \
         exec redis-server --bind 127.0.0.1 --port {port} --dir {place} {WRITTEN_DOWN}"
    );
    let command = format!("sh -c \"{script}\"");
    let url = format!("redis://127.0.0.1:{port}");
    let settings = with_faults(&url, Workload::Mini, command, directory.path());
    let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
    let why = ended_early(&outcome);
    assert!(
        why.starts_with("the server did not come back: it has ended (exit status: 3)"),
        "{why}"
    );
    assert!(why.ends_with("its last lines: \"never again\""), "{why}");
}

/// A shell that started the server ends before it, and the next server is started when the first one has ended.
#[test]
fn what_a_shell_leaves_behind_is_waited_for() {
    let directory = TempDir::new().unwrap();
    let (port, place) = (free_port(), directory.path().display());
    for fault in [Fault::Restart, Fault::Kill] {
        let command = format!(
            "sh -c 'redis-server --bind 127.0.0.1 --port {port} --dir {place} {}; :'",
            WRITTEN_DOWN.replace('\'', "\"")
        );
        let url = format!("redis://127.0.0.1:{port}");
        let out = TempDir::new().unwrap();
        let settings = with_faults(&url, Workload::Mini, String::new(), out.path());
        let settings = settings.with_faults(Faults::new(vec![fault], command));
        let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
        assert_eq!(
            outcome.record.stopped,
            StopReason::Done,
            "{:?}",
            outcome.record.stopped_because
        );
        assert_eq!((outcome.judgement(), &outcome.lost), (Judgement::Satisfied, &None));
        assert!(has_made(&outcome, fault.name()));
        let away = |remark: &String| remark.starts_with("away: ") && remark.ends_with(" s");
        assert!(outcome.record.remarks.iter().any(away), "{:?}", outcome.record.remarks);
    }
}

/// A file that names no server is refused before anything is sent.
#[test]
fn a_pid_file_without_a_server_is_an_error() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("pid");
    for (text, expected) in [
        (None, "No such file"),
        (Some("redis".to_owned()), "does not begin with a process id"),
        (Some("1".to_owned()), "this is not the process id of a server"),
        (Some(std::process::id().to_string()), "this is not the process id of a server"),
        (Some(u32::MAX.to_string()), "the process has ended"),
    ] {
        text.iter().for_each(|text| fs::write(&file, text).unwrap());
        let settings = Settings::new(Workload::Mini).with_url("redis://127.0.0.1:1").unwrap();
        let settings = settings.with_faults(Faults::by_pid_file(vec![Fault::Kill], &file));
        let error = run(&settings, &Handle::new(), &mut ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Runs through a network that parts clients from nodes, until that has happened so many times.
fn parted(servers: &Servers, isolation: &str, times: usize) -> RunOutcome {
    let run = |seconds: u64| {
        let directory = TempDir::new().unwrap();
        let mut settings = Settings::new(Workload::Mini).with_isolation(isolation);
        for url in servers.urls() {
            settings = settings.with_url(url).unwrap();
        }
        settings.statement_timeout = Duration::from_secs(30);
        let settings = settings
            .with_duration(Duration::from_secs(seconds))
            .with_faults(Faults::partitions())
            .with_out(directory.path().join("run"));
        run(&settings, &Handle::new(), &mut ()).unwrap()
    };
    let enough = |outcome: &RunOutcome| {
        let count = outcome.record.remarks.iter().find_map(|remark| {
            remark.strip_prefix("faults: ")?.strip_suffix(" \u{d7} partition")?.parse().ok()
        });
        count.is_some_and(|count: usize| count >= times)
    };
    let lengths = [3, 6, 12].map(|factor| factor * times as u64);
    lengths.into_iter().map(run).find(enough).unwrap()
}

/// The run goes on after partitions of every kind; a commit without an answer is of unknown outcome, and no promise is
/// broken. Whether a node is parted when the run ends is a matter of chance.
fn assert_unharmed(outcome: &RunOutcome) {
    let words = outcome.promise().to_string();
    assert_eq!((outcome.judgement(), &outcome.lost), (Judgement::Satisfied, &None), "{words}");
    assert_eq!(outcome.record.stopped, StopReason::Done);
    assert!(outcome.record.counts.reconnects > 0, "{:?}", outcome.record.counts);
    let unknown =
        outcome.history.txns().filter(|t| outcome.history.outcome(*t) == Outcome::Unknown);
    assert_eq!(unknown.count() as u64, outcome.record.counts.unknown);
}

#[test]
fn clients_that_are_parted_from_postgres_come_back() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    assert_unharmed(&parted(&servers, "serializable", 3));
}

#[test]
fn clients_that_are_parted_from_members_of_etcd_come_back() {
    let servers = Servers::start(Kind::Etcd3, Durability::Fast).unwrap();
    let outcome = parted(&servers, "linearizable-reads", 3);
    assert_unharmed(&outcome);
    assert_eq!(
        outcome.record.urls,
        servers.urls(),
        "the record names the nodes, not what is before them"
    );
}

/// A run against a Redis of its own whose power fails when the sessions are done, or before.
fn powerless_redis(txns: u64, persistence: &str) -> RunOutcome {
    let (data, directory) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let port = free_port();
    let place = data.path().display();
    let command = format!(
        "redis-server --bind 127.0.0.1 --port {port} --dir {place} --save '' {persistence}"
    );
    let url = format!("redis://127.0.0.1:{port}");
    let faults = Faults::new(vec![Fault::Power], command.clone()).with_disk(data.path());
    let settings = with_faults(&url, Workload::Mini, command, directory.path());
    let settings = settings.with_txns(txns).with_faults(faults);
    let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
    assert_proven(&outcome);
    outcome
}

/// What was handed to the operating system survives a kill, and not a loss of power: a run is long enough
/// if some transactions were acknowledged after it began to look.
#[test]
fn a_redis_without_power_loses_what_it_has_not_synced() {
    let loses = |txns: &u64| {
        let outcome = powerless_redis(*txns, "--appendonly yes --appendfsync no");
        outcome.lost.is_some() && outcome.judgement() == Judgement::Violated
    };
    assert!([500, 5000, 50_000].iter().any(loses));
    let killed = killed_redis(Workload::Mini, "--save '' --appendonly yes --appendfsync no");
    assert_eq!((killed.judgement(), &killed.lost), (Judgement::Satisfied, &None));
}

#[test]
fn a_redis_without_power_keeps_what_it_has_synced() {
    let kept = powerless_redis(500, "--appendonly yes --appendfsync always");
    assert_eq!((kept.judgement(), &kept.lost), (Judgement::Satisfied, &None), "{kept:?}");
}

/// By default, databases sync what they acknowledge.
#[test]
fn postgres_and_mariadb_lose_nothing_without_power() {
    for (kind, isolation) in [(Kind::Postgres, "serializable"), (Kind::MariaDb, "repeatable-read")]
    {
        let mut servers = Servers::start(kind, Durability::Durable).unwrap();
        let command = command_of(&servers);
        servers.kill().unwrap();
        let directory = TempDir::new().unwrap();
        let settings =
            with_faults(servers.url(), Workload::Mini, command.clone(), directory.path());
        let faults = Faults::new(vec![Fault::Power], command).with_disk(servers.directory());
        let settings = settings.with_isolation(isolation).with_faults(faults);
        let kept = run(&settings, &Handle::new(), &mut ()).unwrap();
        assert_proven(&kept);
        let found = (kept.judgement(), &kept.lost, kept.record.stopped);
        assert_eq!(found, (Judgement::Satisfied, &None, StopReason::Done), "{}", kept.promise());
    }
}
