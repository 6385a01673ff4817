//! The scripts of the page, as one: files that are modules of their own, put together here, so that
//! there is nothing to build and nothing to fetch.

use sha2::{Digest, Sha256};

use super::pack::base64;

/// In the order in which they need each other.
const MODULES: [&str; 12] = [
    include_str!("assets/unpack.js"),
    include_str!("assets/history.js"),
    include_str!("assets/viewport.js"),
    include_str!("assets/painter.js"),
    include_str!("assets/strip.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/details.js"),
    include_str!("assets/graph.js"),
    include_str!("assets/cases.js"),
    include_str!("assets/links.js"),
    include_str!("assets/explore.js"),
    include_str!("assets/main.js"),
];

/// All modules in one: what they import from each other is above them.
pub(super) fn script() -> String {
    let lines = MODULES.iter().flat_map(|module| module.lines());
    let kept = lines.filter(|line| !line.starts_with("import "));
    kept.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))).collect()
}

/// What the page may do: run this script and no other, and load nothing from anywhere but itself (a
/// graph becomes a PNG by way of an image). Names and
/// values are escaped wherever they stand; should one slip through, it still cannot run.
pub(super) fn policy(script: &str) -> String {
    let hash = base64(&Sha256::digest(script.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src blob:; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_cannot_be_taken_for_markup_and_imports_nothing() {
        let script = script();
        for forbidden in ["</script", "<!--", "\nimport ", "\nexport ", "innerHTML", "eval("] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
        assert!(script.contains("\nclass Timeline"));
    }
}
