//! Names the shared library as it is installed.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcollwise.so.0");
}
