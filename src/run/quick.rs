//! Calls that come to one call of MPI's, or to none, remembered with their communicator: what is asked for is compared with what was, and nothing else is looked up.
//!
//! A few bytes go from one rank of a host to another in 100 ns: what is done around that is a part of it. Where ranks share a processor each finds its caches filled
//! by others, and all memory that is looked at takes longer than what is done with it: so what is compared lies in one line of a cache.

use super::communicator::{attached, recent};
use super::known::spread;
use super::planned::Planned;
use super::under_way;
use crate::collective::Collective;
use crate::transport::{Tag, library};
use mpi::ffi::MPI_Comm;
use std::os::raw::c_int;
use std::ptr::NonNull;

/// So many numbers say at most what a call asks for, beside its collective and communicator.
const MOST: usize = 6;

/// All of a call on a communicator that is the same in the next one like it, in `N` numbers beside its collective: the same numbers for all calls of a collective
/// that are remembered by the same [`Words`].
#[derive(Clone, Copy)]
pub struct Key<const N: usize> {
    what: usize,
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
    pub fn new(collective: &'static Collective, words: Words, in_place: bool, asked: [usize; N]) -> Key<N> {
        // descriptions of collectives have pointers, which lie at multiples of four at least
        let what = std::ptr::from_ref(collective) as usize + usize::from(matches!(words, Words::Mpis)) + 2 * usize::from(in_place);
        Key { what, asked }
    }

    /// Where it is remembered.
    #[inline]
    fn place(&self) -> usize {
        let mut mixed = self.what;
        for k in 0..N {
            mixed ^= self.asked[k] << (4 * k);
        }
        spread(mixed) % RECENT
    }

    #[inline]
    fn is(&self, other: &Quick) -> bool {
        let mut alike = self.what == other.what;
        for k in 0..N {
            alike &= self.asked[k] == other.asked[k];
        }
        alike
    }
}

/// The one call of MPI's, or none.
#[derive(Clone, Copy)]
pub enum Way {
    /// It is over wherever it is called: a broadcast of [nothing](super::call::Prepared::nothing), of which all was looked at but for the address.
    Nothing,
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

/// What a call came to.
#[derive(Clone, Copy)]
#[repr(C, align(64))] // what a call of the library's own looks at comes first, and is as long as a line of a cache
pub struct Quick {
    /// 0: nothing.
    what: usize,
    asked: [usize; MOST],
    /// The library's own function; 0 where a message is sent, or comes.
    function: usize,
    pub way: Option<Way>,
}

impl Quick {
    const NOTHING: Quick = Quick { what: 0, asked: [0; MOST], function: 0, way: None };

    /// The library's own function, if that is called: of the type that the collective's is.
    ///
    /// # Safety
    /// `F` must be that type.
    #[inline]
    pub unsafe fn function<F: Copy>(&self) -> Option<F> {
        // SAFETY: the caller's
        if self.function == 0 { None } else { Some(unsafe { std::mem::transmute_copy::<usize, F>(&self.function) }) }
    }
}

/// So many calls of a communicator are remembered: programs repeat a few, such as a length and then the data.
const RECENT: usize = 8;

/// What the last calls of a communicator came to.
pub struct Calls([Quick; RECENT]);

impl Calls {
    #[inline]
    fn find<const N: usize>(&self, key: &Key<N>) -> Option<&Quick> {
        Some(&self.0[key.place()]).filter(|quick| key.is(quick))
    }

    fn keep<const N: usize>(&mut self, key: &Key<N>, way: Way) {
        let mut asked = [0; MOST];
        asked[..N].copy_from_slice(&key.asked);
        let function = if let Way::Librarys(own, _) = way { own.address() } else { 0 };
        self.0[key.place()] = Quick { what: key.what, asked, function, way: Some(way) };
    }
}

impl Default for Calls {
    fn default() -> Calls {
        Calls([Quick::NOTHING; RECENT])
    }
}

/// What a call like this came to. Nothing while non-blocking collectives are under way, which have to get further.
///
/// # Safety
/// As [`attached`]; what is found is gone with the communicator's next call that is remembered.
#[inline]
pub unsafe fn find<'a, const N: usize>(comm: MPI_Comm, key: &Key<N>) -> Option<&'a Quick> {
    // SAFETY: the caller's, who alone uses what the communicator carries
    let calls = unsafe { (*recent(comm)?.as_ptr()).calls.as_deref()? };
    calls.find(key).filter(|_| !under_way::any())
}

/// Remembers what calls like this come to, in place of another one.
///
/// # Safety
/// As [`attached`].
pub unsafe fn keep<const N: usize>(comm: MPI_Comm, key: &Key<N>, way: Way) {
    // SAFETY: the caller's
    if let Some(found) = unsafe { attached(comm) } {
        // SAFETY: as above
        unsafe { (*found.as_ptr()).calls.get_or_insert_default().keep(key, way) };
    }
}

/// Forgets all calls of a communicator.
///
/// # Safety
/// As [`attached`].
#[cfg(feature = "cli")]
pub unsafe fn forget(comm: MPI_Comm) {
    // SAFETY: the caller's
    if let Some(found) = unsafe { attached(comm) } {
        // SAFETY: as above
        unsafe { (*found.as_ptr()).calls = None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{allreduce, bcast};

    fn way(count: c_int) -> Way {
        Way::Message(NonNull::dangling(), Message { sends: true, of_input: false, offset: 0, count, peer: 1, lane: 0 })
    }

    /// The bytes of the message that is found.
    fn found<const N: usize>(calls: &Calls, key: &Key<N>) -> Option<c_int> {
        match calls.find(key)?.way {
            Some(Way::Message(_, message)) => Some(message.count),
            _ => None,
        }
    }

    #[test]
    fn a_call_is_found_by_all_of_it() {
        let mut calls = Calls::default();
        let key = |asked| Key::new(&bcast::COLLECTIVE, Words::Mpis, false, asked);
        let one = key([4, 7, 0]);
        assert_eq!(found(&calls, &one), None, "nothing was kept");
        assert_eq!(found(&calls, &key([0, 0, 0])), None);
        calls.keep(&one, way(4));
        assert_eq!(found(&calls, &one), Some(4));
        for other in [[5, 7, 0], [4, 8, 0], [4, 7, 1]] {
            assert_eq!(found(&calls, &key(other)), None);
        }
        for (collective, words, in_place) in [
            (&allreduce::COLLECTIVE, Words::Mpis, false),
            (&bcast::COLLECTIVE, Words::Ours, false),
            (&bcast::COLLECTIVE, Words::Mpis, true),
        ] {
            assert_eq!(found(&calls, &Key::new(collective, words, in_place, [4, 7, 0])), None);
        }
    }

    #[test]
    fn the_last_call_is_always_found_and_sizes_have_several_places() {
        let (mut calls, key) = (Calls::default(), |bytes| Key::new(&bcast::COLLECTIVE, Words::Mpis, false, [bytes, 7, 0]));
        let sizes: Vec<usize> = (0..20).map(|k| 1 << k).collect();
        for &bytes in &sizes {
            calls.keep(&key(bytes), way(bytes as c_int));
            assert_eq!(found(&calls, &key(bytes)), Some(bytes as c_int));
        }
        let places = sizes.iter().filter(|&&bytes| found(&calls, &key(bytes)).is_some()).count();
        assert!(places >= RECENT / 2, "sizes that are powers of two have {places} places");
    }

    #[test]
    fn what_is_compared_lies_in_one_line_of_a_cache() {
        assert_eq!((std::mem::offset_of!(Quick, function) + size_of::<usize>(), align_of::<Quick>()), (64, 64));
    }
}
