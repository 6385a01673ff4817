//! A recording that is followed while it is written: whether memory stays the same, and how soon what is
//! wrong is found.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isolario::check::CheckOptions;
use isolario::follow::{Delays, Following, Input, Settings, Step, pause_after};
use isolario::formats::{self, LiveRecorder, SessionRecorder};
use isolario::model::{
    AnomalyKind, Level, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart, Value,
};
use isolario_bench::{Align, Arguments, Failure, Table, judge, peak_resident, process_time};
use isolario_sim::{Plant, generate};

use crate::follow::{FORMAT, PER_SECOND};
use crate::history::Recipe;

/// The option by which the benchmark calls itself to write a recording.
const RECORD: &str = "--record";

/// The level that is followed.
const LEVEL: Level = Level::Serializable;

/// So often the recording says how far it is.
const TICK: Duration = Duration::from_millis(10);

/// Figures are shown at so many points in time.
const POINTS: u32 = 10;

/// So many recordings end with an anomaly.
const ALARMS: usize = 20;

/// How long each of these is, in seconds.
const SECONDS_TO_ALARM: f64 = 2.0;

/// How long a recording is, and how fast it grows.
#[derive(Clone, Copy)]
struct Length {
    txns: u64,
    per_second: f64,
}

/// Follows a recording for so many minutes, and then short ones that end badly.
pub fn bench(minutes: f64, per_second: f64, directory: &Path) -> Result<(), Failure> {
    let file = directory.join("recording.iso");
    let seconds = minutes * 60.0;
    println!(
        "{LEVEL} of a recording that grows by {per_second} mini-transactions per second, for {minutes} min"
    );
    let length = |seconds: f64| Length { txns: (seconds * per_second) as u64, per_second };
    println!("{}", long(&file, length(seconds))?);
    let mut alarms = Delays::default();
    for _ in 0..ALARMS {
        alarms.add(until_alarm(&file, length(SECONDS_TO_ALARM.min(seconds)))?, 1);
    }
    std::fs::remove_file(&file)?;
    println!("From the end of a lost update to the alarm, {ALARMS} recordings: {}", told(&alarms));
    Ok(())
}

/// Median and most of delays, in milliseconds.
fn told(delays: &Delays) -> String {
    let ms = |share| delays.quantile(share).map_or(0.0, |delay| delay.as_secs_f64() * 1e3);
    format!("median {:.0} ms, p99 {:.0} ms", ms(0.5), ms(0.99))
}

/// Follows a recording that satisfies the level to its end.
fn long(file: &Path, length: Length) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        ("after s", Align::Right),
        ("1000 txns", Align::Right),
        ("1000 txn/s", Align::Right),
        ("cpu us/txn", Align::Right),
        ("delay so far", Align::Left),
        ("peak MB", Align::Right),
        ("target", Align::Left),
    ]);
    let mut recording = Recording::start(file, length, false)?;
    let mut following = recording.follow(file)?;
    let (begun, cpu) = (Instant::now(), process_time());
    let mut delays = Delays::default();
    for point in 1..=POINTS {
        let until = length.txns * u64::from(point) / u64::from(POINTS);
        while following.follower().arrived() < until {
            let before = following.follower().arrived();
            match following.step()? {
                Step::Decided(_) => return Err(format!("{LEVEL} should hold").into()),
                Step::Nothing | Step::Holds { .. } | Step::Again => {}
            }
            let arrived = following.follower().arrived();
            recording.looked_at(arrived, &mut delays);
            thread::sleep(pause_after(arrived.saturating_sub(before)));
        }
        let (arrived, seconds) = (following.follower().arrived(), begun.elapsed().as_secs_f64());
        let per_txn = (process_time() - cpu).as_secs_f64() / arrived as f64;
        table.row([
            format!("{seconds:.1}"),
            format!("{}", arrived / 1000),
            format!("{:.0}", arrived as f64 / seconds / 1e3),
            format!("{:.2}", per_txn * 1e6),
            told(&delays),
            format!("{:.0}", peak_resident()? as f64 / 1e6),
            format!("{} per core {}", PER_SECOND, judge(per_txn * PER_SECOND <= 1.0)),
        ]);
    }
    recording.end()?;
    Ok(table)
}

/// How long it takes from the end of a recording, which is an anomaly, to the alarm.
fn until_alarm(file: &Path, length: Length) -> Result<Duration, Failure> {
    let mut recording = Recording::start(file, length, true)?;
    let mut following = recording.follow(file)?;
    loop {
        let before = following.follower().arrived();
        if let Step::Decided(_) = following.step()? {
            break;
        }
        let arrived = following.follower().arrived();
        thread::sleep(pause_after(arrived.saturating_sub(before)));
    }
    let alarm = now();
    recording.end()?;
    let last = recording.marks.iter().last().ok_or("nothing was recorded")?;
    Ok(Duration::from_nanos(alarm.saturating_sub(last.at)))
}

/// How far a recording was, and when.
struct Mark {
    txns: u64,
    /// In nanoseconds since 1970: two processes talk about it.
    at: u64,
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// A process that records, and what it says.
struct Recording {
    child: Child,
    marks: Receiver<Mark>,
    /// The first mark that was not looked at.
    next: Option<Mark>,
}

impl Recording {
    fn start(file: &Path, length: Length, ends_badly: bool) -> Result<Recording, Failure> {
        let Length { txns, per_second } = length;
        let mut child = Command::new(std::env::current_exe()?)
            .args([RECORD, &txns.to_string(), &per_second.to_string(), &ends_badly.to_string()])
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("no output")?;
        let (send, marks) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let numbers = line.split_once(' ');
                let mark = numbers.and_then(|(txns, at)| {
                    Some(Mark { txns: txns.parse().ok()?, at: at.parse().ok()? })
                });
                if mark.is_none_or(|mark| send.send(mark).is_err()) {
                    return;
                }
            }
        });
        Ok(Recording { child, marks, next: None })
    }

    /// Follows the level, once the file is there.
    fn follow<'i>(&mut self, file: &'i Path) -> Result<Following<'i>, Failure> {
        self.next = Some(self.marks.recv()?);
        let format = formats::find(FORMAT).ok_or("no such format")?;
        let input = Input::new(file, format);
        Ok(Following::new(input, LEVEL, &CheckOptions::default(), Settings::default())?)
    }

    /// So many transactions have been looked at.
    fn looked_at(&mut self, txns: u64, delays: &mut Delays) {
        let now = now();
        while let Some(mark) = self.next.take().or_else(|| self.marks.try_recv().ok()) {
            if mark.txns > txns {
                self.next = Some(mark);
                break;
            }
            delays.add(Duration::from_nanos(now.saturating_sub(mark.at)), 1);
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err("the recording failed".into()),
        }
    }
}

/// The child's side: if this process is one, it records.
pub fn record_if_child(arguments: &Arguments) -> Result<bool, Failure> {
    let [first, txns, per_second, ends_badly, file] = arguments.all() else { return Ok(false) };
    if first != RECORD {
        return Ok(false);
    }
    let txns: u64 = txns.parse()?;
    let mut config = Recipe::mini(txns, 10_000, FORMAT).config();
    if ends_badly.parse()? {
        config.anomalies = vec![Plant { kind: AnomalyKind::LostUpdate, at: 1.0 }];
    }
    let recorder = OnceCell::new();
    let begun = Instant::now();
    let mut paced = Paced {
        file: Path::new(file),
        recorder: &recorder,
        sessions: BTreeMap::new(),
        current: None,
        txns: 0,
        per_second: per_second.parse()?,
        begun,
        tick: begun,
    };
    generate(&config, &mut paced)?;
    paced.mark();
    Ok(true)
}

/// Records transactions at an even pace, and says how far it is.
struct Paced<'r> {
    file: &'r Path,
    /// There once it is known what holds for all.
    recorder: &'r OnceCell<LiveRecorder>,
    sessions: BTreeMap<Value, SessionRecorder<'r>>,
    /// The session of the transaction at hand.
    current: Option<Value>,
    txns: u64,
    per_second: f64,
    begun: Instant,
    /// When it said so last.
    tick: Instant,
}

impl<'r> Paced<'r> {
    fn session(&mut self) -> Result<&mut SessionRecorder<'r>, SinkError> {
        let current = self.current.as_ref().and_then(|name| self.sessions.get_mut(name));
        current.ok_or(SinkError::Sequence("no transaction has begun"))
    }

    fn mark(&mut self) {
        println!("{} {}", self.txns, now());
        // Whoever reads this may have ended.
        let _ = std::io::stdout().flush();
        self.tick = Instant::now();
    }
}

impl TxnSink for Paced<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        let recorder = LiveRecorder::create(self.file, meta)?;
        self.recorder.set(recorder).map_err(|_| SinkError::Sequence("said twice"))
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        let name = start.session.to_owned();
        if !self.sessions.contains_key(&name) {
            let recorder = self.recorder.get().ok_or(SinkError::Sequence("no file"))?;
            self.sessions.insert(name.clone(), recorder.session());
        }
        self.current = Some(name);
        self.session()?.begin(start, None, &[])
    }

    fn op_with(&mut self, op: &OpInput<'_>, _: &OpNotes<'_>) -> Result<(), SinkError> {
        self.session()?.op(op)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let session = self.session()?;
        session.end(end)?;
        session.flush()?;
        self.txns += 1;
        if self.tick.elapsed() >= TICK || self.txns == 1 {
            self.mark();
        }
        let ahead = Duration::from_secs_f64(self.txns as f64 / self.per_second);
        let ahead = ahead.saturating_sub(self.begun.elapsed());
        if ahead >= TICK {
            self.mark();
            thread::sleep(ahead);
        }
        Ok(())
    }
}
