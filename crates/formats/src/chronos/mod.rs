//! Chronos: one JSON array of transactions with the database's own start and commit timestamps.
//!
//! ```json
//! [{"sid": 1, "tid": 7, "sts": {"p": "320", "l": 0}, "cts": {"p": "322", "l": 0},
//!   "ops": [{"t": "r", "k": 5, "v": 0}, {"t": "w", "k": 5, "v": 9}]}]
//! ```

mod read;
mod shape;
mod write;

use isolario_model::SinkError;

use crate::collect::Collector;
use crate::json_text::after_tokens;
use crate::{HistoryFormat, HistoryWriter, Loaded, ReadError, Source, Target};

const NAME: &str = "chronos";

/// The format of Chronos and TimeKiller.
pub(crate) struct Chronos;

impl HistoryFormat for Chronos {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Chronos: a JSON array of transactions with database timestamps"
    }

    /// An array whose first element is an object that begins with one of the five fields.
    fn sniff(&self, source: &Source) -> bool {
        let text = source.file().unwrap_or_default();
        after_tokens(text, &["[", "{"]).is_some_and(|object| {
            let fields = ["\"sid\"", "\"tid\"", "\"sts\"", "\"cts\"", "\"ops\""];
            fields.iter().any(|field| after_tokens(object, &[field, ":"]).is_some())
        })
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read::read(source)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::<Chronos>::boxed(target))
    }
}

#[cfg(test)]
mod tests;
