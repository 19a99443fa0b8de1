//! Ranks that measure ask each other for the time, and start together.

use super::clocks::{Clocks, at_once};
use super::control::Control;
use super::offsets::Exchange;
use crate::error::Result;
use crate::topology::Rank;

/// Exchanges of a first look: what delays messages must miss one of these in each direction.
const PINGS: usize = 16;
/// Six exchanges suffice where one takes longer than [`FAR_S`]: what delays messages, tens of microseconds, is little of what is timed over such a way, and each exchange
/// takes twice as long as that.
const PINGS_FAR: usize = 6;
/// A way so long, there and back, is of a wide area, and no rank that waited for a processor: it is seen twice.
const FAR_S: f64 = 2e-3;
/// Exchanges of a later look, which has to take away drift alone: how short the way is, is known.
const PINGS_AGAIN: usize = 4;
/// So many ranks are asked for the first time at the same time: to hear all their answers takes no millisecond, and ranks nearby are not taken for some far away
/// ([`at_once`]), but for those that wait for a processor. These are asked with others then, for some microseconds.
const ASKED_AT_ONCE: usize = 32;

/// Asks for the time.
const ASK: f64 = 1.0;
/// No more is asked; what was timed stands, or has to be done once more.
const STANDS: f64 = 0.0;
const ONCE_MORE: f64 = -1.0;

/// A common start is so many times as far off as everybody took to answer: twice the time in which they are told.
const LEAD: f64 = 1.0;

/// Looking at each other's clocks, over any transport.
pub trait Ping: Control {
    /// Answers the root that looks at clocks, until it ends that; true if what was timed has to be done once more.
    ///
    /// # Errors
    /// The transport's reason.
    fn serve_looks(&mut self, root: Rank) -> Result<bool> {
        loop {
            match self.receive_times(root, 1)?[0] {
                ASK => self.send_times(root, &[self.now()])?,
                word => return Ok(word == ONCE_MORE),
            }
        }
    }

    /// On the root: lets the others go on.
    ///
    /// # Errors
    /// The transport's reason.
    fn end_looks(&mut self, others: &[Rank], once_more: bool) -> Result<()> {
        let word = if once_more { ONCE_MORE } else { STANDS };
        others.iter().try_for_each(|&r| self.send_times(r, &[word]))
    }

    /// On the root: looks at clocks of others that [serve](Ping::serve_looks). Gives by how much those have jumped that
    /// have since the last look.
    ///
    /// # Errors
    /// The transport's reason.
    fn look_at(&mut self, others: &[Rank], clocks: &mut Clocks) -> Result<Vec<(Rank, f64)>> {
        let new = clocks.unknown(others);
        let mut trips: Vec<(Rank, f64)> = Vec::new();
        // a first message opens a connection, which takes long; then each one shows about how far away it is, whatever it waits for others
        for few in new.chunks(ASKED_AT_ONCE) {
            ping(self, few)?;
            trips.extend(few.iter().zip(ping(self, few)?).map(|(&r, e)| (r, e.received - e.sent)));
        }
        let seen_far: Vec<Rank> = trips.iter().filter(|trip| trip.1 > FAR_S).map(|trip| trip.0).collect();
        for exchange in seen_far.chunks(ASKED_AT_ONCE).map(|few| Ok((few, ping(self, few)?))).collect::<Result<Vec<_>>>()? {
            for (r, e) in exchange.0.iter().zip(exchange.1) {
                trips.iter_mut().filter(|trip| trip.0 == *r).for_each(|trip| trip.1 = trip.1.min(e.received - e.sent));
            }
        }
        let (far, near): (Vec<_>, Vec<_>) = trips.into_iter().partition(|&(_, trip_s)| trip_s > FAR_S);
        let mut jumped = look_at_parts(self, &at_once(&near), PINGS, clocks)?;
        jumped.extend(look_at_parts(self, &at_once(&far), PINGS_FAR, clocks)?);
        let known = others.iter().filter(|r| !new.contains(r));
        let trips: Vec<(Rank, f64)> = known.filter_map(|&r| Some((r, clocks.get(r)?.trip()))).collect();
        if !trips.is_empty() {
            let began = self.now();
            jumped.extend(look_at_parts(self, &at_once(&trips), PINGS_AGAIN, clocks)?);
            clocks.looked_again(self.now() - began);
        }
        Ok(jumped)
    }

    /// On the root, how long all others take to answer; they do.
    ///
    /// # Errors
    /// The transport's reason.
    fn ask(&mut self, root: Rank, others: &[Rank]) -> Result<f64> {
        let asked = self.now();
        if self.rank() == root {
            others.iter().try_for_each(|&r| self.send_times(r, &[]))?;
            self.receive_signals(others.iter().copied())?;
        } else {
            self.receive_times(root, 0)?;
            self.send_times(root, &[])?;
        }
        Ok(self.now() - asked)
    }

    /// Returns at about the same time on the root and all others, and says which time that is on its own clock: the common start, or its own where it
    /// was told late. What is timed counts from there: ranks that share a processor cannot all go on at once, and those which begin later
    /// than the first wait for work of what is timed. The root, on which they took so long to answer, has looked at their clocks.
    ///
    /// # Errors
    /// The transport's reason.
    fn start_together(&mut self, root: Rank, others: &[Rank], clocks: &Clocks, answered_s: f64) -> Result<f64> {
        let start = if self.rank() == root {
            let start = self.now() + LEAD * answered_s;
            let theirs = |r: Rank| clocks.get(r).map_or(start, |clock| clock.theirs(start));
            others.iter().try_for_each(|&r| self.send_times(r, &[theirs(r)]))?;
            start
        } else {
            self.receive_times(root, 1)?[0]
        };
        let told = self.now();
        self.delay((start - told).max(0.0));
        Ok(start.max(told))
    }
}

impl<T: Control> Ping for T {}

fn look_at_parts<T: Control + ?Sized>(
    transport: &mut T,
    parts: &[Vec<Rank>],
    pings: usize,
    clocks: &mut Clocks,
) -> Result<Vec<(Rank, f64)>> {
    let mut jumped = Vec::new();
    for part in parts {
        let mut exchanges = vec![Vec::with_capacity(pings); part.len()];
        for _ in 0..pings {
            ping(transport, part)?.into_iter().zip(&mut exchanges).for_each(|(one, all)| all.push(one));
        }
        jumped.extend(part.iter().zip(exchanges).filter_map(|(&r, exchanges)| Some((r, clocks.look(r, &exchanges)?))));
    }
    Ok(jumped)
}

/// One exchange with each of some ranks, all at the same time.
fn ping<T: Control + ?Sized>(transport: &mut T, others: &[Rank]) -> Result<Vec<Exchange>> {
    let mut stamps = vec![[0u8; size_of::<f64>()]; others.len()];
    let (mut under_way, mut exchanges) = (Vec::new(), Vec::new());
    for (&r, stamp) in others.iter().zip(&mut stamps) {
        // SAFETY: `stamps` lives, in its place, until all receives are complete
        under_way.push(unsafe { transport.receive(r, 0, stamp.as_mut_ptr(), stamp.len())? });
        exchanges.push(Exchange { sent: transport.now(), theirs: 0.0, received: 0.0 });
        transport.send_times(r, &[ASK])?;
    }
    let mut open: Vec<usize> = (0..others.len()).collect();
    while !open.is_empty() {
        let k = transport.wait_any(&mut under_way)?;
        let received = transport.now();
        under_way.remove(k);
        let k = open.remove(k);
        exchanges[k].theirs = f64::from_ne_bytes(stamps[k]);
        exchanges[k].received = received;
    }
    Ok(exchanges)
}
