//! A real server behind a link that spoils its replies, after leadership was gained: at random, or in one way for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::impostors::{MOST_MEMORY_KIB, STOP_LIMIT, our_panics, peak_memory};
use super::support::impostor::wire;
use super::support::{Election, Proxy, Running, wait};
use super::{election, server};

/// A leader behind a link of its own, and a standby on a good one.
struct Scene {
    election: Election,
    link: Proxy,
    leader: Running,
    standby: Running,
}

impl Scene {
    fn new() -> Self {
        let election = election();
        let link = Proxy::to(server().server(0).address());
        let leader = election.host_behind(&link, "a").spawn();
        election.diary.until_started(1);
        let standby = election.steady_host("b").spawn();
        election.until_candidates(2);
        Self { election, link, leader, standby }
    }

    /// The tree ended before the successor's began, no memory was wasted, and after the spoiling the two are as good as new.
    fn recovers(mut self) {
        let memory = peak_memory(self.leader.pid());
        self.link.stop_tampering();
        // Whoever was told, falsely, that it is forbidden or misconfigured has ended for good.
        if self.leader.has_exited() {
            let code = self.leader.code();
            assert!([77, 78].contains(&code), "it ended with {code}:\n{}", self.leader.log());
            self.leader = self.election.host_behind(&self.link, "a").spawn();
        }
        assert!(memory.is_none_or(|memory| memory < MOST_MEMORY_KIB), "it used {memory:?} KiB");
        self.election.until_candidates(2);
        self.election.diary.until_alive();
        let (diary, log) = (&self.election.diary, self.leader.log());
        diary.assert_no_overlap();
        assert!(!our_panics(&log), "{log}");
        let starts = diary.starts().len();
        if diary.last_start().id == "b" {
            self.standby.signal(Signal::SIGTERM);
            assert_eq!(diary.until_started(starts + 1).id, "a", "{}", self.leader.log());
        }
        self.leader.signal(Signal::SIGTERM);
        assert!(wait::held_within(STOP_LIMIT, || self.leader.has_exited()), "{}", self.leader.log());
        diary.assert_no_overlap();
    }

    /// A successor starts, after the last sign of life of the first command's tree.
    fn hands_over(self) {
        self.election.diary.until_started(2);
        self.election.diary.assert_no_overlap();
        self.recovers();
    }
}

/// Spoils one reply in `one_in`.
fn at_random(seed: u64, one_in: u32) -> impl FnMut(Vec<u8>) -> Vec<u8> + Send {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut held_back = Vec::new();
    move |frame| {
        let draw = |random: &mut TestRng, below: usize| usize::try_from(random.next_u32()).unwrap() % below;
        if random.next_u32() % one_in != 0 {
            return [frame, std::mem::take(&mut held_back)].concat();
        }
        let mut spoilt = frame.clone();
        match draw(&mut random, 7) {
            0 => spoilt = Vec::new(),
            1 => spoilt = [frame.clone(), frame].concat(),
            2 => spoilt = wire::frame(&frame[4..4 + draw(&mut random, frame.len() - 4)]),
            3 => spoilt.truncate(draw(&mut random, frame.len())),
            4 => held_back = std::mem::take(&mut spoilt),
            5 => random.fill_bytes(&mut spoilt[4..]),
            _ => {
                for _ in 0..=draw(&mut random, 8) {
                    let at = draw(&mut random, spoilt.len());
                    spoilt[at] ^= 1 << draw(&mut random, 8);
                }
            }
        }
        spoilt
    }
}

#[test]
fn replies_spoilt_at_random_never_make_two_run_at_once() {
    let runs = std::env::var("HOSTILE_RUNS").map_or(2, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        for one_in in [3, 30] {
            let scene = Scene::new();
            scene.link.tamper(at_random(seed, one_in));
            wait::pass(Duration::from_secs(4));
            eprintln!("HOSTILE seed {seed}, one in {one_in}: {} starts", scene.election.diary.starts().len());
            scene.recovers();
        }
    }
}

/// A new connection first of all reads the record.
#[test]
fn a_record_that_is_cut_short_after_a_lost_connection_does_not_make_the_next_loss_unseen() {
    let Scene { election: _election, link, leader, .. } = Scene::new();
    let cut = Arc::new(AtomicBool::new(false));
    let was_cut = Arc::clone(&cut);
    link.tamper(move |frame| {
        let is_record = frame.windows(14).any(|part| part == br#""state":"held""#);
        if is_record && !was_cut.swap(true, Ordering::SeqCst) { wire::frame(&frame[4..20]) } else { frame }
    });
    link.reset();
    wait::until("the reply was cut short", || cut.load(Ordering::SeqCst));
    leader.until_logged("Contact with ZooKeeper was restored");
    link.reset();
    leader.until_logged_times("Contact with ZooKeeper was restored", 2);
}

#[test]
fn replies_that_are_all_cut_short_end_the_command_before_its_successor_starts() {
    let scene = Scene::new();
    scene.link.tamper(|frame| wire::frame(&frame[4..frame.len().min(20)]));
    scene.hands_over();
}

#[test]
fn replies_that_never_end_end_the_command_before_its_successor_starts() {
    let scene = Scene::new();
    scene.link.tamper(|_| vec![0x7f, 0xff, 0xff, 0xff, 0]);
    scene.hands_over();
}

#[test]
fn replies_that_are_all_errors_end_the_command_before_its_successor_starts() {
    for error in [-1, -4, -9999] {
        let scene = Scene::new();
        scene.link.tamper(move |mut frame| {
            if let Some(code) = frame.get_mut(16..20) {
                code.copy_from_slice(&i32::to_be_bytes(error));
            }
            frame
        });
        scene.hands_over();
    }
}

/// The supervisor ends itself; its guard ends the tree.
#[test]
fn a_leader_that_is_flooded_ends_the_command_before_its_successor_starts() {
    let scene = Scene::new();
    let mut first = true;
    scene.link.tamper(move |_| {
        let length = if std::mem::take(&mut first) { &[0x7f, 0xff, 0xff, 0xff][..] } else { &[] };
        [length, &vec![0; 100 * 1024 * 1024]].concat()
    });
    scene.election.diary.until_started(2);
    scene.election.diary.assert_no_overlap();
    assert!(peak_memory(scene.leader.pid()).is_none_or(|memory| memory < MOST_MEMORY_KIB));
}
