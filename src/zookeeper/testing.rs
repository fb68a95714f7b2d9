//! Samples for unit tests.

use std::time::Duration;

use crate::zookeeper::client::connection::Stat;

use crate::core::settings::{Guarantee, Recipe};
use crate::zookeeper::client::acl::Acl;
use crate::zookeeper::client::connect::Access;
use crate::zookeeper::schema::member::About;
use crate::zookeeper::schema::settings::Settings;

pub(crate) fn settings() -> Settings {
    Settings {
        servers: "127.0.0.1:2181".to_owned(),
        chroot: String::new(),
        access: Access::default(),
        session_timeout: Duration::from_secs(15),
        lease: None,
        base: "/zk-leader-run/job".to_owned(),
        election: "/zk-leader-run/job/election".to_owned(),
        acl: Acl::open(),
        is_shared: false,
        recipe: Recipe::Sequential,
        guarantee: Guarantee::AtMostOne,
        max_pause: None,
        leaders: 1,
        priority: 0,
        id: "host:1".to_owned(),
        host: "host".to_owned(),
        pid: 1,
        pid_namespace: String::new(),
        instance: 0xfeed_0000_0000_0001,
        vouch: None,
        once: None,
        about: About::default(),
    }
}

pub(super) fn stat() -> Stat {
    Stat {
        czxid: 1,
        mzxid: 77,
        pzxid: 1,
        ctime: 0,
        mtime: 0,
        version: 5,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 0,
        num_children: 0,
    }
}
