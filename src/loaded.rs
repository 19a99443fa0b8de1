//! The files that the process has loaded: where the MPI library's own functions are looked up.
#![allow(unsafe_code)] // the loader's C interface

use std::ffi::{CStr, CString, c_int, c_void};

/// The files that the process has loaded, beyond its program, and where they begin.
pub fn loaded() -> Vec<(CString, usize)> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
        // SAFETY: `files` is the list below, and the loader's information holds a name or none
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*files.cast::<Vec<(CString, usize)>>()).push((CStr::from_ptr(name).to_owned(), (*info).dlpi_addr as usize));
            }
        }
        0
    }
    let mut files: Vec<(CString, usize)> = Vec::new();
    // SAFETY: the list outlives the call; files are opened only after it, since the loader is locked until then
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut files).cast()) };
    files
}

/// Where the file begins that holds an address.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // the loader compares addresses, and reads nothing there
pub fn file_of(address: *const c_void) -> Option<usize> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: zeros are a valid value, which the loader fills
    unsafe { (libc::dladdr(address, info.as_mut_ptr()) != 0).then(|| info.assume_init().dli_fbase as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_lies_in_a_file_that_is_loaded() {
        let c = file_of(libc::getpid as *const c_void);
        assert!(loaded().iter().any(|(name, begin)| Some(*begin) == c && name.to_string_lossy().contains("libc")));
        assert_ne!(c, file_of(loaded as *const c_void));
    }
}
