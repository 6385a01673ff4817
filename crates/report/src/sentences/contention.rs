//! How much a run could show, in words.

use isolario_model::Contention;

use crate::names::grouped;

/// Too few transactions overlapped for a verdict to say much; `None` if enough did.
pub fn too_few_overlapped(contention: &Contention) -> Option<String> {
    let Contention { committed, overlapped, conflicted, .. } = contention;
    contention.is_thin().then(|| {
        format!(
            "{} of {} transactions overlapped another one, and {} did on a key: too few to show what \
             the database does about it",
            grouped(*overlapped),
            grouped(*committed),
            grouped(*conflicted)
        )
    })
}
