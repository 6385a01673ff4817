//! A directory that forgets what was not synced when its power fails.
//!
//! A database that is killed loses what it kept to itself. What it had handed to the operating system
//! survives, synced or not: only when the power fails does it matter whether somebody called `fsync`.
//! A [`Disk`] gets between a directory and whoever uses it, as a file system of its own, and
//! remembers what every file had when it was last synced. When [its power fails](Disk::fail), files have
//! that again.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let mut disk = isolario_disk::Disk::over("data".as_ref())?;
//! // Start a database on `data`, commit something, kill it.
//! disk.fail()?;
//! // Start it again: what it had promised to keep has to be there.
//! # Ok(())
//! # }
//! ```
//!
//! What is lost is what a disk may lose at most: the contents and the length of a file since its last `fsync`,
//! `fdatasync` or `msync`. Names are kept: files that were made, renamed or removed stay so,
//! as on a file system with a journal that has just been written. So a database that forgets to sync a
//! directory is not found out; and whatever is found to be lost may be lost on any disk.

#![cfg(target_os = "linux")]

mod disk;
mod files;
mod serve;
mod unsynced;

pub use disk::Disk;
