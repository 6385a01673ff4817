//! Any database, by a driver program: JSON lines on its standard input and output.
//!
//! A program per connection, or one for all of them where it says so. The book's page on drivers has
//! the protocol word by word.

mod process;
mod session;
mod wire;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use isolario_workload::Kind;
use serde_json::json;

use crate::claims::Claim;
use crate::database::{Connection, Database, Layout, Traits};
use crate::error::{DbError, ErrorClass};
use crate::locked::locked;
use crate::registry::{Driver, Service, Settings};
use crate::url::DbUrl;
use process::{Line, Process};
use session::Session;
use wire::Greeting;

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["exec"],
    form: "exec:COMMAND",
    about: "anything else, by a driver program that speaks JSON lines",
    isolations: &[],
    claims: &[],
    service: Service::Program,
    open,
};

/// How long a driver may take to start, or to make room.
const PATIENCE: Duration = Duration::from_secs(30);
/// What an answer may take beyond the statement time-out, so that the driver's own comes first.
const GRACE: Duration = Duration::from_millis(500);

struct Exec {
    command: String,
    isolation: Option<String>,
    statement_timeout: Duration,
    /// What the first driver said, and the way to it, until somebody needs a connection.
    first: OnceLock<Result<Greeting, DbError>>,
    spare: Mutex<Option<Line>>,
    /// The driver that serves every session, if it does.
    shared: Mutex<Option<Arc<Process>>>,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let command = url.rest().trim();
    if command.is_empty() {
        return Err(DbError::fatal("exec: expected a command, as in exec:python3 driver.py"));
    }
    Ok(Box::new(Exec {
        command: command.to_owned(),
        isolation: settings.isolation.clone(),
        statement_timeout: settings.statement_timeout,
        first: OnceLock::new(),
        spare: Mutex::new(None),
        shared: Mutex::new(None),
    }))
}

impl Exec {
    /// Starts a driver and introduces us.
    fn start(&self) -> Result<(Arc<Process>, Line, Greeting), DbError> {
        let process = Process::start(&self.command)?;
        let mut line = Line::to(&process);
        let hello = json!({
            "do": "hello",
            "protocol": 1,
            "isolation": self.isolation,
            "timeout_ms": self.statement_timeout.as_millis() as u64,
        });
        // Whatever is wrong before there was any answer is wrong with the driver.
        let fatal = |error: DbError| match error.class {
            ErrorClass::Fatal => error,
            _ if error.code.is_some() => error,
            _ => error.with_class(ErrorClass::Fatal),
        };
        let answer = line.ask(hello, PATIENCE).map_err(fatal)?;
        let greeting = Greeting::read(&answer, self.isolation.as_deref())?;
        Ok((process, line, greeting))
    }

    /// What the first driver said.
    fn greeting(&self) -> Result<&Greeting, &DbError> {
        let first = self.first.get_or_init(|| {
            let (process, line, greeting) = self.start()?;
            match greeting.shared {
                true => {
                    process.share();
                    *locked(&self.shared) = Some(process);
                }
                false => *locked(&self.spare) = Some(line),
            }
            Ok(greeting)
        });
        first.as_ref()
    }

    /// The way to a driver that has said hello.
    fn line(&self) -> Result<Line, DbError> {
        let greeting = self.greeting().map_err(Clone::clone)?;
        if greeting.shared {
            return self.session();
        }
        let spare = locked(&self.spare).take();
        match spare {
            Some(line) => Ok(line),
            None => Ok(self.start()?.1),
        }
    }

    /// Another session of the driver that serves them all. If it has ended, it is started anew, by
    /// whoever comes first.
    fn session(&self) -> Result<Line, DbError> {
        let mut shared = locked(&self.shared);
        let process = match shared.take() {
            Some(process) if !process.is_over() => process,
            _ => {
                let (process, ..) = self.start()?;
                process.share();
                process
            }
        };
        let process = shared.insert(process);
        let mut line = Line::to(process);
        drop(shared);
        line.ask(json!({ "do": "connect" }), PATIENCE)?;
        Ok(line)
    }
}

impl Database for Exec {
    fn name(&self) -> &str {
        "exec"
    }

    fn version(&self) -> Result<String, DbError> {
        self.greeting().map(|greeting| greeting.name.clone()).map_err(Clone::clone)
    }

    /// A driver that cannot be started supports everything: what is wrong with it is reported when it
    /// is to make room.
    fn traits(&self) -> Traits<'_> {
        let greeting = self.greeting().ok();
        let told = greeting.and_then(|greeting| greeting.isolation.as_deref());
        Traits {
            isolation: told.or(self.isolation.as_deref()).unwrap_or("default"),
            workloads: greeting.map_or(&Kind::ALL, |greeting| &greeting.workloads),
            new_keys: greeting.is_some_and(|greeting| greeting.new_keys),
            by_driver: true,
            ..Traits::default()
        }
    }

    fn claim(&self, _: Kind, _: usize) -> Claim {
        match self.greeting() {
            Ok(Greeting { claim, .. }) if !claim.is_empty() => {
                Claim { levels: claim.clone(), source: "what the driver says".to_owned() }
            }
            _ => Claim::none("the driver claims nothing"),
        }
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let mut line = self.line()?;
        let request =
            json!({ "do": "prepare", "workload": layout.kind.name(), "keys": layout.keys });
        line.ask(request, PATIENCE)?;
        if !self.greeting().is_ok_and(|greeting| greeting.shared) {
            *locked(&self.spare) = Some(line);
        }
        Ok(())
    }

    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Session::new(self.line()?, self.statement_timeout + GRACE)))
    }
}
