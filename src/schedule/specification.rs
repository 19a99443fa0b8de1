//! What a schedule is for.

/// Bytes of a rank's own data, at a place of some buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Their place.
    pub at: usize,
    /// How many.
    pub len: usize,
    /// Whose they are.
    pub of: usize,
    /// The first one's place in that rank's own data.
    pub from: usize,
}

/// What a schedule is for: what lies in each rank's buffer before, and what must lie there at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Specification {
    /// The size of every rank's buffer, in bytes.
    pub bytes: usize,
    /// By rank.
    pub before: Vec<Vec<Piece>>,
    /// By rank.
    pub after: Vec<Vec<Piece>>,
    /// True if no rank may end before it has heard, over others too, that every rank has begun.
    pub synchronises: bool,
}
