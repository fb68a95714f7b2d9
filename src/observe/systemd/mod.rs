//! Tells systemd how we are (`sd_notify(3)`): READY, STATUS at every change, STOPPING with the time that it may take, and
//! WATCHDOG for as long as both the supervisor's loop and the guard answer. The last hooks need no guard.
//!
//! Never: a message that waits for room; a sign of life that was not asked of those who must live.

mod news;
mod socket;

use std::time::Duration;

use tokio::time::sleep;

use self::news::News;
pub use self::news::ReadyOn;
pub use self::socket::Socket;
use super::liveness::Feed;
use crate::background::or_never;
use crate::clock;
use crate::core::action::PhaseName;
use crate::guard::probe::Prober;

/// A message for which there was no room is repeated after this.
const RETRY: Duration = Duration::from_secs(1);
/// Signs of life per `WATCHDOG_USEC`: one may be late.
const SIGNS: u32 = 3;
const SIGN: &str = "WATCHDOG=1\n";

/// What the service manager asks of us.
#[derive(Debug)]
pub struct Settings {
    pub socket: Socket,
    pub ready_on: ReadyOn,
    /// `WATCHDOG_USEC`, if it is meant for this process.
    pub watchdog: Option<Duration>,
    /// How long a requested stop may take, from the stop signal to our exit.
    pub stop_limit: Duration,
}

impl Settings {
    /// How often a sign of life is due; `None`: nobody waits for one.
    pub fn sign_every(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / SIGNS)
    }

    /// A sign of life of a process whose loop has not begun. One for which there is no room is lost.
    pub fn give_sign(&self) {
        self.socket.send(SIGN);
    }
}

/// Tells what the loop publishes, until it ends. To be spawned.
pub async fn tell(settings: Settings, mut feed: Feed, mut guard: Prober) {
    let mut news = News::new(settings.ready_on, settings.stop_limit);
    let mut unsent = String::new();
    let pause = settings.sign_every();
    let mut watchdog = std::pin::pin!(or_never(pause.map(sleep)));
    loop {
        unsent += &news.of(&feed.status(), clock::now());
        if !unsent.is_empty() && settings.socket.send(&unsent) {
            unsent.clear();
        }
        let retry = (!unsent.is_empty()).then(|| sleep(RETRY));
        tokio::select! {
            turned = feed.turned() => if !turned { return },
            () = or_never(retry) => {}
            () = watchdog.as_mut() => {
                if is_alive(&feed, &mut guard, pause.unwrap_or_default()).await {
                    unsent += SIGN;
                } else {
                    tracing::warn!("The supervisor's loop or the guard does not answer; systemd's watchdog is not fed");
                }
                watchdog.set(or_never(pause.map(sleep)));
            }
        }
    }
}

async fn is_alive(feed: &Feed, guard: &mut Prober, limit: Duration) -> bool {
    let status = feed.status();
    let needs_guard = status.snapshot.phase != PhaseName::Done && !status.guard_gone;
    let (turned, answered) = tokio::join!(feed.fresh(limit), guard.answers(limit));
    turned.is_some() && (answered || !needs_guard)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use tokio::sync::watch;

    use super::*;
    use crate::observe::liveness::Liveness;
    use crate::observe::status::tests::{at, leading};

    #[tokio::test(start_paused = true)]
    async fn what_there_was_no_room_for_is_told_when_there_is_some() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        systemd.set_nonblocking(true).unwrap();
        let socket = Socket::to(path.as_os_str()).unwrap();
        while socket.send("STATUS=busy\n") {}
        let begun = at(Duration::ZERO);
        let (_loop, statuses) = watch::channel(leading(begun, at(Duration::from_secs(5)).lease));
        let settings = Settings { socket, ready_on: ReadyOn::Contending, watchdog: None, stop_limit: Duration::ZERO };
        let told = tell(settings, Feed::new(Liveness::default(), statuses), Prober::of_nobody());
        let heard = async {
            let mut message = [0; 256];
            loop {
                sleep(RETRY / 2).await;
                while let Ok(length) = systemd.recv(&mut message) {
                    if message[..length].starts_with(b"STATUS=leading") {
                        return;
                    }
                }
            }
        };
        let is_heard = tokio::time::timeout(4 * RETRY, async {
            tokio::select! { () = told => {}, () = heard => {} }
        });
        assert!(is_heard.await.is_ok(), "never told");
    }
}
