//! Scripts by chance: a few paths, four clients of which two have an identity, and everything that can be asked.

use crate::compare::difference;
use crate::memory::rng::Rng;
use crate::memory::{ADMIN, ALL, ANY_VERSION, Acl, CREATE, CreateMode, DELETE, Op, READ, Request, WRITE};
use crate::requests::{auth, create, open_at};
use crate::script::Step;
use crate::support::Ensemble;

const PATHS: [&str; 9] = ["/t/a", "/t/a", "/t/b", "/t/a/c", "/t/a/c", "/t/b/d", "/t/a/c/e", "/t", "/t/s0000000001"];
/// Runs that many scripts, and makes the first that differs as short as it can be.
pub fn hold(servers: &Ensemble, scripts: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let scripts = number("FIDELITY_SCRIPTS").unwrap_or(scripts);
    for seed in number("FIDELITY_SEED").map_or(0..scripts, |seed| seed..seed + 1) {
        let mut steps = script(seed, servers.servers().len());
        let Some(mut shortest) = difference(servers, &steps) else { continue };
        let mut at = 0;
        while at < steps.len() {
            let mut shorter = steps.clone();
            shorter.remove(at);
            match difference(servers, &shorter) {
                Some(found) => (steps, shortest) = (shorter, found),
                None => at += 1,
            }
        }
        panic!("FIDELITY_SEED={seed}: {shortest}");
    }
}

/// That no server accepts, or that are nobody's to change.
const ODD: [&str; 7] = ["/t/a/", "t", "", "/t//a", "/t/./a", "/zookeeper", "/"];
const CLIENTS: usize = 4;

pub fn script(seed: u64, servers: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed, 1);
    let mut steps: Vec<Step> = (0..CLIENTS).map(|client| open_at(client, client % servers)).collect();
    steps.push(auth(2, "bob:secret"));
    steps.push(auth(3, "carol:other"));
    steps.push(create(0, "/t", ""));
    let length = rng.between(10, 40);
    let mut is_away = [false; CLIENTS];
    for _ in 0..length {
        let client = rng.below(CLIENTS as u64) as usize;
        if is_away[client] {
            is_away[client] = false;
            steps.push(come_back(client, servers, &mut rng));
            // An identity belongs to a connection.
            steps.extend(match client {
                2 => Some(auth(2, "bob:secret")),
                3 => Some(auth(3, "carol:other")),
                _ => None,
            });
        } else if rng.chance(4) {
            is_away[client] = true;
            steps.push(Step::Reset { client });
        } else {
            steps.push(Step::Ask { client, request: request(&mut rng) });
        }
    }
    steps
}

fn come_back(client: usize, servers: usize, rng: &mut Rng) -> Step {
    let server = rng.below(servers as u64) as usize;
    let mut some = || (0..rng.below(3)).map(|_| path(rng)).filter(|path| path.starts_with("/t")).collect();
    Step::Return { client, server, data: some(), exists: some(), children: some() }
}

fn path(rng: &mut Rng) -> String {
    let odd = rng.chance(2);
    (if odd { rng.pick(&ODD) } else { rng.pick(&PATHS) }).to_owned()
}

fn request(rng: &mut Rng) -> Request {
    // The root has children of other scripts.
    let path = Some(path(rng)).filter(|path| !matches!(path.as_str(), "" | "/")).unwrap_or_else(|| "/t".to_owned());
    let watch = rng.chance(50);
    match rng.below(100) {
        0..45 => Request::Write(op(rng)),
        45..57 => Request::Multi((0..rng.between(1, 5)).map(|_| multi_op(rng)).collect()),
        57..62 => Request::SetAcl { path, acl: acl(rng), version: version(rng) },
        62..72 => Request::Exists { path, watch },
        72..82 => Request::GetData { path, watch },
        82..92 => Request::GetChildren { path, watch },
        92..95 => Request::GetAcl { path },
        95..97 => Request::GetEphemerals { prefix: "/t".to_owned() },
        97 => Request::Sync { path: "/t".to_owned() },
        98 => Request::Ping,
        _ => Request::Close,
    }
}

fn multi_op(rng: &mut Rng) -> Op {
    // Mostly possible ones, or hardly any multi would succeed.
    match rng.below(4) {
        0 => Op::Check { path: "/t".to_owned(), version: ANY_VERSION },
        1 => Op::Check { path: path(rng), version: version(rng) },
        _ => op(rng),
    }
}

fn op(rng: &mut Rng) -> Op {
    let data = (0..rng.below(4)).map(|byte| byte as u8).collect();
    match rng.below(10) {
        0..5 => {
            let modes = [CreateMode::Persistent, CreateMode::Persistent, CreateMode::Ephemeral];
            let sequential = [CreateMode::PersistentSequential, CreateMode::EphemeralSequential];
            let is_sequential = rng.chance(30);
            let mode = if is_sequential { rng.pick(&sequential) } else { rng.pick(&modes) };
            let path = if is_sequential { rng.pick(&["/t/s", "/t/", "/t/a/s"]).to_owned() } else { path(rng) };
            Op::Create { path, data, acl: acl(rng), mode }
        }
        5..7 => Op::Delete { path: path(rng), version: version(rng) },
        _ => Op::SetData { path: path(rng), data, version: version(rng) },
    }
}

fn version(rng: &mut Rng) -> i32 {
    rng.pick(&[ANY_VERSION, ANY_VERSION, 0, 0, 1, 2])
}

fn acl(rng: &mut Rng) -> Vec<Acl> {
    let some = rng.pick(&[READ, WRITE, CREATE, DELETE, ADMIN, READ | WRITE, ALL, ALL - READ, 0]);
    match rng.below(20) {
        0 => vec![Acl::new(ALL, "auth", "")],
        1 => vec![Acl::new(ALL, "ip", "127.0.0.0/8")],
        2 => vec![Acl::new(some, "world", "anyone"), Acl::new(ALL, "auth", "")],
        3 => vec![Acl::new(some, "world", "anyone"), Acl::new(some, "world", "anyone")],
        4 => vec![Acl::new(some, "world", "anyone"), Acl::new(ALL, "digest", "bob:aGFzaA==")],
        5 => vec![Acl::new(some, "ip", "10.0.0.1"), Acl::new(some, "world", "anyone")],
        6 => vec![rng.pick(&[("ip", "300.1.1.1"), ("nobody", "x"), ("digest", "bob"), ("world", "me")])]
            .into_iter()
            .map(|(scheme, id)| Acl::new(ALL, scheme, id))
            .collect(),
        7 => Vec::new(),
        _ => Acl::open(),
    }
}
