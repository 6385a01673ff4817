//! Generates, writes and tells.

use std::io;
use std::time::Instant;

use isolario::model::{SinkError, TxnSink};
use isolario::sim::{GenerateError, Summary};

use super::orders::OrderFiles;
use super::settings::Generate;
use super::summary::Told;
use crate::args::OutputForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::progress::Progress;

pub(crate) fn run(
    what: &Generate,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    if output == OutputForm::Json && what.output.is_stdout() {
        let both = "the history and the summary as JSON cannot both go to standard output";
        return Err(Failure::new(both).with_hint("write the history to a file with -o FILE"));
    }
    what.output.refuse_existing()?;
    what.orders.refuse_existing(what.output.force)?;
    let mut orders = what.orders.create();
    let begun = Instant::now();
    let progress = (!console.quiet).then(|| Progress::start("generating".to_owned()));
    let written = what.output.write(|sink| fill(what, sink, &mut orders))?;
    drop(progress);
    // Whoever closes the pipe has seen enough.
    let Some(summary) = written else { return Ok(Outcome::Done) };
    let told = Told { what, summary, time: begun.elapsed() };
    match output {
        OutputForm::Json => told.json(console.out())?,
        OutputForm::Human => told.notes(console),
    }
    Ok(if orders.finish(console) { Outcome::Done } else { Outcome::Error })
}

fn fill(
    what: &Generate,
    sink: &mut dyn TxnSink,
    orders: &mut OrderFiles<'_>,
) -> Result<Summary, SinkError> {
    what.subject.generate(sink, orders, what.orders.share).map_err(|error| match error {
        GenerateError::Sink(error) => error,
        // The settings were looked at before.
        other => SinkError::Io(io::Error::other(other.to_string())),
    })
}
