//! The place of systemd: a socket that listens to `sd_notify(3)`.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::wait;

pub struct Notified {
    directory: tempfile::TempDir,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Notified {
    pub fn listening() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        std::thread::spawn(move || {
            let mut message = [0; 4096];
            while let Ok(length) = socket.recv(&mut message) {
                let message = String::from_utf8_lossy(&message[..length]).into_owned();
                heard.lock().unwrap().extend(message.lines().map(str::to_owned));
            }
        });
        Self { directory, lines }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("notify")
    }

    /// Every assignment so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|heard| *heard == line).count()
    }

    #[track_caller]
    pub fn until_told(&self, line: &str) {
        let told = wait::held_within(wait::LIMIT, || self.count(line) > 0);
        assert!(told, "never told {line:?}: {:?}", self.lines());
    }
}
