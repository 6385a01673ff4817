//! Probes: scripted interleavings that show which anomalies can happen at which isolation level of a
//! database.
//!
//! A probe is a [`Script`] that, if all goes as written, has shown an anomaly. [`shipped`] are the
//! classic ones. [`probe`] plays them at every isolation level, records each play as a history, lets
//! the checkers judge that history, too, and makes a [`ProbeTable`] of it all. Where script and
//! checkers contradict each other, one of them is wrong, and the table says so.
//!
//! ```
//! use isolario::db::DbUrl;
//! use isolario::probe::{Settings, probe, shipped};
//! use isolario::report::ProbeOutcome;
//! use std::ops::ControlFlow;
//!
//! let mut settings = Settings::new(vec![DbUrl::parse("sqlite:")?]);
//! settings.scripts = shipped().into_iter().filter(|script| script.name == "lost-update").collect();
//! let table = probe(&settings, &mut |_, _| ControlFlow::Continue(()))?;
//! assert_eq!(table.probes[0].results[0].outcome, ProbeOutcome::Waits);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod judge;
mod record;
mod rows;
mod shipped;
mod statement;
mod transcript;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::script::{Script, ScriptFamily, ScriptRun, ScriptRunner};
use isolario_db::{self as db, Claim, DRIVERS, Database, DbError, DbUrl, Hold};
use isolario_model::Level;
use isolario_report::{MovingSessions, Probe, ProbeOutcome, ProbeResult, ProbeSetting, ProbeTable};
use isolario_workload::Kind;

use crate::run::RunError;
use judge::{Evidence, judge};

pub use shipped::shipped;

/// What to probe, and with what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The nodes of the database.
    pub urls: Vec<DbUrl>,
    /// The isolation levels, by the database's own names; all of them if there are none.
    pub isolations: Vec<String>,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// The scripts.
    pub scripts: Vec<Script>,
}

impl Settings {
    /// All shipped probes, at every isolation level of a database, given by its nodes.
    pub fn new(urls: Vec<DbUrl>) -> Settings {
        Settings {
            urls,
            isolations: Vec::new(),
            statement_timeout: db::Settings::default().statement_timeout,
            scripts: shipped(),
        }
    }

    /// The isolation levels to try; nothing is the only one of a database that has no names for
    /// them.
    fn levels(&self) -> Vec<Option<String>> {
        let known = |url: &DbUrl| {
            let driver = DRIVERS.iter().find(|driver| driver.schemes.contains(&url.scheme()));
            driver.map_or(&[][..], |driver| driver.isolations)
        };
        let known = self.urls.first().map_or(&[][..], known);
        match (self.isolations.as_slice(), known) {
            ([], []) => vec![None],
            ([], known) => known.iter().map(|name| Some((*name).to_owned())).collect(),
            (named, _) => named.iter().cloned().map(Some).collect(),
        }
    }

    fn open(&self, isolation: Option<&String>) -> Result<Vec<Box<dyn Database>>, RunError> {
        let asked = db::Settings {
            isolation: isolation.cloned(),
            statement_timeout: self.statement_timeout,
            ..db::Settings::default()
        };
        let opened = self.urls.iter().map(|url| db::open(url, &asked).map_err(RunError::Open));
        opened.collect()
    }

    fn at(&self, node: usize, error: DbError) -> RunError {
        RunError::Database { url: self.urls.get(node).cloned(), error }
    }
}

/// Is told which script is about to be played at which isolation level, and may end it all.
pub type Observer<'a> = dyn FnMut(&str, &Script) -> ControlFlow<()> + 'a;

/// Plays the scripts at every isolation level. Those that make no sense for the database, or take
/// more nodes than there are, are left out.
pub fn probe(settings: &Settings, observer: &mut Observer<'_>) -> Result<ProbeTable, RunError> {
    let mut table = ProbeTable {
        urls: settings.urls.iter().map(ToString::to_string).collect(),
        ..ProbeTable::default()
    };
    let mut scripts = Vec::new();
    let mut is_over = false;
    let mut hold = None;
    for isolation in settings.levels() {
        let nodes = Arc::new(settings.open(isolation.as_ref())?);
        let first = nodes.first().ok_or(RunError::Nothing("databases"))?;
        if table.settings.is_empty() {
            table.database = identify(&nodes, settings)?;
            let playable = |script: &&Script| is_playable(script, first.as_ref(), nodes.len());
            scripts = settings.scripts.iter().filter(playable).collect();
            table.probes = scripts.iter().map(|script| row(script)).collect();
            let taken = Hold::take(&nodes, None);
            hold = Some(taken.map_err(|(node, error)| settings.at(node, error))?);
        }
        let setting = Setting { nodes: &nodes, isolation: first.traits().isolation.to_owned() };
        let column = match is_over {
            true => Ok(Err("interrupted".to_owned())),
            false => setting.play_all(&scripts, settings, hold.as_ref(), observer),
        };
        // What another run did to the tables is no reason to report anything.
        let is_alone = hold.as_ref().map_or(Ok(()), |hold| hold.confirm(false));
        is_alone.map_err(|error| settings.at(0, error))?;
        let column = column?;
        is_over |= column.is_err();
        setting.enter(&mut table, &scripts, &column);
    }
    Ok(table)
}

/// Asks the nodes who they are; the answers must agree.
fn identify(nodes: &[Box<dyn Database>], settings: &Settings) -> Result<String, RunError> {
    let mut version = None;
    for (number, node) in nodes.iter().enumerate() {
        let own = node.version().map_err(|error| settings.at(number, error))?;
        version.get_or_insert(own);
        if node.name() != nodes[0].name() {
            let (first, other) = (nodes[0].name().to_owned(), node.name().to_owned());
            return Err(RunError::DifferentDatabases { first, other });
        }
    }
    Ok(version.unwrap_or_default())
}

fn is_playable(script: &Script, database: &dyn Database, nodes: usize) -> bool {
    let is_named = |name: &String| name == database.name();
    let has_statements = match script.family {
        ScriptFamily::Registers => database.traits().workloads.contains(&Kind::General),
        ScriptFamily::Lists => database.traits().workloads.contains(&Kind::Append),
        _ => database.sql().is_ok(),
    };
    has_statements
        && script.nodes <= nodes
        && (script.databases.is_empty() || script.databases.iter().any(is_named))
}

fn row(script: &Script) -> Probe {
    Probe {
        name: script.name.clone(),
        title: script.title.clone(),
        about: script.about.clone(),
        anomaly: script.anomaly,
        forbidden_by: script.forbidden_by.clone(),
        results: Vec::new(),
    }
}

/// The nodes of a database at one of its isolation levels.
struct Setting<'d> {
    nodes: &'d [Box<dyn Database>],
    isolation: String,
}

/// A play, or why there is none.
type Played = Result<ScriptRun, String>;

impl Setting<'_> {
    /// Plays every script; tells why none can be played, if that is so. A level that the server does
    /// not know is such a reason: it may be too old.
    fn play_all(
        &self,
        scripts: &[&Script],
        settings: &Settings,
        hold: Option<&Hold>,
        observer: &mut Observer<'_>,
    ) -> Result<Result<Vec<Played>, String>, RunError> {
        let stage = ScriptRunner::new(self.nodes).and_then(|stage| {
            self.nodes[0].connect()?;
            Ok(stage)
        });
        let mut stage = match stage {
            Ok(stage) => stage,
            Err(error) if error.obstacle.is_none() && error.code.is_some() => {
                let refused = |_: &&Script| Err(error.to_string());
                return Ok(Ok(scripts.iter().map(refused).collect()));
            }
            Err(error) => return Err(settings.at(0, error)),
        };
        hold.iter().for_each(|hold| hold.mark_data(&ScriptRunner::room()));
        let mut plays: Vec<Played> = scripts.iter().map(|_| Err(String::new())).collect();
        // Statements in SQL last: registers and SQL use the same table, each in its own way.
        let mut order: Vec<usize> = (0..scripts.len()).collect();
        order.sort_by_key(|at| scripts[*at].family == ScriptFamily::Sql);
        for at in order {
            if observer(&self.isolation, scripts[at]).is_break() {
                return Ok(Err("interrupted".to_owned()));
            }
            plays[at] = match self.play(&mut stage, scripts[at]) {
                Err(error) if error.obstacle.is_some() => return Err(settings.at(0, error)),
                played => played.map_err(|error| error.to_string()),
            };
        }
        Ok(Ok(plays))
    }

    /// What is a matter of chance is tried until it happens, and so is what leads nowhere, such as a
    /// commit of unknown outcome. On one node nothing is a matter of chance.
    fn play(&self, stage: &mut ScriptRunner<'_>, script: &Script) -> Result<ScriptRun, DbError> {
        let tries = if self.nodes.len() > 1 { script.tries } else { 1 };
        let mut played = stage.play(script);
        for _ in 1..tries {
            match &played {
                Ok(play) if judge(script, play).outcome == ProbeOutcome::Happens => break,
                Err(error) if error.obstacle.is_some() => break,
                _ => played = stage.play(script).or(played),
            }
        }
        played
    }

    /// Puts what came of it into the table.
    fn enter(
        &self,
        table: &mut ProbeTable,
        scripts: &[&Script],
        column: &Result<Vec<Played>, String>,
    ) {
        let (mut staying, mut moving) = (Evidence::default(), None);
        for (at, (probe, script)) in table.probes.iter_mut().zip(scripts).enumerate() {
            let played = match column {
                Ok(plays) => plays[at].as_ref(),
                Err(why) => Err(why),
            };
            probe.results.push(match played {
                Ok(play) if self.moves_sessions(script) => {
                    self.result(script, play, moving.get_or_insert_with(Evidence::default))
                }
                Ok(play) => self.result(script, play, &mut staying),
                Err(why) => ProbeResult {
                    outcome: ProbeOutcome::NotRun { why: why.clone() },
                    ..ProbeResult::default()
                },
            });
        }
        let claim = self.claim(Kind::Mini);
        table.settings.push(ProbeSetting {
            isolation: self.isolation.clone(),
            moving: moving.map(|moving| MovingSessions {
                claims: claim.levels.iter().copied().filter(is_claimed_everywhere).collect(),
                in_effect: moving.and(&staying).in_effect(),
            }),
            claims: claim.levels,
            claim_source: claim.source,
            in_effect: staying.in_effect(),
        });
    }

    fn result(&self, script: &Script, play: &ScriptRun, evidence: &mut Evidence) -> ProbeResult {
        let judged = judge(script, play);
        evidence.add(script, &judged);
        ProbeResult {
            outcome: judged.outcome,
            is_forbidden: self.is_forbidden(script),
            violated: judged.violated,
            anomalies: judged.anomalies,
            disagreement: judged.disagreement,
            note: judged.note,
            transcript: transcript::of(script, play),
        }
    }

    /// Whether a session of the script goes on at another node.
    fn moves_sessions(&self, script: &Script) -> bool {
        self.nodes.len() > 1 && script.moves_sessions()
    }

    /// Whether the database claims to prevent it.
    fn is_forbidden(&self, script: &Script) -> bool {
        let mut claimed = self.claim(kind(script)).levels;
        if self.moves_sessions(script) {
            claimed.retain(is_claimed_everywhere);
        }
        let forbids = |claimed: &Level| script.forbidden_by.iter().any(|l| claimed.implies(*l));
        claimed.iter().any(forbids)
    }

    fn claim(&self, kind: Kind) -> Claim {
        match self.nodes.first() {
            Some(node) => node.claim(kind, self.nodes.len()),
            None => Claim::none("there is no database"),
        }
    }
}

/// Whether a claim holds for sessions that move between nodes. Others are about sessions that stay: what a
/// client did elsewhere, its new node does not know. In real time, who did it does not matter.
fn is_claimed_everywhere(claimed: &Level) -> bool {
    claimed.shape().real_time
}

/// The workload whose claim is about what a script does.
fn kind(script: &Script) -> Kind {
    match script.family {
        ScriptFamily::Lists => Kind::Append,
        ScriptFamily::Registers if script.reads_before_writes() => Kind::Mini,
        _ => Kind::General,
    }
}
