//! What a link makes of the replies that pass it.

use std::fmt;
use std::sync::Mutex;

type Change = Box<dyn FnMut(Vec<u8>) -> Vec<u8> + Send>;

/// Shared by all connections of a link. At first every reply passes as it is.
#[derive(Default)]
pub struct Tampering(Mutex<Option<Change>>);

impl Tampering {
    pub fn set(&self, change: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(change));
    }

    pub fn stop(&self) {
        *self.0.lock().unwrap() = None;
    }

    pub fn apply(&self, frame: Vec<u8>) -> Vec<u8> {
        match self.0.lock().unwrap().as_mut() {
            Some(change) => change(frame),
            None => frame,
        }
    }
}

impl fmt::Debug for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tampering")
    }
}
