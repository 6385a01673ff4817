//! What files had when they were last synced, where they have something else now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Files are remembered in blocks of so many bytes.
const BLOCK: u64 = 4096;

/// A file that was changed since it was last synced.
#[derive(Debug)]
struct Changed {
    file: File,
    /// How long it was.
    length: u64,
    /// By number, what the blocks held that were written since, up to the length that the file had.
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// The files that were changed since they were last synced, by inode.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    files: BTreeMap<u64, Changed>,
}

impl Unsynced {
    /// A file is going to be written from one place to another.
    pub(crate) fn before_write(
        &mut self,
        inode: u64,
        file: &File,
        from: u64,
        to: u64,
    ) -> io::Result<()> {
        let changed = self.changed(inode, file)?;
        changed.remember(from, to.min(changed.length))
    }

    /// A file is going to have another length.
    pub(crate) fn before_resize(&mut self, inode: u64, file: &File, to: u64) -> io::Result<()> {
        let changed = self.changed(inode, file)?;
        changed.remember(to, changed.length)
    }

    /// A file was synced, or is gone.
    pub(crate) fn forget(&mut self, inode: u64) {
        self.files.remove(&inode);
    }

    /// All files were synced.
    pub(crate) fn forget_all(&mut self) {
        self.files.clear();
    }

    /// Gives all files what they had when they were last synced.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        while let Some((_, changed)) = self.files.pop_first() {
            changed.restore()?;
        }
        Ok(())
    }

    fn changed(&mut self, inode: u64, file: &File) -> io::Result<&mut Changed> {
        match self.files.entry(inode) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let (file, length) = (file.try_clone()?, file.metadata()?.len());
                Ok(new.insert(Changed { file, length, blocks: BTreeMap::new() }))
            }
        }
    }
}

impl Changed {
    /// Remembers the blocks between two places that are not remembered yet.
    fn remember(&mut self, from: u64, to: u64) -> io::Result<()> {
        if from >= to {
            return Ok(());
        }
        for number in from / BLOCK..to.div_ceil(BLOCK) {
            if let Entry::Vacant(new) = self.blocks.entry(number) {
                let start = number * BLOCK;
                let mut block = vec![0; BLOCK.min(self.length - start) as usize];
                self.file.read_exact_at(&mut block, start)?;
                new.insert(block);
            }
        }
        Ok(())
    }

    fn restore(&self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        let mut blocks = self.blocks.iter();
        blocks.try_for_each(|(number, block)| self.file.write_all_at(block, number * BLOCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Resize(u64),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        // Some places are within a block, some across several.
        let place = 0..4 * BLOCK;
        let text = (any::<u8>(), 1..2 * BLOCK as usize);
        prop_oneof![
            4 => (place.clone(), text).prop_map(|(at, (byte, len))| Step::Write(at, vec![byte; len])),
            2 => place.prop_map(Step::Resize),
            1 => Just(Step::Sync),
        ]
    }

    /// Does to a vector what a step does to a file.
    fn play(held: &mut Vec<u8>, step: &Step) {
        match step {
            Step::Write(at, text) => {
                let (at, end) = (*at as usize, *at as usize + text.len());
                held.resize(held.len().max(end), 0);
                held[at..end].copy_from_slice(text);
            }
            Step::Resize(to) => held.resize(*to as usize, 0),
            Step::Sync => {}
        }
    }

    proptest! {
        #[test]
        fn a_file_has_again_what_it_had_when_it_was_last_synced(
            steps in prop::collection::vec(step(), 0..20),
        ) {
            let file = tempfile::tempfile().unwrap();
            let mut unsynced = Unsynced::default();
            let (mut held, mut synced) = (Vec::new(), Vec::new());
            for step in &steps {
                match step {
                    Step::Write(at, text) => {
                        let end = at + text.len() as u64;
                        unsynced.before_write(1, &file, *at, end).unwrap();
                        file.write_all_at(text, *at).unwrap();
                    }
                    Step::Resize(to) => {
                        unsynced.before_resize(1, &file, *to).unwrap();
                        file.set_len(*to).unwrap();
                    }
                    Step::Sync => unsynced.forget(1),
                }
                play(&mut held, step);
                if matches!(step, Step::Sync) {
                    synced.clone_from(&held);
                }
            }
            unsynced.restore().unwrap();
            let mut found = vec![0; file.metadata().unwrap().len() as usize];
            file.read_exact_at(&mut found, 0).unwrap();
            prop_assert!(found == synced);
        }
    }
}
