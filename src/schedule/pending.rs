//! What one rank may start next: the next operation of each of its lanes that is no receive.

use super::program::NONE;
use super::{OpId, Program};
use smallvec::SmallVec;

/// The next operations of a rank's lanes. A rank may have as many lanes as there are groups: those that may start are known, and each of the others
/// is looked at again only when what it waits for is complete. In few bytes: a million ranks may have one each.
#[derive(Debug, Clone, Default)]
pub struct Pending {
    /// Those that may start, in no order; then what waits for an operation, behind that operation, in order. Each lane is here at most once.
    next: SmallVec<[Next; 1]>,
}

/// The next operation of a lane.
#[derive(Debug, Clone, Copy)]
pub struct Next {
    /// It.
    pub op: OpId,
    /// What it waits for; [`NONE`] if it may start.
    open: OpId,
    /// From when on it may start, by what it comes after.
    pub since: f64,
}

impl Pending {
    /// Before anything was started. `known`: when all was complete that an operation comes after, or one that is not complete.
    pub fn new(program: &Program, known: impl Fn(OpId) -> Result<f64, OpId>) -> Pending {
        let mut pending = Pending { next: SmallVec::with_capacity(program.body().lanes.len()) };
        pending.restart(program, known);
        pending
    }

    /// As before anything of a program was started.
    pub fn restart(&mut self, program: &Program, known: impl Fn(OpId) -> Result<f64, OpId>) {
        self.next.clear();
        program.body().lanes.iter().map(|lane| lane.0).filter(|&first| first != NONE).for_each(|first| self.add(first, &known));
    }

    /// How many of them may start.
    #[inline]
    fn count_ready(&self) -> usize {
        match self.next.as_slice() {
            [one] => usize::from(one.open == NONE),
            all => all.partition_point(|next| next.open == NONE),
        }
    }

    /// What may start, in no order.
    #[inline]
    pub fn ready(&self) -> &[Next] {
        &self.next.as_slice()[..self.count_ready()]
    }

    /// The k-th of them, if there are so many.
    #[inline]
    pub fn ready_at(&self, k: usize) -> Option<Next> {
        self.next.as_slice().get(k).copied().filter(|next| next.open == NONE)
    }

    /// An operation was started: its lane goes on.
    pub fn start(&mut self, program: &Program, op: usize, known: impl Fn(OpId) -> Result<f64, OpId>) {
        let ready = self.count_ready();
        let place = self.next.as_slice()[..ready].iter().position(|next| next.op as usize == op);
        debug_assert!(place.is_some(), "operation {op} may not start");
        let Some(place) = place else { return };
        self.next.swap(place, ready - 1);
        match program.next(op) {
            Some(next) => self.change(ready - 1, ready - 1, next as OpId, &known),
            None => drop(self.next.remove(ready - 1)),
        }
    }

    /// An operation is complete.
    #[inline]
    pub fn complete(&mut self, op: usize, known: impl Fn(OpId) -> Result<f64, OpId>) {
        loop {
            // most ranks have one lane
            if let [one] = self.next.as_slice()
                && one.open as usize != op
            {
                return;
            }
            let ready = self.count_ready();
            let next = self.next.as_slice();
            let Ok(place) = next[ready..].binary_search_by_key(&op, |next| next.open as usize) else { return };
            self.change(ready + place, ready, next[ready + place].op, &known);
        }
    }

    /// Puts an operation in the place of the one at `at`, where `ready` others may start, and sees to the order: only what lies between the two places is moved.
    fn change(&mut self, at: usize, ready: usize, op: OpId, known: &impl Fn(OpId) -> Result<f64, OpId>) {
        let next = self.next.as_mut_slice();
        match known(op) {
            Ok(since) => {
                next[at] = Next { op, open: NONE, since };
                next[ready..=at].rotate_right(1);
            }
            Err(open) => {
                next[at] = Next { op, open, since: 0.0 };
                let before = |next: &Next| (next.open, next.op) < (open, op);
                let (front, behind) = (next[ready..at].partition_point(before), next[at + 1..].partition_point(before));
                if behind > 0 {
                    next[at..=at + behind].rotate_left(1);
                } else {
                    next[ready + front..=at].rotate_right(1);
                }
            }
        }
    }

    fn add(&mut self, op: OpId, known: &impl Fn(OpId) -> Result<f64, OpId>) {
        let ready = self.count_ready();
        self.next.push(Next { op, open: NONE, since: 0.0 });
        self.change(self.next.len() - 1, ready, op, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Lane, Span};
    use rand::Rng;

    #[test]
    fn lanes_go_on_when_what_they_wait_for_is_complete() {
        let mut program = Program::new();
        let span = Span::output(0, 1);
        let got = program.recv(1, span, &[]);
        let first = program.send(2, span, &[]);
        for lane in [1, 2] {
            program.in_lane(lane);
            program.send(3, span, &[got]);
        }
        program.in_lane(0);
        program.send(4, span, &[first, got]);
        let mut times = vec![None; program.len()];
        let known = |times: &[Option<f64>], op: OpId| {
            program.after(op as usize).iter().try_fold(0.0, |latest: f64, &d| times[d as usize].map(|t| latest.max(t)).ok_or(d))
        };
        let mut pending = Pending::new(&program, |op| known(&times, op));
        let ready = |pending: &Pending| {
            let mut ready: Vec<(OpId, f64)> = pending.ready().iter().map(|next| (next.op, next.since)).collect();
            ready.sort_by_key(|r| r.0);
            ready
        };
        assert_eq!(ready(&pending), [(1, 0.0)]);
        times[1] = Some(5.0);
        pending.start(&program, 1, |op| known(&times, op));
        pending.complete(1, |op| known(&times, op));
        assert_eq!(ready(&pending), []);
        times[0] = Some(3.0);
        pending.complete(0, |op| known(&times, op));
        // both lanes, and the first one's next, which waits for two
        assert_eq!(ready(&pending), [(2, 3.0), (3, 3.0), (4, 5.0)]);
        pending.start(&program, 3, |op| known(&times, op));
        assert_eq!(ready(&pending), [(2, 3.0), (4, 5.0)]);
    }

    #[test]
    fn in_whatever_order_operations_complete_lanes_are_in_order() {
        const LANES: usize = 7;
        const EACH: usize = 9;
        let span = Span::output(0, 1);
        let mut rng = crate::stats::random(5);
        for _ in 0..50 {
            let mut program = Program::new();
            let got: Vec<OpId> = (0..LANES * EACH).map(|_| program.recv(1, span, &[])).collect();
            for k in 0..LANES * EACH {
                program.in_lane((k % LANES) as Lane);
                let after: Vec<OpId> = (0..k % 3).map(|_| got[rng.random_range(0..got.len())]).collect();
                program.send(2, span, &after);
            }
            let mut times: Vec<Option<f64>> = vec![None; program.len()];
            let known = |times: &[Option<f64>], op: OpId| {
                program.after(op as usize).iter().try_fold(0.0, |latest: f64, &d| times[d as usize].map(|t| latest.max(t)).ok_or(d))
            };
            let mut pending = Pending::new(&program, |op| known(&times, op));
            // each lane's next, whatever was started and is complete
            let mut next: Vec<Option<usize>> = (0..LANES).map(|lane| Some(LANES * EACH + lane)).collect();
            let mut open: Vec<usize> = (0..got.len()).collect();
            while next.iter().any(Option::is_some) {
                let mut ready: Vec<usize> = pending.ready().iter().map(|next| next.op as usize).collect();
                ready.sort_unstable();
                let mut wanted: Vec<usize> = next.iter().flatten().copied().filter(|&op| known(&times, op as OpId).is_ok()).collect();
                wanted.sort_unstable();
                assert_eq!(ready, wanted);
                let waiting = &pending.next[ready.len()..];
                assert!(waiting.is_sorted_by_key(|next| (next.open, next.op)) && waiting.iter().all(|next| next.open != NONE));
                if !ready.is_empty() && (open.is_empty() || rng.random_bool(0.5)) {
                    let op = ready[rng.random_range(0..ready.len())];
                    pending.start(&program, op, |op| known(&times, op));
                    next[op % LANES] = program.next(op);
                } else {
                    let op = open.swap_remove(rng.random_range(0..open.len()));
                    times[op] = Some(op as f64);
                    pending.complete(op, |op| known(&times, op));
                }
            }
            assert!(pending.next.is_empty());
        }
    }
}
