//! What programs have in common: most ranks of a tree or an exchange do the same with other peers, at other places of their buffers.

use super::OpId;
use super::building::Own;
use super::op::{Op, SEVERAL, TWO};
use super::program::{NONE, Program};
use super::stream::{Incoming, Stream};
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a program does, but with whom, and where its spans begin.
#[derive(Debug, Clone, Default, PartialEq)]
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
#[derive(Debug, Clone, Default, PartialEq)]
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
            Parts::Own(own) => own.to[stream as usize],
            Parts::Shared(shared) => shared.peers.as_slice()[stream as usize],
        };
        peer as Rank
    }

    /// Who a stream comes from that it receives.
    #[inline]
    pub fn from(&self, stream: u32) -> Rank {
        let peer = match self {
            Parts::Own(own) => own.from[stream as usize],
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

/// One that is equal, of another one's, or this one's.
fn common<T: PartialEq>(new: T, like: Option<&Arc<T>>, fitted: impl Fn(T) -> T) -> Arc<T> {
    like.filter(|like| ***like == new).map_or_else(|| Arc::new(fitted(new)), Arc::clone)
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
    /// The last one of so many operations: most ranks of a tree, and all of an exchange, do the same.
    last: FxHashMap<usize, Rank>,
}

impl Sharing {
    pub fn with_room(ranks: usize) -> Sharing {
        Sharing { programs: Vec::with_capacity(ranks), last: FxHashMap::default() }
    }

    /// The next rank's program.
    pub fn push(&mut self, program: Program) {
        let like = self.last.insert(program.len(), self.programs.len());
        let program = program.sharing(like.map(|like| &self.programs[like]));
        self.programs.push(program);
    }
}

impl Program {
    /// The program, to which no more is added: it shares with another one what both have in common, and has no room for more.
    fn sharing(self, like: Option<&Program>) -> Program {
        let own = match self.parts {
            Parts::Own(own) => own,
            shared => return Program { parts: shared },
        };
        let (body, places) = match like.map(|like| &like.parts) {
            Some(Parts::Shared(shared)) => (Some(&shared.body), Some(&shared.places)),
            _ => (None, None),
        };
        let mut peers = SmallVec::with_capacity(own.to.len() + own.from.len());
        peers.extend_from_slice(&own.to);
        peers.extend_from_slice(&own.from);
        let body = common(own.body, body, |mut body| {
            fit(&mut body.ops);
            fit(&mut body.words);
            body.sends.shrink_to_fit();
            body.receives.shrink_to_fit();
            body.lanes.shrink_to_fit();
            body
        });
        let places = common(own.places, places, |mut places| {
            places.offsets.shrink_to_fit();
            fit(&mut places.reads);
            places
        });
        Program { parts: Parts::Shared(Shared { body, places, peers }) }
    }
}
