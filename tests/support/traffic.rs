//! What a client asked of the servers, as its link saw it pass.

use super::Proxy;
use super::proxy::request;

/// What is written for people, and the orders of operators: asked for when there is time, and so at no certain moment.
const BESIDE_THE_ELECTION: [&str; 3] = ["/members", "/history", "/control"];

/// One request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its type (see [`request`]).
    pub kind: i32,
    /// As it was sent. Every path that it names stands in it.
    pub text: String,
}

impl Request {
    pub fn new(kind: i32, frame: &[u8]) -> Self {
        Self { kind, text: String::from_utf8_lossy(frame).into_owned() }
    }

    /// Whether it is about the line, the records or the terms.
    pub fn is_of_the_election(&self) -> bool {
        self.kind != request::PING && !BESIDE_THE_ELECTION.iter().any(|path| self.text.contains(path))
    }
}

impl Proxy {
    /// What was asked so far for the election's sake.
    pub fn asked(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::is_of_the_election).collect()
    }

    /// Whether a contender behind this link has watched its own candidate and so many of those before it in line. Then it asks
    /// for nothing more until something happens to one of them.
    pub fn has_watched(&self, before_it: usize) -> bool {
        let is_watch = |request: &Request| request.kind == request::GET_DATA && request.text.contains("/election/");
        self.asked().into_iter().filter(is_watch).count() > before_it
    }
}
