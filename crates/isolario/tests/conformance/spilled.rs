//! Levels of histories that are read piece by piece, with little of them in memory, against those of
//! histories that are loaded.

use isolario::check::{CheckOptions, Follower};
use isolario::follow::spill::{Spilled, decide};
use isolario::follow::{FollowError, Input, Settings};
use isolario::formats::{HistoryFormat, OutputTarget, find};
use isolario::model::{History, LevelResult};
use isolario_verify::verify;

/// Larger histories would be read again too often, with so little of them kept.
const MOST_TXNS: usize = 2_000;

/// How many transactions are kept at least, and how many bytes are read at a time.
const TAIL: usize = 64;
const PIECE: usize = 1 << 13;

/// What comes out otherwise than it did for the history as a whole.
pub fn differences(history: &History, results: &[LevelResult]) -> Vec<String> {
    let followed = |result: &&LevelResult| Follower::levels().contains(&result.level);
    let results: Vec<&LevelResult> = results.iter().filter(followed).collect();
    if history.txn_count() > MOST_TXNS {
        return Vec::new();
    }
    match spill(history, &results) {
        Ok(Some(spilled)) => compare(&spilled, &results),
        Ok(None) => Vec::new(),
        Err(error) => vec![format!("spilled: {error}")],
    }
}

/// Decides levels piece by piece; none if the history is of a kind that cannot be read so.
fn spill(
    history: &History,
    results: &[&LevelResult],
) -> Result<Option<Spilled>, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let format: &'static dyn HistoryFormat = find("jsonl").ok_or("no such format")?;
    let mut writer = format.writer(OutputTarget::Path(path.clone()))?;
    history.replay(&mut *writer)?;
    writer.finish()?;
    let settings = Settings::default().with_tail(TAIL).with_pieces_of(PIECE);
    let levels: Vec<_> = results.iter().map(|result| result.level).collect();
    let input = Input::new(&path, format);
    match decide(input, &levels, &CheckOptions::default(), settings, directory.path()) {
        Ok(spilled) => Ok(Some(spilled)),
        Err(FollowError::Unfit(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn compare(spilled: &Spilled, expected: &[&LevelResult]) -> Vec<String> {
    let mut faults = Vec::new();
    for (result, expected) in spilled.results.iter().zip(expected) {
        let (level, verdict) = (result.level, &result.verdict);
        if verdict.kind() != expected.verdict.kind() {
            let (found, stated) = (verdict.name(), expected.verdict.name());
            faults.push(format!("{level}: {found} where it is spilled, {stated} as a whole"));
        }
        if verdict.is_violated() {
            let options = isolario_verify::VerifyOptions::default();
            let refused = verify(&spilled.part, result, &options).err();
            faults.extend(refused.map(|why| format!("{level}: spilled proof refused: {why}")));
            if verdict.anomalies().is_empty() {
                faults.push(format!("{level}: violated without evidence where it is spilled"));
            }
        }
    }
    faults
}
