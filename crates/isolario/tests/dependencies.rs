//! The library without features brings few packages with it.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages of others that the library may bring.
const MOST: usize = 17;

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
    // A package that was shown before is marked.
    let packages = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let (own, others): (BTreeSet<&str>, BTreeSet<&str>) =
        packages.partition(|line| line.starts_with("isolario"));
    assert!(own.iter().any(|line| line.starts_with("isolario-check ")), "{tree}");
    assert!(others.len() <= MOST, "{} packages:\n{tree}", others.len());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
