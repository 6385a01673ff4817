//! The order by which a level is satisfied, on disk until the whole history is known: where a transaction stands
//! among all is known only then.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use isolario_check::{PointKind, SettledPoint};
use isolario_model::Value;

use super::sorted::private;

/// How many bytes a moment takes.
const BYTES: usize = 12;

/// What a transaction does, in the lowest bits of its place.
const STEPS: [PointKind; 3] = [PointKind::Start, PointKind::Commit, PointKind::Both];
const STEP_BITS: u32 = 2;

/// An order in a file of its own, which goes with it.
#[derive(Debug)]
pub struct Order {
    directory: PathBuf,
    file: BufWriter<File>,
    count: u64,
    in_points: bool,
    /// The names of the sessions, by their numbers in the file.
    sessions: Vec<Value>,
}

/// How far an order had come; at first, nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    count: u64,
    in_points: bool,
}

impl Order {
    pub(super) fn create(parent: &Path) -> io::Result<Order> {
        let directory = private(parent)?;
        let file = BufWriter::new(File::create_new(directory.join("order"))?);
        Ok(Order { directory, file, count: 0, in_points: false, sessions: Vec::new() })
    }

    /// Adds what comes next.
    pub(super) fn add(&mut self, moments: &[SettledPoint]) -> io::Result<()> {
        for SettledPoint { step, session, index } in moments {
            let place = index << STEP_BITS | *step as u64;
            self.file.write_all(&session.to_le_bytes())?;
            self.file.write_all(&place.to_le_bytes())?;
            self.in_points |= *step != PointKind::Both;
        }
        self.count += moments.len() as u64;
        Ok(())
    }

    /// How far it has come.
    pub(super) fn mark(&self) -> Mark {
        Mark { count: self.count, in_points: self.in_points }
    }

    /// Forgets what came after a mark.
    pub(super) fn return_to(&mut self, mark: Mark) -> io::Result<()> {
        let Mark { count, in_points } = mark;
        let end = count * BYTES as u64;
        self.file.seek(SeekFrom::Start(end))?;
        self.file.get_ref().set_len(end)?;
        (self.count, self.in_points) = (count, in_points);
        Ok(())
    }

    /// Says what the sessions are called, and that there is no more.
    pub(super) fn finish(&mut self, sessions: Vec<Value>) -> io::Result<()> {
        self.sessions = sessions;
        self.file.flush()
    }

    /// How many moments there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether starts and commits are apart.
    pub fn in_points(&self) -> bool {
        self.in_points
    }

    /// The names of the sessions, by their numbers in the moments.
    pub fn sessions(&self) -> &[Value] {
        &self.sessions
    }

    /// The moments, from the first to the last.
    pub fn moments(&self) -> io::Result<impl Iterator<Item = io::Result<SettledPoint>> + use<>> {
        let mut file = BufReader::new(File::open(self.directory.join("order"))?);
        Ok((0..self.count).map(move |_| {
            let mut bytes = [0; BYTES];
            file.read_exact(&mut bytes)?;
            let (session, place) = bytes.split_at(4);
            let number = |bytes: &[u8]| {
                bytes.iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
            };
            let place = number(place);
            let step = STEPS[(place & 3).min(2) as usize];
            Ok(SettledPoint { step, session: number(session) as u32, index: place >> STEP_BITS })
        }))
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        // Who cannot remove it leaves it: there is nobody to tell.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
