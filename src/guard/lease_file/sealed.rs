//! A sealed lease file: memory without a name, that only mappings made before the seal can change. Its path is that of
//! the guard's descriptor in `/proc`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;

use super::layout::{KILL_AT, SEQUENCE, SIZE, STATE, WORDS, words};
use crate::guard::sys;

#[derive(Debug)]
pub(super) struct SealedFile {
    file: OwnedFd,
    words: &'static [AtomicU64; WORDS],
}

impl SealedFile {
    /// # Errors
    /// If the kernel refuses it (`memfd_create(2)`; Linux 5.1 knows the seal).
    pub(super) fn make(first: &[u8; SIZE]) -> io::Result<Self> {
        let file = create()?;
        ftruncate(&file, SIZE as u64)?;
        fchmod(&file, Mode::from_raw_mode(0o444))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let words = sys::map_words(file.as_fd())?;
        fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        let sealed = Self { file, words };
        sealed.write(first);
        Ok(sealed)
    }

    /// A seqlock: the counter is odd while the rest is written.
    pub(super) fn write(&self, bytes: &[u8; SIZE]) {
        let new = words(bytes);
        let sequence = new[SEQUENCE];
        self.words[SEQUENCE].store(sequence.wrapping_sub(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (at, (word, new)) in self.words.iter().zip(new).enumerate() {
            if at != SEQUENCE {
                word.store(new, Ordering::Relaxed);
            }
        }
        self.words[SEQUENCE].store(sequence, Ordering::Release);
    }

    pub(super) fn close(&self, bytes: &[u8; SIZE]) {
        let over = words(bytes);
        self.words[KILL_AT].store(over[KILL_AT], Ordering::Release);
        self.words[STATE].store(over[STATE], Ordering::Release);
    }
}

impl AsRawFd for SealedFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

fn create() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Linux 6.3 wants to hear whether it may be executed.
    memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create(NAME, flags))
}

const NAME: &str = "zk-leader-lease";

#[cfg(test)]
mod tests {
    use super::super::layout::LeaseView;
    use super::*;

    /// As the readers do it.
    fn look(words: &[AtomicU64; WORDS]) -> Option<[u64; WORDS]> {
        let before = words[SEQUENCE].load(Ordering::Acquire);
        let read = std::array::from_fn(|at| words[at].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let after = words[SEQUENCE].load(Ordering::Relaxed);
        (before == after && before % 2 == 0).then_some(read)
    }

    /// The command opens it by its path, to read.
    #[test]
    fn no_program_inherits_it() {
        let file = SealedFile::make(&LeaseView::NONE.encode(0, 0)).unwrap();
        let flags = rustix::io::fcntl_getfd(&file.file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "{flags:?}");
    }

    #[test]
    fn what_is_read_while_it_is_written_belongs_together() {
        let file = SealedFile::make(&LeaseView::NONE.encode(0, 0)).unwrap();
        let words = file.words;
        let writer = std::thread::spawn(move || {
            for sequence in 1..2_000_000 {
                let view = LeaseView { token: sequence, ..LeaseView::NONE };
                file.write(&view.encode(2 * sequence.unsigned_abs(), u128::from(sequence.unsigned_abs())));
            }
        });
        while !writer.is_finished() {
            if let Some(read) = look(words) {
                assert_eq!((read[SEQUENCE], read[7].to_be()), (2 * read[2], read[2]));
            }
        }
        writer.join().unwrap();
    }

    #[test]
    fn a_file_whose_writer_died_in_the_middle_is_over_when_it_is_closed() {
        let end = LeaseView { token: 7, ..LeaseView::NONE }.encode(0, 0);
        let file = SealedFile::make(&end).unwrap();
        file.words[KILL_AT].store(u64::MAX, Ordering::Relaxed);
        file.close(&LeaseView::NONE.encode(0, 0));
        let read = look(file.words).unwrap();
        assert_eq!((read[KILL_AT], read[2]), (0, 7));
        assert_eq!(read[STATE], words(&LeaseView::NONE.encode(0, 0))[STATE]);
    }
}
