//! What programs have in common: most ranks of a tree or an exchange do the same with other peers, at other places of their buffers.

use super::OpId;
use super::building::Own;
use super::op::{Op, SEVERAL, TWO};
use super::program::{NONE, Program};
use super::stream::{Incoming, Stream};
use crate::topology::Rank;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// What a program does, but with whom, and where its spans begin. Where messages are replayed its lists are read as slices: to index a `SmallVec` is a call, as
/// long as nothing is inlined between units of code.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(super) struct Body {
    pub ops: Vec<Op>,
    /// What has no room in operations: of those that come after several how many, and which; the lanes of copies, combinings and delays; spans beyond 4 GiB.
    pub words: Vec<u32>,
    /// The first and the last operation of each lane that is no receive.
    pub lanes: SmallVec<[(OpId, OpId); 2]>,
    /// Streams that it sends.
    pub sends: SmallVec<[Stream; 4]>,
    /// Streams that it receives.
    pub receives: SmallVec<[Incoming; 2]>,
}

/// Where the spans of a program begin.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(super) struct Places {
    /// By operation.
    pub offsets: SmallVec<[u32; 8]>,
    /// What copies and combinings read begins there, in their order.
    pub reads: Vec<u64>,
    /// Bytes of scratch that the operations use.
    pub scratch: usize,
}

/// What a program is made of.
#[derive(Debug, Clone)]
pub(super) enum Parts {
    Own(Box<Own>),
    Shared(Shared),
}

/// What no more is added to: what a program has in common with others, and its peers.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    body: Arc<Body>,
    places: Arc<Places>,
    /// Who each stream goes to that it sends, then who each comes from that it receives.
    pub peers: SmallVec<[u32; 4]>,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts::Own(Box::default())
    }
}

impl Parts {
    #[inline]
    pub fn body(&self) -> &Body {
        match self {
            Parts::Own(own) => &own.body,
            Parts::Shared(shared) => &shared.body,
        }
    }

    #[inline]
    pub fn places(&self) -> &Places {
        match self {
            Parts::Own(own) => &own.places,
            Parts::Shared(shared) => &shared.places,
        }
    }

    /// Who a stream goes to that it sends.
    #[inline]
    pub fn to(&self, stream: u32) -> Rank {
        let peer = match self {
            Parts::Own(own) => own.to.as_slice()[stream as usize],
            Parts::Shared(shared) => shared.peers.as_slice()[stream as usize],
        };
        peer as Rank
    }

    /// Who a stream comes from that it receives.
    #[inline]
    pub fn from(&self, stream: u32) -> Rank {
        let peer = match self {
            Parts::Own(own) => own.from.as_slice()[stream as usize],
            Parts::Shared(shared) => shared.peers.as_slice()[shared.body.sends.len() + stream as usize],
        };
        peer as Rank
    }

    /// Who each stream goes to, and who each comes from.
    pub fn peers(&self) -> (&[u32], &[u32]) {
        match self {
            Parts::Own(own) => (&own.to, &own.from),
            Parts::Shared(shared) => shared.peers.split_at(shared.body.sends.len()),
        }
    }

    /// To add to.
    #[inline]
    pub fn own(&mut self) -> &mut Own {
        if let Parts::Shared(shared) = self {
            let (to, from) = shared.peers.split_at(shared.body.sends.len());
            let (body, places) = ((*shared.body).clone(), (*shared.places).clone());
            *self = Parts::Own(Box::new(Own {
                body,
                places,
                to: SmallVec::from_slice(to),
                from: SmallVec::from_slice(from),
                ..Own::default()
            }));
        }
        match self {
            Parts::Own(own) => own,
            Parts::Shared(_) => unreachable!("they are its own by now"),
        }
    }
}

/// What takes more than so many bytes is copied to where it fits. Cut off where it is, it would leave rests in which no other program's finds room.
const LONG: usize = 16 << 10;

/// Gives back the room for more.
fn fit<T: Copy>(list: &mut Vec<T>) {
    if size_of_val(list.as_slice()) < LONG {
        list.shrink_to_fit();
    } else if list.len() < list.capacity() {
        *list = list.as_slice().to_vec();
    }
}

/// So many different ones are remembered. Ranks of a tree or an exchange do in tens or hundreds of ways what they do; where each does something of its own,
/// remembering it is no use.
const MOST_KINDS: usize = 1 << 12;

/// What programs may have in common, by hash.
#[derive(Debug)]
struct Kinds<T>(FxHashMap<u64, Arc<T>>);

impl<T> Default for Kinds<T> {
    fn default() -> Kinds<T> {
        Kinds(FxHashMap::default())
    }
}

impl<T: PartialEq + Hash> Kinds<T> {
    /// One that is equal, or this one.
    fn common(&mut self, new: T, fitted: impl Fn(T) -> T) -> Arc<T> {
        let hash = FxBuildHasher.hash_one(&new);
        if let Some(like) = self.0.get(&hash).filter(|like| ***like == new) {
            return Arc::clone(like);
        }
        if self.0.len() >= MOST_KINDS {
            self.0.clear();
        }
        let new = Arc::new(fitted(new));
        self.0.insert(hash, Arc::clone(&new));
        new
    }
}

impl Body {
    /// The operations that one comes after.
    #[inline]
    pub fn after(&self, op: usize) -> &[OpId] {
        match &self.ops[op].after {
            &NONE => &[],
            one if *one < SEVERAL => std::slice::from_ref(one),
            at => {
                let words = &self.words[(at & !(SEVERAL | TWO)) as usize..];
                if at & TWO != 0 { &words[..2] } else { &words[1..][..words[0] as usize] }
            }
        }
    }
}

/// Programs to which no more is added. They share what they have in common.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    pub programs: Vec<Program>,
    bodies: Kinds<Body>,
    places: Kinds<Places>,
}

impl Program {
    /// The same program, which many can have in common ([`Program::renamed`]), each in a few bytes.
    pub(crate) fn into_shared(self) -> Program {
        let parts = match self.parts {
            Parts::Own(own) => Parts::Shared(Sharing::default().shared(*own)),
            shared => shared,
        };
        Program { parts }
    }
}

impl Sharing {
    pub fn with_room(ranks: usize) -> Sharing {
        Sharing { programs: Vec::with_capacity(ranks), ..Sharing::default() }
    }

    /// The next rank's program, which has no room for more.
    pub fn push(&mut self, program: Program) {
        let parts = match program.parts {
            Parts::Own(own) => Parts::Shared(self.shared(*own)),
            shared => shared,
        };
        self.programs.push(Program { parts });
    }

    fn shared(&mut self, own: Own) -> Shared {
        let Own { body, places, to, from, .. } = own;
        let mut peers = SmallVec::with_capacity(to.len() + from.len());
        peers.extend_from_slice(&to);
        peers.extend_from_slice(&from);
        drop((to, from));
        let body = self.bodies.common(body, |mut body| {
            fit(&mut body.ops);
            fit(&mut body.words);
            body.sends.shrink_to_fit();
            body.receives.shrink_to_fit();
            body.lanes.shrink_to_fit();
            body
        });
        let places = self.places.common(places, |mut places| {
            places.offsets.shrink_to_fit();
            fit(&mut places.reads);
            places
        });
        Shared { body, places, peers }
    }
}
