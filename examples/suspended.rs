//! Preloaded (`ld.so(8)`), it makes a program believe that its host was suspended: `CLOCK_BOOTTIME` is ahead by the seconds that
//! the file in `SUSPENDED_FOR` says, and no other clock is, as after a real suspend. For the tests.
#![allow(unsafe_code, reason = "it takes the place of a function of the C library")]

use std::ffi::{c_int, c_long};

use libc::{CLOCK_BOOTTIME, SYS_clock_gettime, clockid_t, timespec};

/// # Safety
/// As `clock_gettime(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the kernel checks the caller's pointer.
    let result: c_long = unsafe { libc::syscall(SYS_clock_gettime, clock, time) };
    if result == 0 && clock == CLOCK_BOOTTIME {
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += suspended_for() };
    }
    -c_int::from(result != 0)
}

fn suspended_for() -> i64 {
    let text = std::env::var_os("SUSPENDED_FOR").and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
