//! Calls that were looked up, remembered so that the next ones like them run at once: one mechanism for all collectives.

use super::communicator::{GENERATION, State, state};
use super::datatype::Layout;
use super::planned::Planned;
use super::under_way;
use crate::collective::{Collective, Shape, Step};
use crate::error::Result;
use crate::plan;
use crate::schedule::Elements;
use crate::topology::Rank;
use mpi::ffi;
use std::cell::Cell;
use std::os::raw::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many calls are remembered by each thread: programs repeat a few, such as a length and then the data.
const REMEMBERED: usize = 8;

thread_local! {
    static KNOWN: [Cell<Option<Box<Known>>>; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
}

/// A call, as far as what is done hangs on it.
#[derive(Clone, Copy)]
pub struct Call {
    /// What is called.
    pub collective: &'static Collective,
    /// Where.
    pub comm: ffi::MPI_Comm,
    /// Of one item.
    pub datatype: ffi::MPI_Datatype,
    /// Items of the message or of a block.
    pub count: c_int,
    /// The root; 0 where there is none.
    pub root: Rank,
    /// What this rank gives lies where its result goes, as far as these are two buffers.
    pub in_place: bool,
    /// The operation commutes, if there is one.
    pub commutes: bool,
}

impl Call {
    /// One that combines nothing, and not in place.
    pub fn new(collective: &'static Collective, comm: ffi::MPI_Comm, datatype: ffi::MPI_Datatype, count: c_int, root: Rank) -> Call {
        Call { collective, comm, datatype, count, root, in_place: false, commutes: true }
    }

    /// Where a call like this is remembered: those that a program makes in turns are of several communicators, or of several collectives.
    #[inline]
    fn place(&self) -> usize {
        let mixed =
            (self.comm.0 as usize >> 4) ^ (std::ptr::from_ref(self.collective) as usize) ^ (self.count as usize) ^ (self.root << 20);
        // the upper bits of a product hang on all bits (Knuth's multiplicative hashing)
        ((mixed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % REMEMBERED
    }

    #[inline]
    fn is_like(&self, other: &Call) -> bool {
        (self.comm == other.comm)
            & (self.count == other.count)
            & (self.root == other.root)
            & (self.datatype == other.datatype)
            & std::ptr::eq(self.collective, other.collective)
            & (self.in_place == other.in_place)
            & (self.commutes == other.commutes)
    }

    /// What it asks of so many ranks, with items of this layout.
    pub fn shape(&self, ranks: usize, layout: Layout) -> Shape {
        let shape = Shape { in_place: self.in_place, ..Shape::new(ranks, self.root, layout.size * self.count.max(0) as usize) };
        let elements = Elements { bytes: layout.size, commute: self.commutes };
        if self.collective.combines { Shape { elements, ..shape } } else { shape }
    }
}

/// A call that was looked up.
struct Known {
    /// Of a predefined datatype, if it is remembered: the handle of a type that the user made may be freed and come to mean another one.
    call: Call,
    generation: u64,
    /// What is done; without it the library's own runs.
    planned: Option<(NonNull<Planned>, Arc<plan::Planned>)>,
    layout: Layout,
}

impl Known {
    /// Takes what is known of a call, if something is.
    #[inline]
    fn like(call: &Call) -> Option<Box<Known>> {
        // a thread that ends may have let go of it
        let known = KNOWN.try_with(|known| known[call.place()].take()).ok().flatten()?;
        (known.call.is_like(call) && known.generation == GENERATION.load(Ordering::Relaxed)).then_some(known)
    }

    /// Looks a call up; true if it holds for the next call like it.
    unsafe fn new(call: Call, layout: Layout) -> Result<(Box<Known>, bool)> {
        // SAFETY: the caller vouches for the communicator; MPI allows one collective on it at a time
        let state = unsafe { state(call.comm)? };
        let holds = !matches!(state, State::Later) && layout.predefined;
        let planned = match state {
            State::Planned(planned) => {
                let plan = planned.planned(call.collective, |ranks| call.shape(ranks, layout));
                Some((NonNull::from(&mut **planned), plan))
            }
            State::Later | State::Native => None,
        };
        let generation = GENERATION.load(Ordering::Relaxed);
        Ok((Box::new(Known { call, generation, planned, layout }), holds))
    }

    /// Keeps it for the next call like it.
    #[inline]
    fn remember(self: Box<Known>) {
        let place = self.call.place();
        let _ = KNOWN.try_with(|known| known[place].set(Some(self)));
    }
}

/// Carries a call out: `carry_out` gets the steps of its plan with who runs them, or nothing where the library's own is to run. `wanted` is asked at the
/// first call like it: where it says no, the library's own runs, and nothing is set up.
///
/// # Safety
/// The arguments must be valid for the collective.
///
/// # Errors
/// MPI's reason, `wanted`'s or `carry_out`'s.
#[inline]
pub unsafe fn run(
    call: Call,
    wanted: impl FnOnce(Layout) -> Result<bool>,
    carry_out: impl FnOnce(Option<(&mut Planned, &[Step])>, Layout) -> Result<()>,
) -> Result<()> {
    let (known, holds) = match Known::like(&call) {
        Some(known) => (known, true),
        None => {
            // SAFETY: a valid datatype
            let layout = unsafe { Layout::of(call.datatype)? };
            if !wanted(layout)? {
                under_way::finish(call.comm, None);
                return carry_out(None, layout);
            }
            // SAFETY: the caller's
            unsafe { Known::new(call, layout)? }
        }
    };
    let steps = match &known.planned {
        Some((planned, plan)) if let plan::Planned::Run(steps) = &**plan => {
            // SAFETY: a communicator's state stays where it is until it goes, and the generation with it
            Some((unsafe { &mut *planned.as_ptr() }, &steps[..]))
        }
        _ => {
            under_way::finish(call.comm, None);
            None
        }
    };
    carry_out(steps, known.layout)?;
    if holds {
        known.remember();
    }
    Ok(())
}
