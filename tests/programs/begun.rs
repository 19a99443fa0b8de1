//! Non-blocking calls that were begun, completed in any order.

use collwise::run::Pending;
use mpi::request::Scope;
use rand::Rng;

/// One of them: barriers borrow nothing.
pub enum Begun<'a, S: Scope<'a>> {
    Some(Pending<'a, S>),
    Barrier(Pending<'static>),
}

impl<'a, S: Scope<'a>> Begun<'a, S> {
    fn test(&mut self) -> bool {
        match self {
            Begun::Some(pending) => pending.test(),
            Begun::Barrier(pending) => pending.test(),
        }
        .unwrap()
    }

    /// Waits, asks again and again, or drops it.
    fn complete(mut self, how: usize) {
        match (how, self) {
            (0, Begun::Some(pending)) => pending.wait().unwrap(),
            (0, Begun::Barrier(pending)) => pending.wait().unwrap(),
            (1, begun) => {
                self = begun;
                while !self.test() {
                    std::thread::yield_now();
                }
                assert!(self.test(), "it stays over");
            }
            (_, begun) => drop(begun),
        }
    }
}

/// Completes some of those that are open, any of them, or all.
pub fn complete<'a, S: Scope<'a>>(open: &mut Vec<Begun<'a, S>>, random: &mut impl Rng, all: bool) {
    while !open.is_empty() && (all || random.random_bool(0.3)) {
        open.swap_remove(random.random_range(0..open.len())).complete(random.random_range(0..3));
    }
}
