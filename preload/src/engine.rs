//! The adaptive collectives: a library of this project that was built for the MPI library of the process, and is loaded when a policy is named.
//!
//! It lies beside this one: `libcollwise-openmpi.so` or `libcollwise-mpich.so`.

use crate::library::{Handle, Mpi};
use crate::{names, say};
use collwise::library::Library;
use collwise::loaded::{file_of, loaded};
use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library's handle; null where nothing is adaptive.
static ENGINE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// True while the thread is in a function of the library: what it calls there is its own business.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// True while the thread is in the library.
pub fn is_inside() -> bool {
    !ENGINE.load(Ordering::Relaxed).is_null() && INSIDE.get()
}

/// The policy that is named.
pub fn policy() -> Option<OsString> {
    std::env::var_os("COLLWISE_POLICY").filter(|name| !name.is_empty())
}

/// The library, before it is used.
pub struct Opened(*mut c_void);

/// Loads the library that goes with MPI's.
///
/// # Errors
/// No policy is named, or why it cannot be loaded.
pub fn open(mpi: &Mpi) -> Result<Opened, String> {
    if policy().is_none() {
        return Err("COLLWISE_POLICY names no policy".into());
    }
    load(mpi).map(Opened)
}

impl Opened {
    /// From here on collectives are adaptive. Has the policy read now: the program may go to another folder. What is wrong with it is said at the first
    /// collective. Collective over all processes.
    pub fn start(self) {
        type Init = unsafe extern "C" fn(*const c_char) -> c_int;
        type Start = unsafe extern "C" fn() -> c_int;
        static INIT: Adaptive = Adaptive::new("collwise_init\0");
        static START: Adaptive = Adaptive::new("collwise_start\0");
        ENGINE.store(self.0, Ordering::Release);
        if let Some(inside) = INIT.enter() {
            // SAFETY: the function of this name has these arguments, and takes a null pointer
            unsafe { std::mem::transmute::<*mut c_void, Init>(inside.function)(std::ptr::null()) };
        }
        if let Some(inside) = START.enter() {
            // SAFETY: as above, without arguments
            let code = unsafe { std::mem::transmute::<*mut c_void, Start>(inside.function)() };
            if code != 0 {
                say(&format!("MPI_COMM_WORLD was not set up in MPI_Init (MPI's error {code}): its second collective does that"));
            }
        }
    }
}

/// How a collective is done, from a root and with so many bytes of a message or block, and the seconds that it should take, if that is known; nothing where it
/// is not adaptive.
pub fn explain(collective: &str, bytes: usize, root: c_int, comm: Handle) -> Option<(String, Option<f64>)> {
    type Explain = unsafe extern "C" fn(*const c_char, i64, c_int, Handle, *mut c_char, usize, *mut f64) -> c_int;
    static EXPLAIN: Adaptive = Adaptive::new("collwise_explain\0");
    let inside = EXPLAIN.enter()?;
    // SAFETY: the function of this name has these arguments
    let explain = unsafe { std::mem::transmute::<*mut c_void, Explain>(inside.function) };
    let (name, mut text, mut seconds) = (CString::new(collective).ok()?, [0u8; 512], -1.0);
    // SAFETY: a name that ends with a zero, and room for what is written
    let code = unsafe { explain(name.as_ptr(), bytes as i64, root, comm, text.as_mut_ptr().cast(), text.len(), &raw mut seconds) };
    let said = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned();
    // the library's own may only be that until there are plans
    (code == 0 && seconds >= 0.0).then_some((said, Some(seconds)))
}

/// The first library that is there.
fn load(mpi: &Mpi) -> Result<*mut c_void, String> {
    let folder = own_folder().ok_or("the folder of the preloaded library is not known")?;
    let kind = if mpi.library() == Library::Mpich { "mpich" } else { "openmpi" };
    // the last one is where cargo builds it
    let names = [format!("libcollwise-{kind}.so"), "libcollwise_c.so".into()];
    let Some(file) = names.iter().map(|name| folder.join(name)).find(|file| file.exists()) else {
        return Err(format!("{} has no {}: make install MPICC=... writes it there", folder.display(), names[0]));
    };
    let path = CString::new(file.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: a name that ends with a zero, of a library of this project
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: the reason, after what failed
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(format!("{reason}; it must be built for the program's MPI library"));
    }
    // all processes set MPI_COMM_WORLD up together: an older library could not
    // SAFETY: the handle of what was loaded, a name that ends with a zero
    if unsafe { libc::dlsym(handle, c"collwise_start".as_ptr()) }.is_null() {
        return Err(format!("{} is older than what is preloaded: install both anew", file.display()));
    }
    // a library for another MPI library would bring that along
    const ASKED: &CStr = c"PMPI_Comm_rank";
    // SAFETY: a name that ends with a zero
    let its = unsafe { libc::dlsym(handle, ASKED.as_ptr()) };
    if !its.is_null() && names::function(ASKED) != Some(its) {
        return Err(format!("{} is built for another MPI library than the program's: build it with its mpicc", file.display()));
    }
    Ok(handle)
}

/// Where this library lies.
fn own_folder() -> Option<PathBuf> {
    let begin = file_of(own_folder as *const c_void)?;
    let (name, _) = loaded().into_iter().find(|(_, at)| *at == begin)?;
    let file = std::fs::canonicalize(Path::new(OsStr::from_bytes(name.to_bytes()))).ok()?;
    file.parent().map(Path::to_path_buf)
}

/// A function of the library.
pub struct Adaptive {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

/// A thread's stay in the library.
pub struct Inside {
    /// The function that it is in.
    pub function: *mut c_void,
    /// The thread's [`INSIDE`]: to look it up again takes as long as all else here.
    inside: *const Cell<bool>,
}

impl Adaptive {
    /// The function of a name that ends with a zero.
    pub const fn new(name: &'static str) -> Adaptive {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("the name must end with a zero") };
        Adaptive { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Begins a stay, if there is a library, and this is no call from within it.
    #[inline]
    pub fn enter(&self) -> Option<Inside> {
        let engine = ENGINE.load(Ordering::Acquire);
        if engine.is_null() {
            return None;
        }
        let inside = INSIDE.try_with(std::ptr::from_ref).ok()?;
        // SAFETY: this thread has it as long as it runs, since it has no destructor
        if unsafe { (*inside).replace(true) } {
            return None;
        }
        let mut function = self.found.load(Ordering::Relaxed);
        if function.is_null() {
            // SAFETY: the handle of what was loaded, which stays; a name that ends with a zero
            function = unsafe { libc::dlsym(engine, self.name.as_ptr()) };
            self.found.store(function, Ordering::Relaxed);
        }
        let stay = Inside { function, inside };
        // an older library may not have it
        (!function.is_null()).then_some(stay)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: as in `enter`: a stay ends in the thread that began it, whose pointer it keeps to itself
        unsafe { (*self.inside).set(false) };
    }
}
