//! Sessions and connections, as loosely as `ZooKeeper` and its client promise them.

use zk_leader_run::core::event::{Candidacy, Event, SessionNumber};

use crate::clock::{MILLI, Real};
use crate::ensemble::{Fired, SessionKey, Watched};
use crate::host::{Client, Process};
use crate::world::{Occurrence, World};

impl World {
    pub fn connect(&mut self, instance: usize, number: SessionNumber) {
        self.close_client(instance);
        let this = &mut self.instances[instance];
        this.awaited = None;
        this.client = Some(Client { number, key: None, told_lost: false, told_over: false });
        let host = this.host;
        let at = self.now + 2 * self.latency(host);
        self.push(at, Occurrence::Handshakes { instance, number });
    }

    /// The word that a session may end reaches the ensemble, or does not.
    pub fn close_client(&mut self, instance: usize) {
        let host = self.instances[instance].host;
        let Some(session) = self.instances[instance].client.take().and_then(|client| client.key) else { return };
        let lossy = self.now < self.hosts[host].weather.lossy_until;
        if self.is_cut(host) || (lossy && self.hosts[host].rng.chance(50)) {
            return self.await_expiry(session);
        }
        let at = self.now + self.latency(host);
        self.push(at, Occurrence::SessionCloses { session });
    }

    pub fn handshake(&mut self, instance: usize, number: SessionNumber) {
        let host = self.instances[instance].host;
        let timeout = self.timeout_of(instance);
        let lossy = self.now < self.hosts[host].weather.lossy_until && self.hosts[host].rng.chance(40);
        if self.instances[instance].supervisor == Process::Dead || self.client(instance, number).is_none() {
            return;
        }
        if self.is_cut(host) || lossy {
            let delay = self.hosts[host].rng.below(timeout.as_nanos() as Real / 5);
            return self.tell(instance, Event::Unreachable { session: number }, delay);
        }
        let session = self.ensemble.open_session(instance, timeout);
        if let Some(client) = self.client(instance, number) {
            client.key = Some(session);
        }
        let delay = self.latency(host);
        self.tell(instance, Event::Connected { session: number, negotiated: timeout }, delay);
        self.may_expire(instance);
    }

    /// Whoever is out of contact loses the session after its timeout, rounded up to a tick.
    pub fn may_expire(&mut self, instance: usize) {
        let session = self.instances[instance].client.and_then(|client| client.key);
        if let Some(session) = session.filter(|_| !self.has_contact(instance)) {
            self.await_expiry(session);
        }
    }

    fn await_expiry(&mut self, session: SessionKey) {
        let server = &self.ensemble.sessions[session];
        let (timeout, epoch, instance) = (server.timeout.as_nanos() as Real, server.epoch, server.instance);
        let tick = self.rng(instance).below(timeout / 2);
        self.push(self.now + timeout + tick, Occurrence::SessionExpires { session, epoch });
    }

    pub fn session_expires(&mut self, session: SessionKey, epoch: u32) {
        if self.ensemble.sessions[session].epoch == epoch {
            self.close_session(session);
        }
    }

    pub fn close_session(&mut self, session: SessionKey) {
        if self.ensemble.sessions[session].alive {
            self.note(|| format!("ensemble: session {session} is over"));
            self.ensemble.end_session(session);
        }
    }

    /// The server answered that the session is over.
    pub fn session_refused(&mut self, instance: usize, session: SessionKey) {
        let number = self.instances[instance].client.filter(|client| client.key == Some(session));
        if let Some(client) = number {
            self.session_is_over(instance, client.number);
        }
    }

    /// Says so to the machine, unless its client is blind to it.
    pub fn session_is_over(&mut self, instance: usize, number: SessionNumber) {
        let host = self.instances[instance].host;
        let blind_until = self.hosts[host].weather.blind_until;
        if self.now < blind_until {
            return self.push(blind_until + MILLI, Occurrence::Reconnects { instance, number });
        }
        let delay = self.latency(host);
        if let Some(client) = self.client(instance, number).filter(|client| !client.told_over) {
            client.told_over = true;
            self.tell(instance, Event::SessionOver { session: number }, delay);
        }
    }

    pub fn cut(&mut self, host: usize, length: Real) {
        let until = self.now + length;
        let weather = &mut self.hosts[host].weather;
        weather.cut_until = weather.cut_until.max(until);
        let cut_until = weather.cut_until;
        self.push(cut_until, Occurrence::CutEnds { host });
        let Some(instance) = self.hosts[host].instance else { return };
        self.may_expire(instance);
        let Some(number) = self.instances[instance].client.map(|client| client.number) else { return };
        let timeout = self.timeout_of(instance).as_nanos() as Real;
        let delay = self.hosts[host].rng.below(timeout * 3 / 5);
        self.push(self.now + delay, Occurrence::ClientNotices { instance, number, over: false, cut_until });
        let delay = timeout * 7 / 5 + self.hosts[host].rng.below(timeout / 5);
        self.push(self.now + delay, Occurrence::ClientNotices { instance, number, over: true, cut_until });
    }

    /// The client's own guess: contact lost after 0.4 T, session over after 1.4 T.
    pub fn client_notices(&mut self, instance: usize, number: SessionNumber, over: bool, cut_until: Real) {
        let weather = self.hosts[self.instances[instance].host].weather;
        if !self.has_contact(instance) && weather.cut_until == cut_until && self.now < cut_until {
            if over {
                return self.session_is_over(instance, number);
            }
            let deaf = self.now < weather.deaf_until;
            if let Some(client) = self.client(instance, number).filter(|client| !client.told_over && !deaf) {
                client.told_lost = true;
                self.tell(instance, Event::ContactLost { session: number }, 0);
            }
        }
    }

    pub fn cut_ended(&mut self, host: usize) {
        if let Some(instance) = self.hosts[host].instance.filter(|_| !self.is_cut(host)) {
            self.may_reconnect(instance);
        }
    }

    /// Contact is back (after a cut, a hang, a suspend): the client finds out what is left of its session.
    pub fn may_reconnect(&mut self, instance: usize) {
        let Some(number) = self.instances[instance].client.map(|client| client.number) else { return };
        let timeout = self.timeout_of(instance).as_nanos() as Real;
        let delay = self.rng(instance).below(timeout / 5);
        self.push(self.now + delay, Occurrence::Reconnects { instance, number });
    }

    pub fn reconnects(&mut self, instance: usize, number: SessionNumber) {
        if !self.has_contact(instance) {
            return;
        }
        let deaf = self.now < self.hosts[self.instances[instance].host].weather.deaf_until;
        let Some(client) = self.client(instance, number).filter(|client| !client.told_over) else { return };
        let (Some(session), lost) = (client.key, std::mem::take(&mut client.told_lost)) else { return };
        if !self.ensemble.sessions[session].alive {
            return self.session_is_over(instance, number);
        }
        self.ensemble.sessions[session].epoch += 1;
        if lost || (!deaf && self.rng(instance).chance(20)) {
            let delay = self.rng(instance).below(MILLI);
            self.tell(instance, Event::ContactRestored { session: number }, delay);
            self.glimpses(instance);
        }
    }

    /// The notification of a watch arrives, at the latest after the reconnect.
    pub fn watch_fires(&mut self, fired: Fired) {
        let Fired { session, candidacy, what } = fired;
        let instance = self.ensemble.sessions[session].instance;
        let host = self.instances[instance].host;
        if !self.ensemble.sessions[session].alive {
            return;
        }
        if self.is_cut(host) {
            // A cut that the client has noticed may swallow it: it will say when the contact is back.
            let noticed = |client: &Client| client.key == Some(session) && client.told_lost;
            if self.instances[instance].client.as_ref().is_some_and(noticed) && self.hosts[host].rng.chance(50) {
                return;
            }
            let at = self.hosts[host].weather.cut_until + self.latency(host);
            return self.push(at, Occurrence::WatchFires { fired });
        }
        let candidacy = Candidacy(candidacy);
        let event = match what {
            Watched::Candidate(_) => Event::LineChanged { candidacy },
            Watched::Record => Event::RecordChanged { candidacy },
        };
        self.tell(instance, event, 0);
    }
}
