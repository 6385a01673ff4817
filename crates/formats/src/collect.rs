//! Writers that need the whole history before they can write its first byte: to know where reads
//! go, how much there is, or one session after the other.

use std::marker::PhantomData;

use isolario_model::{
    Batch, History, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart,
};

use crate::{HistoryWriter, Target};

/// What such a format says about writing.
pub(crate) trait Layout: 'static {
    /// Refuses operations that it cannot express. Called as they come, so that nothing is
    /// collected in vain.
    fn admit_op(op: &OpInput<'_>) -> Result<(), SinkError>;

    /// Refuses ends that it cannot express.
    fn admit_end(end: &TxnEnd<'_>) -> Result<(), SinkError>;

    /// Writes everything, or nothing if the history as a whole cannot be expressed.
    fn write(history: &History, target: Target) -> Result<(), SinkError>;
}

/// Collects a history and writes it when it is complete.
pub(crate) struct Collector<L> {
    batch: Batch,
    target: Target,
    is_open: bool,
    layout: PhantomData<L>,
}

impl<L: Layout> Collector<L> {
    /// A writer to this target. Nothing is created before `finish`.
    pub(crate) fn boxed(target: Target) -> Box<dyn HistoryWriter> {
        let (batch, layout) = (Batch::new(), PhantomData::<L>);
        Box::new(Collector { batch, target, is_open: false, layout })
    }
}

impl<L: Layout> TxnSink for Collector<L> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.is_open = true;
        self.batch.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        L::admit_op(op)?;
        // The statement is a mere annotation, and none of these formats has a place for it.
        self.batch.op_with(op, &OpNotes { version: notes.version, sql: None })
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        L::admit_end(end)?;
        self.is_open = false;
        self.batch.end(end)
    }
}

impl<L: Layout> HistoryWriter for Collector<L> {
    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        if self.is_open {
            return Err(SinkError::Sequence("the history ends inside a transaction"));
        }
        L::write(&self.batch.build()?, self.target)
    }
}
