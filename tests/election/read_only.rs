//! A server that has lost its quorum and goes on reading aloud (`readonlymode.enabled`).

use crate::support::ensemble::{Build, Ensemble};
use crate::support::{Election, wait};

#[test]
fn nobody_leads_on_a_read_only_server_and_all_goes_on_when_it_is_over() {
    let build = Build { java: vec!["-Dreadonlymode.enabled=true".to_owned()], ..Build::default() };
    let ensemble = Ensemble::built(3, &build);
    let election = Election::on(&ensemble.connect_string());
    let left = wait::for_some("there is a follower", || ensemble.follower());
    let host = election.host("a").session_timeout("6s").spawn();
    election.diary.until_started(1);
    for index in (0..3).filter(|index| *index != left) {
        ensemble.server(index).kill();
    }
    election.diary.until_nobody_lives();
    wait::until("the server is read-only", || ensemble.server(left).mode().as_deref() == Some("read-only"));
    host.until_logged("it has no quorum");
    assert_eq!(election.diary.starts().len(), 1, "{}", host.log());
    for index in (0..3).filter(|index| *index != left) {
        ensemble.server(index).start();
    }
    ensemble.wait_until_ready();
    election.diary.until_started(2);
    election.diary.assert_no_overlap();
}
