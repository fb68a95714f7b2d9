//! The test kit itself: a kit that breaks nothing would prove nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use support::proxy::request;
use support::{Admin, Ensemble, Proxy, Subject, subject, wait};
use zookeeper_client::{Acls, Client, CreateMode, Error};

#[test]
fn a_single_server_keeps_its_data_over_a_restart() {
    let ensemble = Ensemble::single();
    let admin = Admin::to(&ensemble.connect_string());
    admin.create_all("/a/b");
    admin.set("/a/b", "kept");
    ensemble.server(0).restart();
    wait::until("the data is back", || Admin::to(&ensemble.connect_string()).read("/a/b") == "kept");
}

/// The same program once more is that run.
#[test]
fn hosts_do_not_outlive_a_test_run_that_is_killed() {
    const IS_THAT_RUN: &str = "TEST_RUN_TO_BE_KILLED";
    if std::env::var_os(IS_THAT_RUN).is_some() {
        let host = Subject::new("127.0.0.1:1", "nobody", "a").command(&["true"]).spawn();
        println!("host {}", host.pid());
        return wait::pass(2 * wait::LIMIT);
    }
    let mut run = Command::new(std::env::current_exe().unwrap());
    run.args(["--exact", "--nocapture", "hosts_do_not_outlive_a_test_run_that_is_killed"]).env(IS_THAT_RUN, "");
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let said = subject::collect(run.stdout.take().unwrap());
    let host = wait::for_some("it has started a host", || {
        let line = said.lock().unwrap().lines().find_map(|line| line.split_once("host ")?.1.parse().ok());
        line.filter(|pid| subject::is_alive(*pid))
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait::until("the host is gone", || !subject::is_alive(host));
}

/// `tests/versions.sh` says which one it asked for.
#[test]
fn the_servers_are_of_the_version_that_was_asked_for() {
    let asked = std::env::var("ZOOKEEPER_VERSION").unwrap_or_else(|_| "3".to_owned());
    let ensemble = Ensemble::single();
    let answer = wait::for_some("the server answers", || ensemble.server(0).ask("srvr"));
    let rest = answer.strip_prefix(&format!("Zookeeper version: {asked}"));
    assert!(rest.is_some_and(|rest| rest.starts_with(['.', '-'])), "{answer}");
}

#[test]
fn three_servers_survive_the_loss_of_their_leader() {
    let ensemble = Ensemble::of(3);
    let leader = wait::for_some("there is a leader", || ensemble.leader());
    ensemble.server(leader).kill();
    let other = wait::for_some("there is another leader", || ensemble.leader());
    assert_ne!(leader, other);
    let admin = Admin::to(&ensemble.server(other).address().to_string());
    admin.create("/still", "here");
    ensemble.server(leader).restart();
    let returned = Admin::to(&ensemble.server(leader).address().to_string());
    wait::until("the returned server has caught up", || returned.exists("/still"));
}

#[test]
fn a_paused_server_answers_nothing_until_it_is_resumed() {
    let ensemble = Ensemble::single();
    ensemble.server(0).pause();
    assert_eq!(ensemble.server(0).mode(), None);
    ensemble.server(0).resume();
    wait::until("it answers again", || ensemble.server(0).mode().is_some());
}

#[tokio::test]
async fn a_dropped_reply_loses_the_answer_and_not_the_write() {
    let ensemble = Ensemble::single();
    let proxy = Proxy::to(ensemble.server(0).address());
    let client = connect(&proxy).await;
    proxy.drop_next_reply_to(&[request::CREATE2]);
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let answer = client.create("/lost", b"", &options).await;
    assert!(matches!(answer, Err(Error::ConnectionLoss | Error::Custom(_))), "{answer:?}");
    assert_eq!(proxy.replies_dropped(), 1);
    assert!(client.check_stat("/lost").await.unwrap().is_some(), "the same session goes on, and the znode is there");
}

#[tokio::test]
async fn a_stall_holds_requests_back_until_it_is_healed() {
    let ensemble = Ensemble::single();
    let proxy = Proxy::to(ensemble.server(0).address());
    let client = connect(&proxy).await;
    for stall in [Proxy::stall, Proxy::stall_requests, Proxy::stall_replies] {
        stall(&proxy);
        let mut answer = std::pin::pin!(client.check_stat("/"));
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut answer).await.is_err());
        proxy.heal();
        assert!(answer.await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_cut_resets_connections_until_it_is_healed() {
    let ensemble = Ensemble::single();
    let proxy = Proxy::to(ensemble.server(0).address());
    let client = connect(&proxy).await;
    proxy.cut();
    let eager = Client::connector().with_fail_eagerly().connect(&proxy.connect_string()).await;
    assert!(eager.is_err());
    proxy.heal();
    wait_for_contact(&client).await;
    proxy.reset();
    wait_for_contact(&client).await;
}

async fn connect(proxy: &Proxy) -> Client {
    let connector = Client::connector().with_session_timeout(Duration::from_secs(20));
    connector.connect(&proxy.connect_string()).await.unwrap()
}

async fn wait_for_contact(client: &Client) {
    let contact = async { while client.check_stat("/").await.is_err() {} };
    tokio::time::timeout(wait::LIMIT, contact).await.expect("the session comes back");
}
