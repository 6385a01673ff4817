//! `isolario check --proof`: why the answers are what they are, for another program to re-check.

use std::path::Path;

use isolario::check;
use isolario::model::{History, LevelResult};
use isolario::verify::{Options, proof};

use crate::failure::Failure;
use crate::outfile::write_whole;

/// Writes the proof of some results. The file is there as a whole or not at all.
pub(crate) fn write_proof(
    history: &History,
    results: &[LevelResult],
    options: &check::Options,
    name: &str,
    file: &Path,
) -> Result<(), Failure> {
    let options = Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew)
        .with_trusted_version_order(options.trust_version_order);
    write_whole(file, |out| proof::write(history, results, &options, name, &mut { out }))
}
