//! What depends on the library without features pays for little.

use std::collections::BTreeSet;
use std::process::Command;

/// With the library itself and our own crates.
const MOST: usize = 30;

#[test]
fn without_features_there_are_few_dependencies() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--no-default-features", "--package", "isolario"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs the tests");
    let (tree, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    // A package that was shown before is marked, and counts again.
    let crates: BTreeSet<&str> = tree.lines().collect();
    assert!(crates.iter().any(|line| line.starts_with("isolario-check ")), "{tree}");
    assert!(crates.len() <= MOST, "{} crates:\n{tree}", crates.len());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
