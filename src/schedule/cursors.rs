//! Where the lanes of a program are.

use super::OpId;
use super::program::{NONE, Program};

/// What each lane of a program does next. All that run programs walk them with this.
#[derive(Debug, Clone, Default)]
pub struct Cursors {
    next: Vec<OpId>,
}

impl Cursors {
    /// At the beginning of a program.
    pub fn new(program: &Program) -> Cursors {
        let mut cursors = Cursors::default();
        cursors.restart(program);
        cursors
    }

    /// Goes to the beginning of a program.
    pub fn restart(&mut self, program: &Program) {
        self.next.clear();
        self.next.extend(program.body().lanes.iter().map(|l| l.0).filter(|&op| op != NONE));
    }

    /// The next operation of each lane that has one left, in no order.
    #[inline]
    pub fn open(&self) -> impl Iterator<Item = usize> + '_ {
        self.next.iter().map(|&op| op as usize)
    }

    /// How many lanes have an operation left.
    pub fn lanes(&self) -> usize {
        self.next.len()
    }

    /// The next operation of one of these lanes.
    #[inline]
    pub fn lane(&self, k: usize) -> usize {
        self.next[k] as usize
    }

    /// True if all operations but receives were started.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Goes on from a lane's next operation, which was started.
    #[inline]
    pub fn advance(&mut self, program: &Program, op: usize) {
        if let Some(k) = self.next.iter().position(|&n| n as usize == op) {
            match program.body().ops[op].next {
                NONE => {
                    self.next.swap_remove(k);
                }
                next => self.next[k] = next,
            }
        }
    }
}
