//! What is measured.

use std::path::Path;

use isolario_bench::{Failure, Job, Kept, Stopwatch};
use isolario_formats::Source;

/// Work on the file of a history.
#[derive(Clone, Copy)]
pub enum Work {
    /// A floor: count the newlines.
    Count,
    /// A floor: copy the bytes.
    Copy,
    /// Open and parse to a history, in the format of this name.
    Load(&'static str),
}

impl Job for Work {
    fn name(&self) -> String {
        match self {
            Work::Count => "count".to_owned(),
            Work::Copy => "copy".to_owned(),
            Work::Load(format) => (*format).to_owned(),
        }
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
        match name {
            "count" => Ok(Work::Count),
            "copy" => Ok(Work::Copy),
            _ => Ok(Work::Load(isolario_formats::find(name).ok_or("no such format")?.name())),
        }
    }

    fn run(&self, file: &Path, _: &mut Stopwatch) -> Result<Kept, Failure> {
        let source = Source::open(file)?;
        Ok(match self {
            Work::Count => Box::new(isolario_bench::count_newlines(source.require_file()?)),
            Work::Copy => Box::new(isolario_bench::copy(source.require_file()?)),
            Work::Load(format) => {
                let format = isolario_formats::find(format).ok_or("no such format")?;
                let loaded = format.read(&source)?;
                Box::new((source, loaded))
            }
        })
    }
}
