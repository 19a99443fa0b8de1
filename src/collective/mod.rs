//! The collective operations: a folder each and a line in [`COLLECTIVES`], one algorithm a file. Builders are pure and know no model.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod blocks;
mod built;
mod core;
pub(crate) mod data_flow;
pub(crate) mod fold;
pub mod gather;
mod halving;
mod placed;
pub mod reduce;
pub mod reduce_scatter;
pub mod scatter;
mod step;
pub(crate) mod tree;

use crate::error::{Error, Result};
use crate::schedule::{Elements, Layout, MOST_MESSAGES, Program, Schedule, Span, Specification, pieces, segments};
use crate::topology::Rank;
use crate::units;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub use built::{Alike, Built, With};
pub use placed::program as placed_program;
pub use step::{NativeCall, Step};
pub use tree::{Node, down};

/// What policies and results call the MPI library's own algorithm of each collective.
pub const NATIVE: &str = "native";

/// Every collective.
pub static COLLECTIVES: &[&Collective] = &[
    &bcast::COLLECTIVE,
    &barrier::COLLECTIVE,
    &allreduce::COLLECTIVE,
    &reduce::COLLECTIVE,
    &reduce_scatter::COLLECTIVE,
    &allgather::COLLECTIVE,
    &gather::COLLECTIVE,
    &scatter::COLLECTIVE,
    &alltoall::COLLECTIVE,
];

/// A collective operation.
#[derive(Debug)]
pub struct Collective {
    /// Name in policies and on the command line.
    pub name: &'static str,
    /// MPI's name of it.
    pub function: &'static str,
    /// True if one rank is the root.
    pub rooted: bool,
    /// What a size says of it.
    pub size: Size,
    /// True if it combines what ranks give.
    pub combines: bool,
    /// True if policies say what is done: tuning measures it, and an adaptive call runs it. Else its schedules are there to be predicted, checked and exported.
    pub tuned: bool,
    /// The sizes of one rank's buffers, which may be others at the root, and are alike on all other ranks: whoever calls it, or plans it, looks at one of these.
    pub layout: fn(&Shape, Rank) -> Layout,
    /// What a schedule of it must bring about.
    pub specification: fn(&Shape) -> Specification,
    /// The algorithm by whose sends ranks may take their places in one of its own by the speed of their processors: this one, or the one that it mirrors.
    /// Where there is none, ranks keep their order.
    pub places: fn(&'static Algorithm) -> Option<&'static Algorithm>,
    /// What is taken where nothing is known.
    pub fallback: &'static Algorithm,
    /// Its algorithms; the last one is the library's own.
    pub algorithms: &'static [&'static Algorithm],
    /// What Open MPI has for it, and by which number it is asked for each (`ompi_info --param coll tuned --level 9`).
    pub open_mpi: &'static [(&'static str, i32)],
}

/// Bytes of a number of double precision, which most programs combine.
pub(crate) const NUMBER: usize = 8;

/// What the size of a collective is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// It has no bytes: its size is always 0.
    Nothing,
    /// Its one message, or the vector that is combined.
    Message,
    /// The block that a rank gives to another one, or gets from it, of as many as there are ranks.
    Block,
}

impl Collective {
    /// One of it, as texts say it: "an allreduce".
    pub fn one(&self) -> String {
        format!("{} {}", if self.name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }, self.name)
    }

    /// True if it has bytes; else its size is always 0.
    pub fn sized(&self) -> bool {
        self.size != Size::Nothing
    }

    /// True if nothing happens before the root begins: it alone gives something.
    pub fn root_begins(&self) -> bool {
        self.rooted && (self.layout)(&Shape::new(2, 0, 1), 1).input == 0
    }

    /// What it is asked to do by so many ranks, from this root and for this size, where nobody says what is combined: numbers of eight bytes, as
    /// far as the size is one of whole numbers, else bytes, by an operation that commutes.
    pub fn shape(&self, ranks: usize, root: Rank, bytes: usize) -> Shape {
        let shape = Shape::new(ranks, root, bytes);
        if self.combines && bytes.is_multiple_of(NUMBER) {
            return Shape { elements: Elements { bytes: NUMBER, commute: true }, ..shape };
        }
        shape
    }

    /// Refuses sizes that no memory holds, where what ranks have is many times as long: blocks of all of them, and some vectors in scratch.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_memory(&self, ranks: usize, bytes: usize) -> Result<()> {
        let most = isize::MAX as usize / 4 / (ranks + 2);
        if bytes > most && (self.combines || self.size == Size::Block) {
            return Err(Error::invalid(format!("plan {} of {} over {ranks} ranks: no memory holds that", self.one(), units::bytes(bytes))));
        }
        Ok(())
    }

    /// Finds an algorithm by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the names there are.
    pub fn algorithm(&self, name: &str) -> Result<&'static Algorithm> {
        self.algorithms.iter().copied().find(|a| a.name == name).ok_or_else(|| {
            let names: Vec<_> = self.algorithms.iter().map(|a| a.name).collect();
            Error::invalid(format!("find the {} algorithm \"{name}\": there are {}", self.name, names.join(", ")))
        })
    }

    /// The algorithms that are built, and not the library's own.
    pub fn built(&self) -> impl Iterator<Item = &'static Algorithm> {
        self.algorithms.iter().copied().filter(|a| !a.is_native())
    }

    /// The algorithm by whose sends ranks take their places in one of these by speed; `None`: they keep their order.
    pub fn places_of(&self, algorithm: &'static Algorithm) -> Option<&'static Algorithm> {
        (self.places)(algorithm).filter(|a| !a.is_native())
    }

    /// The algorithm that is the library's own.
    pub fn native(&self) -> &'static Algorithm {
        self.algorithms[self.algorithms.len() - 1]
    }

    /// The sizes of these that it is tuned at among so many ranks: blocks of all ranks are together as large as the largest of them, since it is what
    /// all ranks give that takes memory and time.
    pub fn tuned_sizes(&self, sizes: &[usize], ranks: usize) -> Vec<usize> {
        let largest = sizes.last().map_or(0, |last| last / if self.size == Size::Block { ranks.max(1) } else { 1 });
        self.sizes(&sizes.iter().copied().filter(|&bytes| bytes <= largest).collect::<Vec<_>>())
    }

    /// The bytes of the segments that all of a message goes in, each along the same ways; 0: it goes in other pieces too.
    pub fn repeats(&self, algorithm: &Algorithm, parameters: &Parameters) -> usize {
        let alike = self.rooted && self.size == Size::Message && algorithm.segmented && !algorithm.exchanges_halves;
        if alike { parameters.segment } else { 0 }
    }

    /// The sizes of these that messages of it may have: all, or only 0.
    pub fn sizes(&self, sizes: &[usize]) -> Vec<usize> {
        if self.sized() { sizes.to_vec() } else { vec![0] }
    }
}

/// Finds a collective by name.
///
/// # Errors
/// [`Error::Invalid`] with the names there are.
pub fn collective(name: &str) -> Result<&'static Collective> {
    among(COLLECTIVES, name)
}

fn among(collectives: &[&'static Collective], name: &str) -> Result<&'static Collective> {
    collectives.iter().copied().find(|c| c.name == name).ok_or_else(|| {
        let names: Vec<&str> = collectives.iter().map(|c| c.name).collect();
        Error::invalid(format!("find the collective \"{name}\": there are {}", names.join(", ")))
    })
}

// a collective is its name: in files, maps and orders

impl PartialEq for Collective {
    fn eq(&self, other: &Collective) -> bool {
        self.name == other.name
    }
}

impl Eq for Collective {}

impl PartialOrd for Collective {
    fn partial_cmp(&self, other: &Collective) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Collective {
    fn cmp(&self, other: &Collective) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for Collective {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Serialize for Collective {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Collective {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        // files are about what is measured and run
        let tuned: Vec<_> = COLLECTIVES.iter().copied().filter(|c| c.tuned).collect();
        among(&tuned, &String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// What a collective is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of ranks.
    pub ranks: usize,
    /// The root; 0 where there is none.
    pub root: Rank,
    /// Size of the message, or of a block ([`Size`]); 0 where there is none.
    pub bytes: usize,
    /// What is combined, where something is.
    pub elements: Elements,
    /// True if what a rank gives lies where it gets the result, as with `MPI_IN_PLACE`.
    pub in_place: bool,
}

impl Shape {
    /// Of so many ranks, with this root and size, where nothing is combined.
    pub fn new(ranks: usize, root: Rank, bytes: usize) -> Shape {
        Shape { ranks, root, bytes, elements: Elements::default(), in_place: false }
    }

    /// Cuts the message into segments of at most `segment` bytes (0: one), each of whole elements but of one at least.
    pub fn segments(&self, segment: usize) -> impl Iterator<Item = Span> + Clone + use<> {
        self.cut(Span::output(0, self.bytes), segment)
    }

    /// As [`Shape::segments`], of some bytes of the message.
    pub fn cut(&self, span: Span, segment: usize) -> impl Iterator<Item = Span> + Clone + use<> {
        let element = self.elements.bytes;
        segments(span.len, if segment == 0 { 0 } else { (segment / element).max(1) * element }).map(move |s| s.within(span))
    }

    /// A specification without any data, of ranks with these buffers.
    fn specification(&self, layout: fn(&Shape, Rank) -> Layout) -> Specification {
        let layouts = (0..self.ranks).map(|rank| layout(self, rank)).collect();
        Specification { layouts, elements: self.elements, ..Specification::empty(self.ranks) }
    }

    /// A rank's position counted from the root.
    pub fn relative(&self, rank: Rank) -> usize {
        (rank + self.ranks - self.root) % self.ranks
    }

    /// The rank at a position counted from the root.
    pub fn absolute(&self, relative: usize) -> Rank {
        (relative + self.root) % self.ranks
    }
}

/// What can be chosen about an algorithm. Those that do not segment or have no radix ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// Radix of a tree; 0: the algorithm's default.
    pub radix: usize,
    /// Messages under way to each peer, in each lane; 0: nothing is said ([`crate::schedule`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: usize,
    /// To how many peers at once a rank sends, in each lane; 0: to all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peers: usize,
    /// True if ranks take their places by the speed of their processors, and not in their order. Builders know places only: it is heeded by
    /// whoever says which rank has which.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_speed: bool,
}

/// True for what files leave out.
pub(crate) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

impl Algorithm {
    /// Its name, and what it is done with.
    pub fn words(&self, parameters: &Parameters) -> String {
        let by_speed = if parameters.by_speed { " by speed" } else { "" };
        let radix = if parameters.radix == 0 { String::new() } else { format!(" of radix {}", parameters.radix) };
        let segment = match (parameters.segment, parameters.in_flight) {
            (0, _) => String::new(),
            (segment, 0) => format!(" in {}", units::bytes(segment)),
            (segment, many) => format!(" in {}, {many} under way", units::bytes(segment)),
        };
        format!("{}{by_speed}{radix}{segment}", self.name)
    }
}

/// Builds one rank's program.
pub type Builder = fn(me: Rank, shape: &Shape, parameters: &Parameters) -> Program;

/// An algorithm of a collective.
#[derive(Debug)]
pub struct Algorithm {
    /// Name in policies and on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// True if it cuts the message into segments of a size that can be chosen.
    pub segmented: bool,
    /// True if the whole message in one segment makes it another algorithm than its kin without segments.
    pub whole: bool,
    /// True if ranks exchange halves of the message, whatever its segments are.
    pub exchanges_halves: bool,
    /// True if it can be built for a shape: some need an even number of ranks, or an operation that commutes.
    pub fits: fn(&Shape) -> bool,
    /// What such a shape has, in words.
    pub wants: &'static str,
    /// The radices worth trying, if it has one.
    pub radices: &'static [usize],
    /// How many lanes its programs have at most.
    pub lanes: usize,
    /// The algorithm of another collective whose messages it sends the other way round, if there is one.
    pub mirrors: Option<&'static Algorithm>,
    /// The builder; `None` for the library's own collective, which is called and not built.
    pub builder: Option<Builder>,
    /// The tree that it sends along, if it is a tree and nothing else: a node's place, for a number of nodes and a radix.
    pub tree: Option<fn(v: usize, ranks: usize, radix: usize) -> Node>,
}

// an algorithm is the one static that describes it

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Algorithm {}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl Parameters {
    /// A segment and a radix, of which nothing else is said.
    pub fn of(segment: usize, radix: usize) -> Parameters {
        Parameters { segment, radix, ..Parameters::default() }
    }

    /// A program with what these say of its messages under way.
    fn hold_back(&self, program: Program) -> Program {
        program.with_in_flight(self.in_flight).with_peers(self.peers)
    }

    /// How many pieces an algorithm cuts a message into.
    pub fn pieces(&self, algorithm: &Algorithm, bytes: usize) -> usize {
        crate::schedule::pieces(bytes, if algorithm.segmented { self.segment } else { 0 })
    }
}

impl Algorithm {
    /// One that leaves nothing to choose and is no tree, to be given a name and a builder; without a builder it is the library's own.
    pub const NEW: Algorithm = Algorithm {
        name: "",
        summary: "",
        citation: "",
        segmented: false,
        whole: false,
        exchanges_halves: false,
        fits: |_| true,
        wants: "",
        radices: &[],
        lanes: 1,
        mirrors: None,
        builder: None,
        tree: None,
    };

    /// True for the library's own collective, which is called and not built.
    pub fn is_native(&self) -> bool {
        self.builder.is_none()
    }

    /// The radices worth trying among so many ranks: those above the first that is not below their number say the same as that one.
    pub fn radices_among(&self, ranks: usize) -> impl Iterator<Item = usize> {
        let below = self.radices.iter().take_while(|&&radix| radix < ranks).count();
        self.radices.iter().copied().take(below + 1)
    }

    /// The largest radix that says something of so many ranks: as many as they are, or one that is tried among any number.
    pub fn most_radix(&self, ranks: usize) -> usize {
        self.radices.iter().copied().fold(ranks, usize::max)
    }

    /// True if its root sends to several peers, of so many ranks.
    pub fn branches(&self, ranks: usize) -> bool {
        // a byte for each, if it is dealt out
        self.builder.is_some_and(|builder| builder(0, &Shape::new(ranks, 0, ranks), &Parameters::default()).branches())
    }

    /// True if it is a tree in which all others of so many ranks are the root's children.
    pub fn is_star(&self, ranks: usize, radix: usize) -> bool {
        self.tree.is_some_and(|tree| tree(0, ranks, radix).children.len() + 1 == ranks)
    }

    /// One rank's program; `None` for the library's own collective.
    pub fn program(&self, me: Rank, shape: &Shape, parameters: &Parameters) -> Option<Program> {
        Some(parameters.hold_back(self.builder?(me, shape, parameters)))
    }

    /// The schedule for all ranks; `None` for the library's own collective.
    pub fn schedule(&self, shape: &Shape, parameters: &Parameters) -> Option<Schedule> {
        let builder = self.builder?;
        Some(Schedule::build(shape.ranks, |me| parameters.hold_back(builder(me, shape, parameters))))
    }

    /// As [`Algorithm::schedule`], for a size that somebody asks for: counted while it is built.
    ///
    /// # Errors
    /// [`Error::TooLarge`], or [`Error::Invalid`] if it does not fit the shape.
    pub fn bounded_schedule(&self, shape: &Shape, parameters: &Parameters) -> Result<Option<Schedule>> {
        self.schedule_within(shape, parameters, MOST_MESSAGES)
    }

    /// As [`Algorithm::bounded_schedule`], with at most so many messages.
    ///
    /// # Errors
    /// As there.
    pub fn schedule_within(&self, shape: &Shape, parameters: &Parameters, most: usize) -> Result<Option<Schedule>> {
        let Some(builder) = self.builder else { return Ok(None) };
        if !(self.fits)(shape) {
            return Err(Error::invalid(format!("build {} over {} ranks: it wants {}", self.name, shape.ranks, self.wants)));
        }
        let segment = if self.segmented { parameters.segment } else { 0 };
        let at_least = (shape.ranks.max(2) - 1).saturating_mul(self.receives_in(shape.bytes, segment));
        let program = |me| Ok(parameters.hold_back(builder(me, shape, parameters)));
        Schedule::bounded(shape.ranks, (shape.bytes, segment), (at_least, most), program).map(Some)
    }

    /// In how many messages a rank other than the root receives the whole message, at least.
    pub(crate) fn receives_in(&self, bytes: usize, segment: usize) -> usize {
        // of two halves one may come in one piece
        if self.segmented { pieces(bytes, segment).div_ceil(2) } else { 1 }
    }
}
