//! The directory of a database's files, which forgets what was not synced when the power fails.

#[cfg(all(feature = "power", target_os = "linux"))]
pub use isolario_disk::Disk;

#[cfg(not(all(feature = "power", target_os = "linux")))]
pub use absent::Disk;

#[cfg(not(all(feature = "power", target_os = "linux")))]
mod absent {
    use std::io;
    use std::path::Path;

    /// A directory that forgets what was not synced when its power fails. There is none here: it takes Linux, and the
    /// feature `power`.
    #[derive(Debug)]
    pub enum Disk {}

    impl Disk {
        /// Gets between an existing directory and its users, and fails to.
        pub fn over(_: &Path) -> io::Result<Disk> {
            let words =
                "power loss can only be simulated on Linux, by a build with the feature `power`";
            Err(io::Error::new(io::ErrorKind::Unsupported, words))
        }

        /// All that was written until now counts as synced.
        pub fn sync(&self) {
            match *self {}
        }

        /// The power fails, and comes back.
        pub fn fail(&mut self) -> io::Result<()> {
            match *self {}
        }
    }
}
