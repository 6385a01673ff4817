//! The streams: data on standard output, everything else on standard error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style as Ansi};
use clap::ColorChoice;
use isolario::report::{Human, Style, printable};

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::terminal::Guarded;

/// Where a command writes to.
pub(crate) struct Console {
    out: Guarded<BufWriter<Persistent<Stdout>>>,
    /// The style of data.
    pub(crate) style: Style,
    /// How many columns text for people may take, where standard output is a terminal.
    pub(crate) columns: Option<usize>,
    /// Whether standard output takes links.
    pub(crate) links: bool,
    error_style: Style,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

impl Console {
    pub(crate) fn new(args: &GlobalArgs) -> Console {
        let style = |auto: anstream::ColorChoice| match (args.color, auto) {
            (ColorChoice::Never, _) | (ColorChoice::Auto, anstream::ColorChoice::Never) => {
                Style::Plain
            }
            _ => Style::Coloured,
        };
        Console {
            out: Guarded::new(BufWriter::new(Persistent::new(io::stdout()))),
            style: style(AutoStream::choice(&io::stdout())),
            columns: columns(),
            links: io::stdout().is_terminal() && takes_links(|name| std::env::var(name).ok()),
            error_style: style(AutoStream::choice(&io::stderr())),
            quiet: args.quiet,
            verbose: args.verbose,
        }
    }

    /// The renderer of text for people.
    pub(crate) fn human(&self) -> Human {
        let mut human = Human::new(self.style);
        human.columns = self.columns;
        human
    }

    /// The stream for data.
    pub(crate) fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Writes out what is still held back. If standard output failed, it says so now.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.inner().get_mut().failure.take().map_or(Ok(()), Err)
    }

    /// Says what went wrong and how to fix it.
    pub(crate) fn error(&mut self, failure: &Failure) {
        self.say("error", AnsiColor::Red.on_default().bold(), &failure.message);
        if let Some(hint) = &failure.hint {
            self.say("  hint", AnsiColor::Cyan.on_default(), hint);
        }
    }

    /// Says what is wrong, unless told to be quiet.
    pub(crate) fn warning(&mut self, message: &str) {
        if !self.quiet {
            self.caution(message);
        }
    }

    /// Says what the answer does not take into account, even if told to be quiet.
    pub(crate) fn caution(&mut self, message: &str) {
        self.say("warning", AnsiColor::Yellow.on_default().bold(), message);
    }

    /// Says what happened, unless told to be quiet.
    pub(crate) fn info(&mut self, message: &str) {
        if !self.quiet {
            self.say("note", AnsiColor::Cyan.on_default(), message);
        }
    }

    /// Says what only those want to know who ask for more.
    pub(crate) fn detail(&mut self, message: &str) {
        if self.verbose {
            self.info(message);
        }
    }

    fn say(&mut self, label: &str, style: Ansi, message: &str) {
        let style = if self.error_style == Style::Coloured { style } else { Ansi::new() };
        // Data first, so that both streams read in order on one terminal. Where the error stream
        // itself fails, there is nobody left to tell.
        let _ = self.out.flush();
        let _ = writeln!(io::stderr(), "{style}{label}{style:#}: {}", printable(message));
    }
}

/// Lines longer than this are hard to read, and shorter ones than that hold nothing.
const WIDEST: usize = 120;
const NARROWEST: usize = 40;

fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0).clamp(NARROWEST, WIDEST))
}

/// Whether a terminal takes links (OSC 8), as far as its environment says. One that does not shows
/// nothing of them, but for a few old ones; where colours are unwanted, links are, too.
fn takes_links(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, values: &[&str]| {
        variable(name).is_some_and(|value| values.iter().any(|known| value.contains(known)))
    };
    if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) || is("TERM", &["dumb", "linux"])
    {
        return false;
    }
    is("TERM_PROGRAM", &["iTerm", "WezTerm", "vscode", "ghostty", "Hyper", "rio"])
        || is("TERM", &["kitty", "alacritty", "foot", "ghostty", "wezterm"])
        || variable("VTE_VERSION").and_then(|version| version.parse().ok()) >= Some(5000)
        || ["WT_SESSION", "KONSOLE_VERSION", "DOMTERM"].iter().any(|name| variable(name).is_some())
}

/// A writer that keeps its first error for the end: standard output on a full disk must not cost the
/// files that can still be written.
struct Persistent<W> {
    inner: PipeTolerant<W>,
    failure: Option<io::Error>,
}

impl<W> Persistent<W> {
    fn new(inner: W) -> Self {
        Persistent { inner: PipeTolerant::new(inner), failure: None }
    }

    fn keep<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        result.or_else(|error| match error.kind() {
            // Whoever wrote tries again.
            io::ErrorKind::Interrupted => Err(error),
            _ => {
                self.failure = Some(error);
                Ok(instead)
            }
        })
    }
}

impl<W: Write> Write for Persistent<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_some() {
            return Ok(bytes.len());
        }
        let written = self.inner.write(bytes);
        self.keep(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.keep(flushed, ())
    }
}

/// A writer to which a closed pipe is not an error: the reader has seen enough. The rest is
/// dropped, the work goes on, and the exit code still tells the verdict.
pub(crate) struct PipeTolerant<W> {
    inner: W,
    closed: bool,
}

impl<W> PipeTolerant<W> {
    pub(crate) fn new(inner: W) -> Self {
        PipeTolerant { inner, closed: false }
    }

    fn tolerate<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for PipeTolerant<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.inner.write(bytes);
        self.tolerate(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.tolerate(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with the given kind.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_pipe_swallows_everything_and_other_errors_stay_errors() {
        let mut closed = PipeTolerant::new(Failing(io::ErrorKind::BrokenPipe));
        assert!(closed.write_all(b"some").is_ok() && closed.write_all(b"more").is_ok());
        assert!(closed.flush().is_ok());
        let mut full = PipeTolerant::new(Failing(io::ErrorKind::StorageFull));
        assert!(full.write_all(b"some").is_err() && full.flush().is_err());
    }

    #[test]
    fn links_are_for_terminals_that_are_known_to_take_them() {
        let takes = |variables: &[(&str, &str)]| {
            takes_links(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(takes(&[("TERM", "xterm-kitty")]));
        assert!(takes(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7006")]));
        assert!(takes(&[("TERM_PROGRAM", "vscode")]));
        assert!(!takes(&[("TERM", "xterm-256color")]));
        assert!(!takes(&[("VTE_VERSION", "4200")]));
        assert!(!takes(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]));
        assert!(!takes(&[]));
    }

    #[test]
    fn an_error_is_kept_for_the_end() {
        let mut full = Persistent::new(Failing(io::ErrorKind::StorageFull));
        assert!(full.write_all(b"some").is_ok() && full.flush().is_ok());
        assert_eq!(full.failure.map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    }
}
