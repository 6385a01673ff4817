//! Writes the seeds to where `cargo fuzz` looks for them: `fuzz/corpus/TARGET/`.

use std::fs;
use std::io;
use std::path::Path;

use isolario_fuzz::seeds::{format_names, seeds};

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let save = |target: &str, format: &str| -> io::Result<()> {
        let directory = corpus.join(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds(format).into_iter().enumerate() {
            fs::write(directory.join(format!("{format}-{number}")), seed)?;
        }
        Ok(())
    };
    for format in format_names() {
        save(&format.replace('-', "_"), format)?;
        save("sniff", format)?;
    }
    ["jsonl", "text"].iter().try_for_each(|format| save("verdict", format))
}
