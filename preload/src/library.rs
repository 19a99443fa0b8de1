//! The MPI library that the program runs on. None is linked: what is needed of it is looked up when the program starts MPI, so that one
//! build serves every library whose handles are known, and programs without MPI do not load any.
//!
//! Handles are machine words here: addresses under Open MPI, and 32-bit numbers under MPICH, which travel in words on all platforms that
//! Linux runs on and are handed on as they came.

use crate::names;
use collwise::library::Library;
use std::ffi::{CStr, c_char, c_int, c_void};

#[cfg(target_endian = "big")]
compile_error!("a handle of 32 bits that MPI writes into a word must be its lower half");

/// A communicator, datatype, operation, or error handler.
pub type Handle = usize;

/// MPI's constants, which each library has its own way.
#[derive(Debug)]
struct Constants {
    world: Handle,
    no_comm: Handle,
    byte: Handle,
    int: Handle,
    no_datatype: Handle,
    min: Handle,
    errors_return: Handle,
    /// The bits of a handle that mean something.
    bits: usize,
    proc_null: c_int,
    root: c_int,
    cart: c_int,
    graph: c_int,
}

/// The same in all libraries.
const DIST_GRAPH: c_int = 3;

impl Constants {
    /// Those of Open MPI's versions 1 to 5: handles are addresses of variables.
    fn open_mpi() -> Result<Constants, String> {
        let address = |name: &CStr| {
            let found = names::variable(name).map(|a| a as Handle);
            found.ok_or_else(|| format!("it has no {}", name.to_string_lossy()))
        };
        Ok(Constants {
            world: address(c"ompi_mpi_comm_world")?,
            no_comm: address(c"ompi_mpi_comm_null")?,
            byte: address(c"ompi_mpi_byte")?,
            int: address(c"ompi_mpi_int")?,
            no_datatype: address(c"ompi_mpi_datatype_null")?,
            min: address(c"ompi_mpi_op_min")?,
            errors_return: address(c"ompi_mpi_errors_return")?,
            bits: usize::MAX,
            proc_null: -2,
            root: -4,
            cart: 1,
            graph: 2,
        })
    }

    /// Those that MPICH from version 3.1 on and the libraries that are compatible with it share.
    fn mpich() -> Constants {
        Constants {
            world: 0x4400_0000,
            no_comm: 0x0400_0000,
            byte: 0x4c00_010d,
            int: 0x4c00_0405,
            no_datatype: 0x0c00_0000,
            min: 0x5800_0002,
            errors_return: 0x5400_0001,
            bits: 0xffff_ffff,
            proc_null: -1,
            root: -3,
            cart: 2,
            graph: 1,
        }
    }

    /// Those of the library that says this of itself.
    fn of(library: Library) -> Result<Constants, String> {
        match library {
            Library::Mpich => Ok(Constants::mpich()),
            Library::OpenMpi => Constants::open_mpi(),
            _ => Err("its handles are not known".into()),
        }
    }
}

/// Declares the functions that are called for the library's own purposes.
macro_rules! functions {
    ($($own:ident = $name:ident($($type:ty),*) -> $result:ty;)*) => {
        #[derive(Debug)]
        struct Functions {
            $($own: unsafe extern "C" fn($($type),*) -> $result,)*
        }

        impl Functions {
            fn find() -> Result<Functions, String> {
                Ok(Functions {
                    $($own: {
                        const NAME: Result<&CStr, std::ffi::FromBytesWithNulError> = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                        let found = NAME.ok().and_then(names::function).ok_or(concat!("it has no ", stringify!($name)))?;
                        // SAFETY: MPI's function of this name has these arguments
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    wtime = PMPI_Wtime() -> f64;
    type_size = PMPI_Type_size_x(Handle, *mut i64) -> c_int;
    comm_rank = PMPI_Comm_rank(Handle, *mut c_int) -> c_int;
    comm_size = PMPI_Comm_size(Handle, *mut c_int) -> c_int;
    comm_remote_size = PMPI_Comm_remote_size(Handle, *mut c_int) -> c_int;
    comm_test_inter = PMPI_Comm_test_inter(Handle, *mut c_int) -> c_int;
    comm_group = PMPI_Comm_group(Handle, *mut Handle) -> c_int;
    comm_remote_group = PMPI_Comm_remote_group(Handle, *mut Handle) -> c_int;
    win_group = PMPI_Win_get_group(Handle, *mut Handle) -> c_int;
    group_free = PMPI_Group_free(*mut Handle) -> c_int;
    translate_ranks = PMPI_Group_translate_ranks(Handle, c_int, *const c_int, Handle, *mut c_int) -> c_int;
    topo_test = PMPI_Topo_test(Handle, *mut c_int) -> c_int;
    cart_dims = PMPI_Cartdim_get(Handle, *mut c_int) -> c_int;
    cart_shift = PMPI_Cart_shift(Handle, c_int, c_int, *mut c_int, *mut c_int) -> c_int;
    graph_count = PMPI_Graph_neighbors_count(Handle, c_int, *mut c_int) -> c_int;
    graph_neighbours = PMPI_Graph_neighbors(Handle, c_int, c_int, *mut c_int) -> c_int;
    dist_graph_count = PMPI_Dist_graph_neighbors_count(Handle, *mut c_int, *mut c_int, *mut c_int) -> c_int;
    dist_graph_neighbours = PMPI_Dist_graph_neighbors(Handle, c_int, *mut c_int, *mut c_int, c_int, *mut c_int, *mut c_int) -> c_int;
    get_name = PMPI_Comm_get_name(Handle, *mut c_char, *mut c_int) -> c_int;
    get_parent = PMPI_Comm_get_parent(*mut Handle) -> c_int;
    comm_split = PMPI_Comm_split(Handle, c_int, c_int, *mut Handle) -> c_int;
    comm_free = PMPI_Comm_free(*mut Handle) -> c_int;
    get_errhandler = PMPI_Comm_get_errhandler(Handle, *mut Handle) -> c_int;
    set_errhandler = PMPI_Comm_set_errhandler(Handle, Handle) -> c_int;
    free_errhandler = PMPI_Errhandler_free(*mut Handle) -> c_int;
    error_string = PMPI_Error_string(c_int, *mut c_char, *mut c_int) -> c_int;
    processor_name = PMPI_Get_processor_name(*mut c_char, *mut c_int) -> c_int;
    allreduce = PMPI_Allreduce(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;
    send = PMPI_Send(*const c_void, c_int, Handle, c_int, c_int, Handle) -> c_int;
    recv = PMPI_Recv(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut [u64; STATUS_WORDS]) -> c_int;
}

/// Words of a buffer that holds a status of any library: they have 20 to 24 bytes.
const STATUS_WORDS: usize = 16;

/// Bytes of a buffer that holds any text of any library: MPICH's description of itself may be the longest.
const TEXT_BYTES: usize = 8192 + 1;

/// The MPI library of this process.
#[derive(Debug)]
pub struct Mpi {
    library: Library,
    constants: Constants,
    functions: Functions,
}

impl Mpi {
    /// Looks it up.
    ///
    /// # Errors
    /// Its handles are not known: what it says of itself, and why.
    pub fn find() -> Result<Mpi, String> {
        let version = version();
        let library = Library::of(&version);
        let found =
            standard_handles().and_then(|()| Ok(Mpi { library, constants: Constants::of(library)?, functions: Functions::find()? }));
        found.map_err(|why| format!("\"{version}\" ({why})"))
    }

    /// Which one it is.
    pub fn library(&self) -> Library {
        self.library
    }

    /// Whether all processes of `MPI_COMM_WORLD` say so, of each. Collective.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn all_say<const N: usize>(&self, so: [bool; N]) -> Result<[bool; N], String> {
        let (mine, mut all) = (so.map(c_int::from), [0; N]);
        let c = &self.constants;
        // SAFETY: called between MPI_Init and MPI_Finalize, with so many numbers
        let code = unsafe { (self.functions.allreduce)(mine.as_ptr().cast(), all.as_mut_ptr().cast(), N as c_int, c.int, c.min, c.world) };
        self.check(code).map(|()| all.map(|said| said != 0))
    }

    /// Seconds of a clock of this process.
    pub fn now(&self) -> f64 {
        // SAFETY: called between MPI_Init and MPI_Finalize, as all that follow
        unsafe { (self.functions.wtime)() }
    }

    /// Bytes of so many elements.
    ///
    /// # Safety
    /// The datatype is one, or `MPI_DATATYPE_NULL`.
    pub unsafe fn bytes(&self, count: impl Into<i64>, datatype: Handle) -> usize {
        let count = count.into();
        if count <= 0 || datatype & self.constants.bits == self.constants.no_datatype {
            return 0;
        }
        let mut size = 0;
        // SAFETY: the caller's
        let code = unsafe { (self.functions.type_size)(datatype, &raw mut size) };
        if code == 0 { usize::try_from(size).unwrap_or(0).saturating_mul(count as usize) } else { 0 }
    }

    /// The caller's rank and the number of ranks of its group.
    ///
    /// # Safety
    /// The communicator is one, as in all that follow.
    pub unsafe fn place(&self, comm: Handle) -> (c_int, usize) {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller's
        unsafe {
            (self.functions.comm_rank)(comm, &raw mut rank);
            (self.functions.comm_size)(comm, &raw mut size);
        }
        (rank, usize::try_from(size).unwrap_or(0))
    }

    /// The caller's rank in `MPI_COMM_WORLD`.
    pub fn rank(&self) -> usize {
        // SAFETY: called between MPI_Init and MPI_Finalize
        usize::try_from(unsafe { self.place(self.constants.world) }.0).unwrap_or(0)
    }

    /// Ranks of the other group, where the communicator joins two.
    pub unsafe fn remote(&self, comm: Handle) -> Option<usize> {
        let (mut inter, mut size) = (0, 0);
        // SAFETY: the caller's
        unsafe {
            (self.functions.comm_test_inter)(comm, &raw mut inter);
            if inter != 0 {
                (self.functions.comm_remote_size)(comm, &raw mut size);
            }
        }
        (inter != 0).then(|| usize::try_from(size).unwrap_or(0))
    }

    /// What ranks that a communicator's messages go to are in `MPI_COMM_WORLD`: those of the other group, where it joins two. Each that is not
    /// there, as in other jobs, is negative.
    ///
    /// # Safety
    /// The communicator is one; there is room for as many as there are ranks.
    pub unsafe fn in_world(&self, comm: Handle, ranks: &[c_int], found: &mut [c_int]) {
        let (f, mut group) = (&self.functions, 0);
        // SAFETY: the caller's
        unsafe {
            if comm & self.constants.bits == self.constants.world {
                return found.copy_from_slice(ranks);
            }
            let group_of = if self.remote(comm).is_some() { f.comm_remote_group } else { f.comm_group };
            let code = group_of(comm, &raw mut group);
            self.members_in_world(code, group, ranks, found);
        }
    }

    /// As [`Mpi::in_world`], of a window's ranks.
    ///
    /// # Safety
    /// The window is one; the rest as above.
    pub unsafe fn in_world_of_window(&self, window: Handle, ranks: &[c_int], found: &mut [c_int]) {
        let mut group = 0;
        // SAFETY: the caller's
        unsafe {
            let code = (self.functions.win_group)(window, &raw mut group);
            self.members_in_world(code, group, ranks, found);
        }
    }

    /// As [`Mpi::in_world`], of a group's ranks, if the code says that there is one; it is given back.
    unsafe fn members_in_world(&self, code: c_int, mut group: Handle, ranks: &[c_int], found: &mut [c_int]) {
        let (f, mut all) = (&self.functions, 0);
        found.fill(-1);
        if code != 0 {
            return;
        }
        // SAFETY: the caller's group, and as many ranks as there is room for
        unsafe {
            if (f.comm_group)(self.constants.world, &raw mut all) == 0 {
                if (f.translate_ranks)(group, ranks.len() as c_int, ranks.as_ptr(), all, found.as_mut_ptr()) != 0 {
                    found.fill(-1);
                }
                (f.group_free)(&raw mut all);
            }
            (f.group_free)(&raw mut group);
        }
    }

    /// How far one rank of a communicator of one group is from the next in `MPI_COMM_WORLD`, where its first two and its last are as far.
    pub unsafe fn stride(&self, comm: Handle, ranks: usize) -> Option<usize> {
        let last = c_int::try_from(ranks).ok().filter(|n| *n > 1)? - 1;
        let mut found = [-1; 3];
        // SAFETY: the caller's, with as much room
        unsafe { self.in_world(comm, &[0, 1, last], &mut found) };
        if found.iter().any(|rank| *rank < 0) {
            return None;
        }
        let [first, second, last_one] = found.map(|rank| rank as usize);
        let stride = second.checked_sub(first).filter(|stride| *stride > 0)?;
        (last_one == first + stride * last as usize).then_some(stride)
    }

    /// The neighbours that calls to all of them have buffers to send for, of whom some may be nobody; none where the communicator knows no neighbours.
    pub unsafe fn neighbours(&self, comm: Handle) -> Vec<c_int> {
        let f = &self.functions;
        let mut kind = 0;
        let room = |count: c_int| vec![self.constants.proc_null; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the caller's; each function is asked for communicators of its kind alone, and has room for as many as there are
        unsafe {
            if (f.topo_test)(comm, &raw mut kind) != 0 {
                return Vec::new();
            }
            if kind == self.constants.cart {
                let mut dimensions = 0;
                (f.cart_dims)(comm, &raw mut dimensions);
                let both = |dimension: c_int| {
                    let [mut before, mut after] = [self.constants.proc_null; 2];
                    (f.cart_shift)(comm, dimension, 1, &raw mut before, &raw mut after);
                    [before, after]
                };
                (0..dimensions).flat_map(both).collect()
            } else if kind == self.constants.graph {
                let (own, mut count) = (self.place(comm).0, 0);
                (f.graph_count)(comm, own, &raw mut count);
                let mut all = room(count);
                (f.graph_neighbours)(comm, own, count, all.as_mut_ptr());
                all
            } else if kind == DIST_GRAPH {
                let (mut sources, mut count, mut weighted) = (0, 0, 0);
                (f.dist_graph_count)(comm, &raw mut sources, &raw mut count, &raw mut weighted);
                let [mut from, mut from_weights] = [room(sources), room(sources)];
                let [mut all, mut weights] = [room(count), room(count)];
                let others = (from.as_mut_ptr(), from_weights.as_mut_ptr());
                (f.dist_graph_neighbours)(comm, sources, others.0, others.1, count, all.as_mut_ptr(), weights.as_mut_ptr());
                all
            } else {
                Vec::new()
            }
        }
    }

    /// The communicator's name; empty if it has none.
    ///
    /// # Safety
    /// The communicator is one.
    pub unsafe fn name(&self, comm: Handle) -> String {
        // SAFETY: the buffer holds any name
        text(|buffer, length| unsafe { (self.functions.get_name)(comm, buffer, length) })
    }

    /// True for `MPI_PROC_NULL`.
    pub fn is_nobody(&self, rank: c_int) -> bool {
        rank == self.constants.proc_null
    }

    /// True for `MPI_ROOT`.
    pub fn is_root(&self, root: c_int) -> bool {
        root == self.constants.root
    }

    /// True for processes that others started by `MPI_Comm_spawn`.
    pub fn is_spawned(&self) -> bool {
        let mut parent = self.constants.no_comm;
        // SAFETY: called between MPI_Init and MPI_Finalize
        let code = unsafe { (self.functions.get_parent)(&raw mut parent) };
        code == 0 && parent & self.constants.bits != self.constants.no_comm
    }

    /// The name of this process's node; empty if MPI does not tell.
    pub fn node(&self) -> String {
        // SAFETY: the buffer holds any name
        text(|buffer, length| unsafe { (self.functions.processor_name)(buffer, length) })
    }

    /// All processes of `MPI_COMM_WORLD` in a communicator that meets none of the program's messages, calls none of its functions (as
    /// `MPI_Comm_dup` would: attributes have some), and returns errors.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn private_world(&self) -> Result<Handle, String> {
        let (f, world) = (&self.functions, self.constants.world);
        let (mut comm, mut handler) = (0, 0);
        // SAFETY: the program's error handler is put aside for one call
        let code = unsafe {
            self.check((f.get_errhandler)(world, &raw mut handler))?;
            self.check((f.set_errhandler)(world, self.constants.errors_return))?;
            let code = (f.comm_split)(world, 0, 0, &raw mut comm); // hands its error handler on
            self.check((f.set_errhandler)(world, handler))?;
            self.check((f.free_errhandler)(&raw mut handler))?;
            code
        };
        self.check(code).map(|()| comm)
    }

    /// The handle at a place of a list of them: MPICH's have half of a word.
    pub unsafe fn handle_in(&self, list: *const c_void, place: usize) -> Handle {
        // SAFETY: the caller vouches for the list
        unsafe {
            if self.library == Library::Mpich {
                list.cast::<u32>().add(place).read() as Handle
            } else {
                list.cast::<Handle>().add(place).read()
            }
        }
    }

    /// Gives a communicator back.
    ///
    /// # Errors
    /// MPI's reason, as in all that follow.
    pub unsafe fn free(&self, mut comm: Handle) -> Result<(), String> {
        // SAFETY: the caller's
        self.check(unsafe { (self.functions.comm_free)(&raw mut comm) })
    }

    /// Sends bytes.
    pub unsafe fn send(&self, bytes: &[u8], to: c_int, tag: c_int, comm: Handle) -> Result<(), String> {
        let count = c_int::try_from(bytes.len()).map_err(|_| "it has more than 2 GiB".to_string())?;
        // SAFETY: the caller's; the buffer has so many bytes
        self.check(unsafe { (self.functions.send)(bytes.as_ptr().cast(), count, self.constants.byte, to, tag, comm) })
    }

    /// Receives as many bytes as the buffer has.
    pub unsafe fn receive(&self, bytes: &mut [u8], from: c_int, tag: c_int, comm: Handle) -> Result<(), String> {
        let count = c_int::try_from(bytes.len()).map_err(|_| "it has more than 2 GiB".to_string())?;
        let mut status = [0; STATUS_WORDS];
        // SAFETY: the caller's; the buffer has so many bytes
        self.check(unsafe {
            (self.functions.recv)(bytes.as_mut_ptr().cast(), count, self.constants.byte, from, tag, comm, &raw mut status)
        })
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the buffer holds any text
        Err(text(|buffer, length| unsafe { (self.functions.error_string)(code, buffer, length) }))
    }
}

/// A text that MPI writes; empty if it fails.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut buffer = vec![0u8; TEXT_BYTES];
    let mut length = 0;
    let code = write(buffer.as_mut_ptr().cast(), &raw mut length);
    let length = if code == 0 { usize::try_from(length).unwrap_or(0).min(buffer.len()) } else { 0 };
    String::from_utf8_lossy(&buffer[..length]).trim_end_matches('\0').to_string()
}

/// What the library says of itself, in its first line.
fn version() -> String {
    let Some(found) = names::function(c"PMPI_Get_library_version") else { return "an MPI library before MPI 3".into() };
    // SAFETY: MPI's function of this name has these arguments
    let get = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int>(found) };
    // SAFETY: the buffer holds any text
    let said = text(|buffer, length| unsafe { get(buffer, length) });
    said.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses the handles that MPI 5 standardises: libraries have them beside their own, under their usual name.
fn standard_handles() -> Result<(), String> {
    let Some(found) = names::function(c"PMPI_Abi_get_version") else { return Ok(()) };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: MPI's function of this name has these arguments
    unsafe {
        let get = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(found);
        get(&raw mut major, &raw mut minor);
    }
    if major > 0 { Err(format!("its handles are those of MPI's standard ABI {major}.{minor}")) } else { Ok(()) }
}
