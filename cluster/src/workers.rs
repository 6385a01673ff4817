//! Worker processes: each is this program once more, with some of the keys, and does what it is told line by line.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use isolario_check::{CheckOptions, Checker};
use isolario_formats::read;
use isolario_model::Level;

use crate::Error;
use crate::engine::{Engine, Settings};

/// What a worker is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'r> {
    /// To know these files as a table.
    Table { name: &'r str, files: &'r [PathBuf] },
    /// To give a query a name.
    View { name: &'r str, query: &'r str },
    /// To work a query out, and to keep what comes of it in a file and under a name.
    Keep { name: &'r str, query: &'r str, file: &'r Path },
    /// To decide a level of these histories, and to say which do not satisfy it, by their places in the list.
    Decide { level: Level, files: &'r [PathBuf] },
}

impl Request<'_> {
    /// The request as a line, its fields between tabs. Blanks of a query are all the same.
    fn line(&self) -> String {
        let spaced = |query: &str| query.replace(['\n', '\t'], " ");
        let listed = |files: &[PathBuf]| {
            files.iter().map(|file| format!("\t{}", file.display())).collect::<String>()
        };
        match self {
            Request::Table { name, files } => format!("table\t{name}{}", listed(files)),
            Request::View { name, query } => format!("view\t{name}\t{}", spaced(query)),
            Request::Keep { name, query, file } => {
                format!("keep\t{name}\t{}\t{}", spaced(query), file.display())
            }
            Request::Decide { level, files } => {
                format!("decide\t{}{}", level.name(), listed(files))
            }
        }
    }
}

/// What a worker found, if anything: places in a list.
type Found = Vec<usize>;

/// The processes at work. They end with what they read from.
pub(crate) struct Workers(Vec<Worker>);

struct Worker {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it works on.
    files: Vec<PathBuf>,
}

impl Workers {
    pub(crate) fn start(settings: &Settings) -> Result<Workers, Error> {
        let failed = |error: io::Error| worker_failed(&[], error);
        let workers = (0..settings.workers).map(|_| Worker::start(settings).map_err(failed));
        workers.collect::<Result<_, _>>().map(Workers)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Divides the files among the workers.
    pub(crate) fn open(&mut self, files: &[PathBuf]) -> Result<(), Error> {
        if self.len() > files.len() {
            let problem = format!("{} workers are too many for {} parts", self.len(), files.len());
            return Err(worker_failed(files, problem));
        }
        let count = self.len();
        for (at, worker) in self.0.iter_mut().enumerate() {
            worker.files = files.iter().skip(at).step_by(count).cloned().collect();
        }
        let files: Vec<_> = self.0.iter().map(|worker| worker.files.clone()).collect();
        self.ask_all(|at| Request::Table { name: "ops", files: &files[at] }).map(|_| ())
    }

    /// Asks all of them at once, each with its number, and waits until all are done.
    pub(crate) fn ask_all<'r>(
        &mut self,
        request: impl Fn(usize) -> Request<'r>,
    ) -> Result<Vec<Found>, Error> {
        for (at, worker) in self.0.iter_mut().enumerate() {
            worker.ask(&request(at))?;
        }
        // All are waited for, so that the next request finds nobody at work.
        let answers: Vec<_> = self.0.iter_mut().map(Worker::wait).collect();
        answers.into_iter().collect()
    }
}

fn worker_failed(files: &[PathBuf], problem: impl ToString) -> Error {
    Error::Worker { files: files.to_vec(), problem: problem.to_string() }
}

impl Worker {
    fn start(settings: &Settings) -> io::Result<Worker> {
        let program = settings.program.clone().map_or_else(std::env::current_exe, Ok)?;
        let mut command = Command::new(program);
        command.arg("work").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mebibytes = settings.memory.map(|bytes| bytes >> 20);
        for (flag, number) in [("--memory", mebibytes), ("--partitions", settings.partitions)] {
            command
                .args(number.into_iter().flat_map(|number| [flag.to_owned(), number.to_string()]));
        }
        if let Some(work) = &settings.work {
            command.arg("--work").arg(work);
        }
        let mut process = command.spawn()?;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let requests = Some(process.stdin.take().ok_or_else(gone)?);
        let answers = BufReader::new(process.stdout.take().ok_or_else(gone)?);
        Ok(Worker { process, requests, answers, files: Vec::new() })
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let line = request.line();
        let sent = self.requests.as_mut().map_or(Ok(()), |requests| writeln!(requests, "{line}"));
        sent.map_err(|error| worker_failed(&self.files, error))
    }

    fn wait(&mut self) -> Result<Found, Error> {
        let mut answer = String::new();
        let failed = |problem: &dyn ToString| worker_failed(&self.files, problem.to_string());
        let read = self.answers.read_line(&mut answer).map_err(|error| failed(&error))?;
        let mut fields = answer.trim_end().split('\t');
        match fields.next() {
            Some(DONE) => Ok(fields.filter_map(|place| place.parse().ok()).collect()),
            Some(problem) if read > 0 => Err(failed(&problem)),
            _ => Err(failed(&"it ended before it was done")),
        }
    }
}

impl Drop for Worker {
    /// It ends when there is nothing more to read.
    fn drop(&mut self) {
        self.requests = None;
        // Nobody is left to be told how it ended.
        let _ = self.process.wait();
    }
}

const DONE: &str = "done";

/// What a worker does: carries out the requests that it reads, and answers each with a line.
pub fn serve(
    settings: &Settings,
    requests: impl BufRead,
    mut answers: impl Write,
) -> Result<(), Error> {
    let mut engine = Engine::new(settings)?;
    let serve_all = || -> io::Result<()> {
        for line in requests.lines() {
            match carry_out(&mut engine, &line?) {
                Ok(found) => {
                    let places: String = found.iter().map(|place| format!("\t{place}")).collect();
                    writeln!(answers, "{DONE}{places}")?;
                }
                Err(error) => {
                    writeln!(answers, "{}", error.to_string().replace(['\n', '\t'], " "))?
                }
            }
            answers.flush()?;
        }
        Ok(())
    };
    serve_all().map_err(Error::file(Path::new("standard input")))
}

fn carry_out(engine: &mut Engine, line: &str) -> Result<Found, Error> {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields[..] {
        ["table", name, ref files @ ..] => {
            engine.register(name, &files.iter().map(PathBuf::from).collect::<Vec<_>>())?;
        }
        ["view", name, query] => engine.view(name, query)?,
        ["keep", name, query, file] => engine.keep_in(name, query, Path::new(file))?,
        ["decide", level, ref files @ ..] => return decide(level, files),
        _ => return Err(worker_failed(&[], format!("not a request: {line}"))),
    }
    Ok(Found::new())
}

fn decide(level: &str, files: &[&str]) -> Result<Found, Error> {
    let no_level = || worker_failed(&[], format!("not a level: {level}"));
    let level = Level::find(level).ok_or_else(no_level)?;
    let mut found = Found::new();
    for (at, file) in files.iter().enumerate() {
        let history = read(Path::new(file))?.history;
        let result = Checker::new(&history, CheckOptions::default()).check(level);
        if !result.verdict.is_satisfied() {
            found.push(at);
        }
    }
    Ok(found)
}
