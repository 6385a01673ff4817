//! The anomalies as data.
//!
//! Each is as small as it can be and forbidden exactly where the anomaly table says: whatever does
//! not forbid it is satisfied. A test puts every template before brute force, at every level.
//!
//! Registers do not show the order of their versions. Where a story needs "1, then 2", a session
//! that reads 1 in one transaction and 2 in the next shows it: from causal up, that order is then
//! the only one.

use isolario_model::AnomalyKind as A;

use super::template::TemplateOp::{Append, List, R, Set, W};
use super::template::{Template, Timing, aborted, template, txn};

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const U: u8 = 3;

pub(super) static TABLE: [Template; 32] = [
    template(A::ThinAirRead, "One reads what nobody wrote.", &[txn(0, &[R(X, 1)])]),
    template(
        A::AbortedRead,
        "One aborts; another reads what it wrote.",
        &[aborted(0, &[W(X, 1)]), txn(1, &[R(X, 1)])],
    ),
    template(
        A::FutureRead,
        "One reads what it writes itself only then.",
        &[txn(0, &[R(X, 1), W(X, 1)])],
    ),
    template(
        A::NotMyOwnWrite,
        "One writes a key and then reads what another wrote.",
        &[txn(0, &[W(X, 1)]), txn(1, &[W(X, 2), R(X, 1)])],
    ),
    template(
        A::NotMyLastWrite,
        "One writes a key twice and then reads its first write.",
        &[txn(0, &[W(X, 1), W(X, 2), R(X, 1)])],
    ),
    template(
        A::IntermediateRead,
        "One writes a key twice; another reads the first write.",
        &[txn(0, &[W(X, 1), W(X, 2)]), txn(1, &[R(X, 1)])],
    ),
    template(
        A::CyclicCo,
        "Two read from each other.",
        &[txn(0, &[W(X, 1), R(Y, 2)]), txn(1, &[W(Y, 2), R(X, 1)])],
    ),
    template(
        A::NonMonoReadCo,
        "The second reads x from the first and overwrites it; a third sees the second at y and then \
         the first at x.",
        &[txn(0, &[W(X, 1)]), txn(1, &[R(X, 1), W(X, 2), W(Y, 2)]), txn(2, &[R(Y, 2), R(X, 1)])],
    ),
    template(
        A::NonMonoReadCm,
        "Two write x, blindly. A third sees the second and then the first, a fourth sees the first \
         and then the second.",
        &[
            txn(0, &[W(X, 1), W(Z, 1)]),
            txn(1, &[W(X, 2), W(Y, 2)]),
            txn(2, &[R(Y, 2), R(X, 1)]),
            txn(3, &[R(Z, 1), R(X, 2)]),
        ],
    ),
    Template {
        // Two different versions of one key are a non-repeatable read as well.
        beside: &[A::NonRepeatableRead],
        ..template(
            A::NonMonotonicRead,
            "The second reads x from the first and overwrites it; a third reads the second's x and \
             then the first's.",
            &[txn(0, &[W(X, 1)]), txn(1, &[R(X, 1), W(X, 2)]), txn(2, &[R(X, 2), R(X, 1)])],
        )
    },
    template(
        A::NonRepeatableRead,
        "One reads a key before and after another writes it.",
        &[txn(0, &[W(X, 1)]), txn(1, &[R(X, 0), R(X, 1)])],
    ),
    template(
        A::FracturedReadCo,
        "The second reads x from the first and writes x and y; a third reads the first's x and the \
         second's y.",
        &[txn(0, &[W(X, 1)]), txn(1, &[R(X, 1), W(X, 2), W(Y, 2)]), txn(2, &[R(X, 1), R(Y, 2)])],
    ),
    template(
        A::FracturedReadCm,
        "Two write x, blindly. A third sees the first's x with the second's y, a fourth sees the \
         second's x with the first's z.",
        &[
            txn(0, &[W(X, 1), W(Z, 1)]),
            txn(1, &[W(X, 2), W(Y, 2)]),
            txn(2, &[R(X, 1), R(Y, 2)]),
            txn(3, &[R(X, 2), R(Z, 1)]),
        ],
    ),
    template(
        A::CoConflictCm,
        "The second overwrites the first's x, a third sees that and writes y, and a fourth sees y \
         but still the first's x.",
        &[
            txn(0, &[W(X, 1)]),
            txn(1, &[R(X, 1), W(X, 2)]),
            txn(2, &[R(X, 2), W(Y, 3)]),
            txn(3, &[R(Y, 3), R(X, 1)]),
        ],
    ),
    template(
        A::ConflictCm,
        "Two write x, blindly. One reader follows who saw the first and sees the second; another \
         follows who saw the second and sees the first.",
        &[
            txn(0, &[W(X, 1)]),
            txn(1, &[W(X, 2)]),
            txn(2, &[R(X, 1), W(Y, 3)]),
            txn(3, &[R(Y, 3), R(X, 2)]),
            txn(4, &[R(X, 2), W(Z, 5)]),
            txn(5, &[R(Z, 5), R(X, 1)]),
        ],
    ),
    template(
        A::SessionGuaranteeViolation,
        "A session writes, and then does not see it.",
        &[txn(0, &[W(X, 1)]), txn(0, &[R(X, 0)])],
    ),
    template(
        A::LongFork,
        "Two write different keys; one reader sees only the first, another only the second.",
        &[
            txn(0, &[W(X, 1)]),
            txn(1, &[W(Y, 2)]),
            txn(2, &[R(X, 1), R(Y, 0)]),
            txn(3, &[R(X, 0), R(Y, 2)]),
        ],
    ),
    template(
        A::LostUpdate,
        "Two read the same version of a key, and both overwrite it.",
        &[txn(0, &[R(X, 0), W(X, 1)]), txn(1, &[R(X, 0), W(X, 2)])],
    ),
    template(
        A::WriteSkew,
        "Two read both keys, and each writes another one.",
        &[txn(0, &[R(X, 0), R(Y, 0), W(X, 1)]), txn(1, &[R(X, 0), R(Y, 0), W(Y, 2)])],
    ),
    template(
        A::ReadSkew,
        "One writes both keys; another reads one before and one after it.",
        &[txn(0, &[W(X, 1), W(Y, 1)]), txn(1, &[R(X, 0), R(Y, 1)])],
    ),
    template(
        A::ReadWriteSkew,
        "One writes both keys; another misses its x and overwrites its y.",
        &[
            txn(0, &[W(X, 1), W(Y, 1)]),
            txn(1, &[R(X, 0), W(Y, 2)]),
            txn(2, &[R(Y, 1)]),
            txn(2, &[R(Y, 2)]),
        ],
    ),
    template(
        A::DirtyWrite,
        "Two append to both lists, in different orders.",
        &[
            txn(0, &[Append(X, 1), Append(Y, 1)]),
            txn(1, &[Append(X, 2), Append(Y, 2)]),
            txn(2, &[List(X, &[1, 2]), List(Y, &[2, 1])]),
        ],
    ),
    template(
        A::SingleAntiDependency,
        "The last misses the first's x and overwrites the y of the second, who had seen x.",
        &[
            txn(0, &[W(X, 1)]),
            txn(1, &[R(X, 1), W(Y, 2)]),
            txn(2, &[R(X, 0), W(Y, 3)]),
            txn(3, &[R(Y, 2)]),
            txn(3, &[R(Y, 3)]),
        ],
    ),
    template(
        A::NonadjacentAntiDependencies,
        "Two pairs: in each, the second overwrites what the first wrote, and misses what the other \
         pair's first wrote.",
        &[
            txn(0, &[W(X, 1), W(Y, 1)]),
            txn(1, &[R(Z, 0), W(Y, 2)]),
            txn(2, &[W(Z, 3), W(U, 3)]),
            txn(3, &[R(X, 0), W(U, 4)]),
            txn(4, &[R(Y, 1)]),
            txn(4, &[R(Y, 2)]),
            txn(5, &[R(U, 3)]),
            txn(5, &[R(U, 4)]),
        ],
    ),
    template(
        A::ItemAntiDependencyCycle,
        "Three in a cycle: each reads what the next one writes, before it does.",
        &[txn(0, &[R(X, 0), W(Y, 1)]), txn(1, &[R(Y, 0), W(Z, 2)]), txn(2, &[R(Z, 0), W(X, 3)])],
    ),
    Template {
        timing: Timing::OneByOne,
        ..template(
            A::StaleRead,
            "One commits; another begins after that and does not see it.",
            &[txn(0, &[W(X, 1)]), txn(1, &[R(X, 0)])],
        )
    },
    Template {
        timing: Timing::Spans(&[(0, 5), (10, 15), (0, 20)]),
        ..template(
            A::RealTimeCycle,
            "The last misses the first, and the second, which begins after the first has ended, \
             misses the last.",
            &[txn(0, &[W(X, 1)]), txn(1, &[R(Y, 0)]), txn(2, &[R(X, 0), W(Y, 3)])],
        )
    },
    template(
        A::IncompatibleOrder,
        "Two readers see a list in different orders.",
        &[
            txn(0, &[Append(X, 1)]),
            txn(1, &[Append(X, 2)]),
            txn(2, &[List(X, &[1, 2])]),
            txn(3, &[List(X, &[2, 1])]),
        ],
    ),
    template(
        A::DuplicateElements,
        "A reader sees an element twice that was appended once.",
        &[txn(0, &[Append(X, 1)]), txn(1, &[List(X, &[1, 1])])],
    ),
    Template {
        // That one built on it shows because it read it.
        beside: &[A::AbortedRead],
        ..template(
            A::DirtyUpdate,
            "One aborts; another reads what it wrote and writes the next version.",
            &[aborted(0, &[W(X, 1)]), txn(1, &[R(X, 1), W(X, 2)])],
        )
    },
    Template {
        // Registers show the order of versions only by reads, and these then form a cycle.
        beside: &[A::CyclicCo],
        ..template(
            A::CyclicVersions,
            "Two overwrite each other's version of a key.",
            &[txn(0, &[R(X, 2), W(X, 1)]), txn(1, &[R(X, 1), W(X, 2)])],
        )
    },
    Template {
        // So do transactions of a single compare-and-set.
        beside: &[A::LostUpdate],
        ..template(
            A::NotLinearizable,
            "Two compare-and-sets replace the same value.",
            &[txn(0, &[Set(X, 0, 1)]), txn(1, &[Set(X, 0, 2)])],
        )
    },
];
