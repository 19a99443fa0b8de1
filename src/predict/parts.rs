//! In three parts: where ranks hear, also by way of others, from those that they send to, but few do, these are replayed by time, all others one after the other,
//! before and after them. The coordinators of groups that exchange segments are such ranks, and their groups hang on them.

use super::incoming::{Incoming, receive};
use super::order::OnTheWay;
use super::{Run, Way, event};
use crate::error::Result;
use crate::schedule::Schedule;

/// The ranks that are replayed by time, and what they send to others.
pub(super) struct Circle {
    /// Messages to ranks whose turn has not come.
    pub later: OnTheWay,
    /// True of the ranks that hear from those that they send to, and those between such.
    pub has: Vec<bool>,
}

/// Ranks in an order in which each comes after all that send to it, but for those that hear from each other.
struct Parts {
    before: Vec<u32>,
    circle: Vec<u32>,
    after: Vec<u32>,
}

/// The ranks in parts; `before`: those that hear from nobody who hears from them ([`super::order::senders_first`]). `None` where there is no circle, or more are in it than out of it: what they need is near in windows of time.
fn parts(schedule: &Schedule, before: Vec<u32>) -> Option<Parts> {
    let ranks = schedule.ranks();
    let mut is_open = vec![true; ranks];
    before.iter().for_each(|&rank| is_open[rank as usize] = false);
    // of those that are left, who sends to nobody that is
    let mut unsent: Vec<usize> = schedule.programs.iter().map(|program| program.receivers().count()).collect();
    let mut next: Vec<u32> = (0..ranks as u32).filter(|&rank| is_open[rank as usize] && unsent[rank as usize] == 0).collect();
    if next.is_empty() && 2 * before.len() < ranks {
        // as where all send to all
        return None;
    }
    let mut senders = vec![Vec::new(); ranks];
    for (from, program) in schedule.programs.iter().enumerate().filter(|&(from, _)| is_open[from]) {
        program.receivers().for_each(|to| senders[to].push(from as u32));
    }
    let mut after = Vec::new();
    while let Some(rank) = next.pop() {
        is_open[rank as usize] = false;
        after.push(rank);
        for &from in &senders[rank as usize] {
            unsent[from as usize] -= 1;
            if unsent[from as usize] == 0 {
                next.push(from);
            }
        }
    }
    after.reverse();
    let circle: Vec<u32> = (0..ranks as u32).filter(|&rank| is_open[rank as usize]).collect();
    (1..=ranks / 2).contains(&circle.len()).then_some(Parts { before, circle, after })
}

impl Run<'_> {
    /// Replays those by time that hear from each other, and all others one after the other, as far as that takes no longer than `limit`, or else is false. `None`
    /// if none or most hear from each other, or what one does hangs on what others do at the same time.
    pub(super) fn part_after_part(&mut self, before: Vec<u32>, limit: f64) -> Result<Option<bool>> {
        if self.losing.is_possible() {
            return Ok(None);
        }
        let Some(Parts { before, circle, after }) = parts(self.schedule, before) else { return Ok(None) };
        let mut has = vec![false; self.places.len()];
        circle.iter().for_each(|&rank| has[rank as usize] = true);
        (self.keeps_all, self.kept) = (true, u32::MAX);
        self.way = Way::InParts(Circle { later: OnTheWay::new(self.places.len()), has });
        self.prepare_all(self.schedule.ops(), limit);
        let mut messages = Incoming::default();
        let within = before.iter().all(|&rank| self.by_itself(rank, limit, &mut messages))
            && self.in_circle(&circle, limit)
            && after.iter().all(|&rank| self.by_itself(rank, limit, &mut messages));
        if self.by_time {
            return self.anew().map(|()| None);
        }
        (0..self.places.len() as u32).for_each(|rank| self.put_down(rank));
        Ok(Some(within))
    }

    /// Replays one rank, when all is known that comes to it.
    fn by_itself(&mut self, rank: u32, limit: f64, messages: &mut Incoming) -> bool {
        let Way::InParts(Circle { later, has }) = std::mem::replace(&mut self.way, Way::ByTime) else { return false };
        self.way = Way::InOrder(later);
        self.look_ahead(rank, 0.0);
        self.bring(rank, f64::INFINITY, messages);
        let within = self.replay_one(rank, messages, limit, f64::INFINITY);
        if let Way::InOrder(later) = std::mem::replace(&mut self.way, Way::ByTime) {
            self.way = Way::InParts(Circle { later, has });
        }
        within && !self.by_time
    }

    /// Replays by time those that hear from each other, when all is known that comes to them from others.
    fn in_circle(&mut self, ranks: &[u32], limit: f64) -> bool {
        let mut messages = Vec::new();
        for &rank in ranks {
            let at = self.at(rank, 0);
            let Way::InParts(circle) = &mut self.way else { return false };
            circle.later.take(rank, &mut self.done[at..], &mut messages);
            let kind = if self.places[rank as usize].several { event::at_port } else { event::arrive };
            messages.drain(..).for_each(|(there, message)| self.queue.push(there, kind(rank, receive(message))));
            self.look_ahead(rank, 0.0);
        }
        self.replay_events(limit) && !self.by_time
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::senders_first;
    use super::super::tests::{Unlike, held_back, recorded};
    use super::super::{Free, completion_within};
    use crate::model::{Cost, CostModel, Pipe};
    use crate::schedule::{Program, Schedule, Span};
    use crate::topology::Link;

    /// A source, eight ranks that pass its segments on to each other, a chain behind each of these, and two ranks to which several chains lead.
    fn relayed(segments: usize) -> Schedule {
        const SOURCES: usize = 1;
        const RELAYS: usize = 8;
        const CHAIN: usize = 9;
        let last = SOURCES + RELAYS + RELAYS * CHAIN;
        let mut programs = vec![Program::new(); last + 2];
        for k in 0..segments {
            let segment = Span::output(512 * k, 512);
            let owner = SOURCES + k % RELAYS;
            programs[0].send(owner, segment, &[]);
            let mut got = vec![0; RELAYS];
            got[owner - SOURCES] = programs[owner].recv(0, segment, &[]);
            for relay in (SOURCES..SOURCES + RELAYS).filter(|&relay| relay != owner) {
                programs[owner].send(relay, segment, &[got[owner - SOURCES]]);
                got[relay - SOURCES] = programs[relay].recv(owner, segment, &[]);
            }
            for (relay, mut got) in got.into_iter().enumerate() {
                let mut from = SOURCES + relay;
                for link in 0..CHAIN {
                    let to = SOURCES + RELAYS + relay * CHAIN + link;
                    programs[from].send(to, segment, &[got]);
                    got = programs[to].recv(from, segment, &[]);
                    from = to;
                }
                if relay < 3 {
                    let to = last + relay % 2;
                    programs[from].send(to, segment, &[got]);
                    programs[to].recv(from, segment, &[]);
                }
            }
        }
        Schedule { programs }
    }

    /// With as many messages under way as may be, which hold senders back or do not, whatever the limit.
    #[test]
    fn what_is_held_back_is_so_in_parts_too() {
        let model = Unlike { pipes: false };
        let mut times = Vec::new();
        for in_flight in [1, 2, 3, 5] {
            let mut schedule = relayed(40);
            schedule.programs = schedule.programs.into_iter().map(|program| program.with_in_flight(in_flight)).collect();
            let mut all = held_back(recorded(&schedule, &model));
            assert!(all.all_at_once(f64::INFINITY));
            let takes = all.completion();
            for (limit, found) in
                [(f64::INFINITY, takes), (takes * 1.01, takes), (takes * 0.99, f64::INFINITY), (takes * 0.3, f64::INFINITY)]
            {
                assert_eq!(completion_within(&schedule, &model, limit).unwrap(), found, "{in_flight} under way");
            }
            times.push(takes);
        }
        assert!(times[0] > times[3], "some are held back: {times:?}");
    }

    /// As where links are unlike, with pipes among these ranks alone.
    struct PipesAmong(std::ops::Range<usize>);

    impl CostModel for PipesAmong {
        fn cost(&self, link: Link, bytes: usize) -> Cost {
            Unlike { pipes: true }.cost(link, bytes)
        }

        fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
            let among = self.0.contains(&link.from) && self.0.contains(&link.to);
            if among { Unlike { pipes: true }.pipe(link, bytes) } else { None }
        }
    }

    #[test]
    fn parts_one_after_the_other_do_what_all_do_at_once() {
        let models: [(&dyn CostModel, bool); 4] = [
            (&Unlike { pipes: false }, true),
            (&PipesAmong(1..9), true),
            // a part and who is behind it go through one pipe
            (&Unlike { pipes: true }, false),
            (&Free, false),
        ];
        for ((model, in_parts), segments) in models.into_iter().flat_map(|of| [7, 8, 40].map(|segments| (of, segments))) {
            let schedule = relayed(segments);
            let mut all = recorded(&schedule, model);
            assert!(all.all_at_once(f64::INFINITY) && all.incomplete().is_none());
            let mut parts = recorded(&schedule, model);
            assert_eq!(
                parts.part_after_part(senders_first(&schedule), f64::INFINITY).unwrap(),
                in_parts.then_some(true),
                "{segments} segments"
            );
            if !in_parts {
                // nothing was done yet
                assert!(parts.all_at_once(f64::INFINITY));
            }
            assert_eq!(parts.done, all.done, "{segments} segments");
            let takes = all.completion();
            let [parts, all] = [parts.record, all.record].map(Option::unwrap);
            assert!(parts.port_free == all.port_free && parts.start == all.start, "{segments} segments");
            for (limit, within) in [(takes, true), (takes * 0.99, false), (takes * 0.3, false)].into_iter().filter(|_| in_parts) {
                assert_eq!(
                    recorded(&schedule, model).part_after_part(senders_first(&schedule), limit).unwrap(),
                    Some(within),
                    "{segments} segments"
                );
            }
        }
    }
}
