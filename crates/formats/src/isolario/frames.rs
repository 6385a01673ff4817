//! Goes through the frames of a file and tells a cut end from damage.
//!
//! A recorder that is killed leaves a file whose last frame is incomplete, and a crash of the
//! machine may leave one whose end is zeros or noise. Both cost nothing that was complete, so the
//! reader goes on with what it has and says where the file was cut. A bad frame with a good one
//! after it is something else: something complete was lost. That is an error, for a history with
//! a hole proves nothing.
//!
//! A recording is stricter with itself. Its recorder makes room in front of it, in which the kind of
//! a frame is zero until the frame is whole, and it appends one frame after the other. So a process
//! that dies leaves whole frames, and at most one that never was one. A machine that dies may leave
//! gaps, as memory reaches the disk in any order. In both cases the frames before the first one
//! that is not whole are what the file was at some moment, and at every moment it had the writes
//! of whatever was read: they are the recording, whatever comes after them.

use super::layout::{HEAD, Head, Header, Version, checksum};
use crate::Problem;
use crate::error::Fault;

/// A frame, and where it begins in the file.
#[derive(Clone, Copy)]
pub(super) struct Frame<'b> {
    pub(super) at: usize,
    pub(super) kind: u8,
    checksum: u32,
    pub(super) content: &'b [u8],
}

impl<'b> Frame<'b> {
    /// The frame at a place, if its head is whole and its content is all there.
    fn at(bytes: &'b [u8], at: usize) -> Option<Frame<'b>> {
        let head = Head::parse(bytes.get(at..)?)?;
        let content = bytes.get(at + HEAD..)?.get(..head.len as usize)?;
        Some(Frame { at, kind: head.kind, checksum: head.checksum, content })
    }

    fn end(&self) -> usize {
        self.at + HEAD + self.content.len()
    }

    /// Whether the content fits its checksum.
    pub(super) fn is_intact(&self) -> bool {
        checksum(self.kind, self.content) == self.checksum
    }

    /// Checks the content of a frame that [`Frames::next`] let pass.
    pub(super) fn require_intact(&self) -> Result<(), Problem> {
        if self.is_intact() { Ok(()) } else { Err(damaged()) }
    }
}

pub(super) fn damaged() -> Problem {
    Problem::malformed("a record that fits its checksum", "a damaged one, with whole ones after it")
}

/// The longest end without a whole frame that passes for a cut one. A recorder's last record is
/// far shorter, and a search for whole frames through more would take too long.
pub(super) const LONGEST_CUT: usize = 1 << 26;

/// The frames of a file, one after the other.
pub(super) struct Frames<'b> {
    bytes: &'b [u8],
    version: Version,
    /// Where the next frame begins.
    pub(super) at: usize,
}

/// What stands at a place.
pub(super) enum Next<'b> {
    Frame(Frame<'b>),
    /// Nothing: the file ends here, or has nothing but room from here on.
    End,
    /// What a frame may have been that was not written to its end.
    Cut,
}

impl<'b> Frames<'b> {
    /// The frames after a header.
    pub(super) fn new(bytes: &'b [u8], header: &Header) -> Self {
        Frames { bytes, version: header.version, at: header.len }
    }

    /// The frames of a part of a file that begins with one.
    pub(super) fn of_part(part: &'b [u8], version: Version) -> Self {
        Frames { bytes: part, version, at: 0 }
    }

    /// The next frame. The content of frames that `defer` names, the long ones, is left for
    /// [`Frame::require_intact`], which can be called on all cores; the last frame of the file is
    /// checked here in any case, since it may be cut.
    pub(super) fn next(&mut self, defer: impl Fn(u8) -> bool) -> Result<Next<'b>, Fault> {
        let at = self.at;
        let is_room = |rest: &[u8]| rest.iter().all(|byte| *byte == 0);
        let is_recording = self.version.is_recording();
        match self.bytes.get(at..).and_then(|rest| rest.split_first()) {
            None => return Ok(Next::End),
            // Nothing more is looked at before the kind is there: somebody may be storing it.
            Some((0, rest)) if is_recording => {
                return Ok(if is_room(rest) { Next::End } else { Next::Cut });
            }
            Some(_) => {}
        }
        let Some(frame) = Frame::at(self.bytes, at) else {
            // A whole head says that the content is cut, whatever it looks like.
            let head_is_whole = Head::parse(&self.bytes[at..]).is_some();
            return if head_is_whole { Ok(Next::Cut) } else { self.cut_unless_more(at + 1) };
        };
        let deferred = defer(frame.kind) && frame.end() < self.bytes.len();
        if !deferred && !frame.is_intact() {
            return self.cut_unless_more(frame.end());
        }
        self.at = frame.end();
        Ok(Next::Frame(frame))
    }

    /// The end is cut if no whole frame begins anywhere from `from` on.
    fn cut_unless_more(&self, from: usize) -> Result<Next<'b>, Fault> {
        if self.version.is_recording() {
            return Ok(Next::Cut);
        }
        let bytes = self.bytes;
        let is_frame = |at| Frame::at(bytes, at).is_some_and(|frame| frame.is_intact());
        if bytes.len() - self.at > LONGEST_CUT || (from..bytes.len()).any(is_frame) {
            return Err(Fault::new(self.at, damaged()));
        }
        Ok(Next::Cut)
    }
}
