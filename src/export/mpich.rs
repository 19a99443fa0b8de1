//! MPICH's selection file (`MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`), for 4.0.
//!
//! A file takes the place of all that the library would select by itself, of every collective. So what is decided is put into the library's own selection,
//! which its shared object holds, and what is not decided stays as it is there.

use super::choose::{Decisions, Rule};
use super::library::{LibraryAlgorithm, Target, of};
pub use super::mpich_tree::{Call, Tree};
use super::total_bytes;
use crate::collective::{Algorithm, Collective, Size};
use crate::collective::{allgather, allreduce, alltoall, bcast, reduce, reduce_scatter};
use crate::error::{Error, Result};
use crate::library::Library;
use std::path::Path;

/// MPICH.
pub static TARGET: Target =
    Target { name: "MPICH", library: Library::Mpich, algorithms, one_for_all_sizes: |_| false, knows_commuting: true };

const fn plain(name: &'static str, ours: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm::new(0, name, ours)
}

/// The same among a power of two of ranks: among others the library ends the program.
const fn power_of_two(name: &'static str, ours: &'static Algorithm) -> LibraryAlgorithm {
    LibraryAlgorithm { fits: usize::is_power_of_two, ..plain(name, ours) }
}

fn algorithms(collective: &Collective) -> &'static [LibraryAlgorithm] {
    of(&ALGORITHMS, collective)
}

/// It has one way to do the others.
static ALGORITHMS: [(&Collective, &[LibraryAlgorithm]); 6] = [
    (&allgather::COLLECTIVE, &ALLGATHER),
    (&allreduce::COLLECTIVE, &ALLREDUCE),
    (&alltoall::COLLECTIVE, &ALLTOALL),
    (&bcast::COLLECTIVE, &BCAST),
    (&reduce::COLLECTIVE, &REDUCE),
    (&reduce_scatter::COLLECTIVE, &REDUCE_SCATTER),
];

static BCAST: [LibraryAlgorithm; 3] = [
    plain("MPIR_Bcast_intra_binomial", &bcast::binomial::ALGORITHM),
    power_of_two("MPIR_Bcast_intra_scatter_recursive_doubling_allgather", &bcast::scatter_doubling::ALGORITHM),
    plain("MPIR_Bcast_intra_scatter_ring_allgather", &bcast::scatter_ring::ALGORITHM),
];
static ALLREDUCE: [LibraryAlgorithm; 2] = [
    plain("MPIR_Allreduce_intra_recursive_doubling", &allreduce::recursive_doubling::ALGORITHM),
    LibraryAlgorithm { blocks: true, ..plain("MPIR_Allreduce_intra_reduce_scatter_allgather", &allreduce::rabenseifner::ALGORITHM) },
];
static REDUCE: [LibraryAlgorithm; 2] = [
    plain("MPIR_Reduce_intra_binomial", &reduce::binomial::ALGORITHM),
    LibraryAlgorithm { blocks: true, ..plain("MPIR_Reduce_intra_reduce_scatter_gather", &reduce::rabenseifner::ALGORITHM) },
];
static REDUCE_SCATTER: [LibraryAlgorithm; 2] = [
    plain("MPIR_Reduce_scatter_block_intra_recursive_halving", &reduce_scatter::recursive_halving::ALGORITHM),
    plain("MPIR_Reduce_scatter_block_intra_pairwise", &reduce_scatter::pairwise::ALGORITHM),
];
static ALLGATHER: [LibraryAlgorithm; 3] = [
    plain("MPIR_Allgather_intra_brucks", &allgather::bruck::ALGORITHM),
    power_of_two("MPIR_Allgather_intra_recursive_doubling", &allgather::recursive_doubling::ALGORITHM),
    plain("MPIR_Allgather_intra_ring", &allgather::ring::ALGORITHM),
];
static ALLTOALL: [LibraryAlgorithm; 3] = [
    plain("MPIR_Alltoall_intra_brucks", &alltoall::bruck::ALGORITHM),
    plain("MPIR_Alltoall_intra_scattered", &alltoall::rotated::ALGORITHM),
    plain("MPIR_Alltoall_intra_pairwise", &alltoall::pairwise::ALGORITHM),
];

/// What must stand in the environment of every rank for the file to be heard: elsewhere the library divides what ranks of one host do from what crosses hosts, before
/// it selects anything. The path must be one that every rank finds.
pub fn environment(file: &Path, decisions: &[Decisions]) -> Vec<(String, String)> {
    let mut all = vec![
        ("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE".into(), file.display().to_string()),
        ("MPIR_CVAR_DEVICE_COLLECTIVES".into(), "percoll".into()),
    ];
    let own = |d: &Decisions| (format!("MPIR_CVAR_{}_DEVICE_COLLECTIVE", function(d.collective).to_uppercase()), "0".into());
    all.extend(decisions.iter().filter(|d| d.is_told()).map(own));
    all
}

/// The library's name of a collective.
fn function(collective: &Collective) -> String {
    collective.function.trim_start_matches("MPI_").to_lowercase()
}

/// The file: the library's own selection with what was decided in it. It was read again, and selects what was decided, and elsewhere what the library
/// selects by itself.
///
/// # Errors
/// [`Error::Invalid`] if the selection is of another kind, or the library would do anything else.
pub fn write(decisions: &[Decisions], built_in: &Tree) -> Result<String> {
    let mut tree = built_in.clone();
    for d in decisions.iter().filter(|d| d.is_told()) {
        let inside = ["collective", "comm_type"]
            .map(|key| format!("{key}={}", if key == "collective" { function(d.collective) } else { "intra".into() }));
        let part = tree.part(&inside).ok_or_else(|| {
            Error::invalid(format!(
                "write rules for MPICH: its own selection has no \"{}\": give the one of MPICH 4.0",
                inside.join("\": \"")
            ))
        })?;
        let own = std::mem::take(part);
        let (fewer, exactly) = (format!("comm_size<={}", d.ranks - 1), format!("comm_size<={}", d.ranks));
        *part = Tree(vec![(fewer, own.clone()), (exactly, guarded(d, &own.among(d.ranks))), ("comm_size=any".into(), own)]);
    }
    if let Some(why) = tree.fault() {
        return Err(Error::invalid(format!("write rules for MPICH: {why}")));
    }
    check(decisions, &tree, built_in)?;
    Ok(serde_json::to_string_pretty(&tree).map_err(|e| Error::invalid(format!("write rules for MPICH: {e}")))? + "\n")
}

/// What is decided, for the calls that it is right for; for others the library's own.
fn guarded(d: &Decisions, own: &Tree) -> Tree {
    let yes_or_no = |key: &str, yes: Tree, no: Tree| Tree(vec![(format!("{key}=yes"), yes), (format!("{key}=no"), no)]);
    let Limits { commutes, in_blocks, not_in_place } = limits(d.collective);
    let mut told = by_size(d, own);
    if in_blocks {
        let long = Tree(vec![("count<pow2".into(), own.clone()), ("count=any".into(), told)]);
        told = yes_or_no("is_op_built_in", long, own.clone());
    }
    if commutes {
        told = yes_or_no("is_commutative", told, own.clone());
    }
    if not_in_place {
        told = yes_or_no("is_sendbuf_inplace", own.clone(), told);
    }
    told
}

/// What a call must be for what is decided to be right for it.
struct Limits {
    /// Its operation commutes.
    commutes: bool,
    /// Its operation is MPI's own and its vector not shorter than the largest power of two of ranks: it is cut into so many blocks of whole elements, which operations
    /// of users may not survive.
    in_blocks: bool,
    /// It is not in place.
    not_in_place: bool,
}

fn limits(collective: &Collective) -> Limits {
    let in_blocks = collective.combines && collective.size == Size::Message;
    Limits { commutes: collective.combines, in_blocks, not_in_place: collective == &alltoall::COLLECTIVE }
}

/// The library's word for the sizes of a collective, and how many times the policy's they are.
fn size(collective: &Collective) -> &'static str {
    if collective.size == Size::Block && collective != &alltoall::COLLECTIVE { "total_msg_size" } else { "avg_msg_size" }
}

fn library_bytes(collective: &Collective, ranks: usize, bytes: usize) -> usize {
    if size(collective) == "total_msg_size" { total_bytes(collective, ranks, bytes) } else { bytes }
}

fn by_size(d: &Decisions, own: &Tree) -> Tree {
    let word = size(d.collective);
    let mut all = Vec::new();
    for (k, Rule { choice, .. }) in d.rules.iter().enumerate() {
        let does = choice.map_or(own.clone(), |c| Tree::leaf(c.algorithm.name));
        // sizes are counted by an `int`
        let last = d
            .rules
            .get(k + 1)
            .map(|next| library_bytes(d.collective, d.ranks, next.from_bytes) - 1)
            .filter(|&last| last <= i32::MAX as usize);
        let Some(last) = last else {
            all.push((format!("{word}=any"), does));
            break;
        };
        all.push((format!("{word}<={last}"), does));
    }
    Tree(all)
}

/// Looks all that was decided up as the library does, and what was not.
fn check(decisions: &[Decisions], tree: &Tree, built_in: &Tree) -> Result<()> {
    for d in decisions.iter().filter(|d| d.is_told()) {
        let sizes = d.edges().filter(|&bytes| library_bytes(d.collective, d.ranks, bytes) <= i32::MAX as usize);
        let sizes: Vec<usize> = sizes.collect();
        let calls = d.sizes_of_communicators().into_iter().flat_map(|ranks| sizes.iter().map(move |&bytes| (ranks, bytes)));
        let flags = |bits: usize| (0..4).map(move |k| bits >> k & 1 == 1);
        for ((ranks, bytes), bits) in calls.flat_map(|call| (0..16).map(move |bits| (call, bits))) {
            let [commutes, built_in_op, in_place, few]: [bool; 4] = std::array::from_fn(|k| flags(bits).nth(k).unwrap_or_default());
            let call = Call {
                collective: function(d.collective),
                ranks,
                avg_msg_size: bytes,
                total_msg_size: total_bytes(d.collective, ranks, bytes),
                commutes,
                built_in_op,
                in_place,
                fewer_than_pow2: few,
            };
            let limits = limits(d.collective);
            let safe = (commutes || !limits.commutes) && ((built_in_op && !few) || !limits.in_blocks) && !(in_place && limits.not_in_place);
            let told = d.among(ranks, bytes).filter(|_| safe).map(|c| c.algorithm.name.to_string());
            let (wanted, found) = (told.map_or_else(|| built_in.selected(&call), Ok)?, tree.selected(&call)?);
            if found != wanted {
                let what = format!("{} of {bytes} bytes among {ranks} ranks", d.collective.name);
                return Err(Error::invalid(format!("write rules of {what}: MPICH would select {found} and not {wanted}")));
            }
        }
    }
    Ok(())
}
