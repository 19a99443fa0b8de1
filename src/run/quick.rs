//! Calls that come to one call of MPI's, remembered by the thread that makes them: what is asked for is compared with what was, and nothing else is looked up.
//!
//! A few bytes go from one rank of a host to another in 100 ns: what is done around that is a part of it.

use super::communicator::generation;
use super::known::spread;
use super::planned::Planned;
use super::under_way;
use crate::collective::Collective;
use crate::transport::{Tag, library};
use mpi::ffi::MPI_Comm;
use std::cell::Cell;
use std::os::raw::c_int;
use std::ptr::NonNull;

/// So many numbers say at most what a call asks for, beside its collective and communicator.
const MOST: usize = 6;

/// All of a call that is the same in the next one like it, in `N` numbers beside its collective and communicator: the same numbers for all calls of a collective
/// that are remembered by the same [`Words`].
#[derive(Clone, Copy)]
pub struct Key<const N: usize> {
    what: usize,
    comm: usize,
    asked: [usize; N],
}

/// Whose words a call is in.
#[derive(Clone, Copy)]
pub enum Words {
    /// MPI's: counts are of a block.
    Mpis,
    /// [`Asked`](super::known::Asked)'s: counts are of all blocks together.
    Ours,
}

impl<const N: usize> Key<N> {
    /// Of a call. `in_place`: it may be one in place.
    #[inline]
    pub fn new(collective: &'static Collective, words: Words, in_place: bool, comm: MPI_Comm, asked: [usize; N]) -> Key<N> {
        // descriptions of collectives lie at multiples of eight
        let what = std::ptr::from_ref(collective) as usize + usize::from(matches!(words, Words::Mpis)) + 2 * usize::from(in_place);
        Key { what, comm: comm.0 as usize, asked }
    }

    /// Where it is remembered.
    #[inline]
    fn place(&self) -> usize {
        let mut mixed = self.what ^ self.comm;
        for k in 0..N {
            mixed ^= self.asked[k] << (4 * k);
        }
        spread(mixed) % RECENT
    }

    #[inline]
    fn is(&self, other: &Key<MOST>) -> bool {
        let mut alike = (self.comm == other.comm) & (self.what == other.what);
        for k in 0..N {
            alike &= self.asked[k] == other.asked[k];
        }
        alike
    }

    fn widest(&self) -> Key<MOST> {
        let mut asked = [0; MOST];
        asked[..N].copy_from_slice(&self.asked);
        Key { what: self.what, comm: self.comm, asked }
    }
}

/// The one call of MPI's.
#[derive(Clone, Copy)]
pub enum Way {
    /// The library's own collective, and what it is called with beside the caller's addresses.
    Librarys(library::Own, library::Call),
    /// A message of these plans.
    Message(NonNull<Planned>, Message),
}

/// All that this rank does in a plan: one message in the caller's memory.
#[derive(Clone, Copy)]
pub struct Message {
    /// This rank sends it; or else it comes.
    pub sends: bool,
    /// It lies in what is given; or else in what is got.
    pub of_input: bool,
    /// Bytes from the caller's address.
    pub offset: isize,
    /// Bytes.
    pub count: c_int,
    /// To whom it goes, or who sends it, where messages go through.
    pub peer: c_int,
    /// Tags from the plan's first one on.
    pub lane: Tag,
}

impl Message {
    /// The caller's address, of what is given and of what is got, that it lies behind.
    #[inline]
    pub fn base(&self, given: *mut u8, got: *mut u8) -> *mut u8 {
        if self.of_input { given } else { got }
    }
}

/// What was found, which holds as long as no communicator went.
#[derive(Clone, Copy)]
struct Quick {
    key: Key<MOST>,
    generation: u64,
    /// Something, but for a key of no collective.
    way: Option<Way>,
}

/// So many calls of a thread are remembered: programs repeat a few, such as a length and then the data.
const RECENT: usize = 8;

thread_local! {
    static RECENTS: [Cell<Quick>; RECENT] =
        const { [const { Cell::new(Quick { key: Key { what: 0, comm: 0, asked: [0; MOST] }, generation: 0, way: None }) }; RECENT] };
}

/// How a call like this was carried out. Nothing while non-blocking collectives are under way, which have to get further.
///
/// # Safety
/// What is found is gone with this thread's next call that is remembered.
#[inline]
pub unsafe fn find<'a, const N: usize>(key: &Key<N>) -> Option<&'a Way> {
    // not by `with`, which no other crate or part of one inlines
    let place = RECENTS.try_with(|recents| recents[key.place()].as_ptr()).ok()?;
    // SAFETY: this thread's own, which stays as long as it runs, since it has no destructor; the caller does not keep it
    let quick = unsafe { &*place };
    if key.is(&quick.key) & (quick.generation == generation()) && !under_way::any() { quick.way.as_ref() } else { None }
}

/// Remembers how calls like this are carried out, in place of another one.
pub fn keep<const N: usize>(key: &Key<N>, way: Way) {
    // a thread that ends remembers nothing
    let _ = RECENTS.try_with(|recents| recents[key.place()].set(Quick { key: key.widest(), generation: generation(), way: Some(way) }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{allreduce, bcast};

    fn comm(n: usize) -> MPI_Comm {
        // SAFETY: any number is a handle, and nobody is asked about this one
        unsafe { std::mem::transmute_copy(&n) }
    }

    fn way(count: c_int) -> Way {
        Way::Message(NonNull::dangling(), Message { sends: true, of_input: false, offset: 0, count, peer: 1, lane: 0 })
    }

    /// The bytes of the message that is found.
    fn found<const N: usize>(key: &Key<N>) -> Option<c_int> {
        // SAFETY: looked at before anything else is kept
        match unsafe { find(key) } {
            Some(Way::Message(_, message)) => Some(message.count),
            _ => None,
        }
    }

    // one test: what goes elsewhere in this process makes all void
    #[test]
    fn a_call_is_found_by_all_of_it_until_a_communicator_goes() {
        let key = |comm_n, asked| Key::new(&bcast::COLLECTIVE, Words::Mpis, false, comm(comm_n), asked);
        let one = key(64, [4, 7, 0]);
        assert_eq!(found(&one), None, "nothing was kept");
        keep(&one, way(4));
        assert_eq!(found(&one), Some(4));
        for other in [key(72, [4, 7, 0]), key(64, [5, 7, 0]), key(64, [4, 8, 0]), key(64, [4, 7, 1])] {
            assert_eq!(found(&other), None);
        }
        for (collective, words, in_place) in [
            (&allreduce::COLLECTIVE, Words::Mpis, false),
            (&bcast::COLLECTIVE, Words::Ours, false),
            (&bcast::COLLECTIVE, Words::Mpis, true),
        ] {
            assert_eq!(found(&Key::new(collective, words, in_place, comm(64), [4, 7, 0])), None);
        }
        super::super::communicator::forget();
        assert_eq!(found(&one), None, "the handle may be another communicator's now");

        let sizes: Vec<usize> = (0..20).map(|k| 1 << k).collect();
        for &bytes in &sizes {
            keep(&key(64, [bytes, 7, 0]), way(bytes as c_int));
            assert_eq!(found(&key(64, [bytes, 7, 0])), Some(bytes as c_int));
        }
        let places: std::collections::BTreeSet<usize> = sizes.iter().map(|&bytes| key(64, [bytes, 7, 0]).place()).collect();
        assert!(places.len() >= RECENT / 2, "sizes that are powers of two have {} places", places.len());
    }
}
