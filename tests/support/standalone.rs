//! The standalone server that the tests of one suite share if they break none. Each of them has an election of its own.

use std::sync::OnceLock;

use super::{Election, Ensemble, Proxy};

pub fn server() -> &'static Ensemble {
    static SERVER: OnceLock<Ensemble> = OnceLock::new();
    SERVER.get_or_init(Ensemble::single)
}

/// An election on it.
pub fn election() -> Election {
    Election::on(&server().connect_string())
}

/// A link to it that can be broken.
pub fn link() -> Proxy {
    Proxy::to(server().server(0).address())
}
