//! Histories and their proofs.

use isolario_check::{check, supported};
use isolario_model::{
    Batch, History, LevelResult, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef,
};
use isolario_verify::{VerifyOptions, proof};

pub(crate) fn options(session_order: bool) -> VerifyOptions {
    VerifyOptions::default().with_session_order(session_order)
}

pub(crate) fn results(history: &History, options: &VerifyOptions) -> Vec<LevelResult> {
    let mut check_options = isolario_check::CheckOptions::default();
    check_options.session_order = options.session_order;
    check(history, supported(), &check_options)
}

pub(crate) fn write(history: &History, results: &[LevelResult], options: &VerifyOptions) -> String {
    let mut file = Vec::new();
    proof::write(history, results, options, "a history", &mut file).expect("it can be written");
    String::from_utf8(file).expect("JSON is UTF-8")
}

/// A proof of all levels that can be decided.
pub(crate) fn proof_of(history: &History) -> String {
    write(history, &results(history, &VerifyOptions::default()), &VerifyOptions::default())
}

/// Every type a name can have, names that two transactions share, and one without a name.
pub(crate) const NAMES: [Option<ValueRef<'static>>; 12] = [
    Some(ValueRef::Int(7)),
    Some(ValueRef::Text("7")),
    Some(ValueRef::Keyword("7")),
    Some(ValueRef::Other("7")),
    Some(ValueRef::Nil),
    Some(ValueRef::Bool(true)),
    Some(ValueRef::Uint(u64::MAX)),
    Some(ValueRef::Int(i64::MIN)),
    Some(ValueRef::Text("\"\\\n\u{1f3dd} init #")),
    Some(ValueRef::Text("twice")),
    Some(ValueRef::Text("twice")),
    None,
];

/// One transaction per name, each writing to and reading from a key of that name.
pub(crate) fn oddly_named() -> History {
    let mut batch = Batch::new();
    for (session, name) in (0i64..).zip(NAMES) {
        let key = name.unwrap_or(ValueRef::Text("none"));
        let value = ValueRef::Int(session);
        let start = TxnStart { session: session.into(), id: name, line: Some(3) };
        batch.begin(&start).expect("in order");
        for op in [Op::Write { key, value }, Op::Read { key, value: Some(value) }] {
            batch.op(&op).expect("in order");
        }
        batch.end(&TxnEnd::new(Outcome::Committed)).expect("in order");
    }
    batch.build().expect("small")
}
