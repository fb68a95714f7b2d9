//! What a server does for its clients: it opens their sessions, takes their requests and tells what became of them.

use std::collections::VecDeque;

use super::acl;
use super::digest;
use super::ensemble::Ensemble;
use super::mail::{Input, Mail, Order};
use super::protocol::{Code, ConnectionId, Id, Message, OpReply, READ, Reply, Request, SessionId, Xid, Zxid};
use super::server::{Connection, Pending, Phase, password_of};
use super::settings::{Hello, Version};
use super::state::{Origin, Txn};
use super::watches::Fired;

impl Ensemble {
    pub(super) fn input(&mut self, server: usize, input: Input) {
        if self.servers[server].is_paused {
            return self.servers[server].inbox.push(input);
        }
        match input {
            Input::Connect(connection, hello) => self.open(server, connection, hello),
            Input::Submit(connection, xid, request) => self.request(server, connection, xid, request),
            Input::Reset(connection) => self.forget(server, connection),
            Input::Mail(envelope) => self.receive(envelope),
        }
    }

    fn open(&mut self, server: usize, connection: ConnectionId, hello: Hello) {
        let is_serving = matches!(self.servers[server].phase, Phase::Following { .. } | Phase::Leading(_));
        // It would show the client an older state than it has seen.
        if !is_serving || hello.last_zxid > self.servers[server].state.last_zxid {
            return self.send(connection, Message::Closed);
        }
        let [min, max] = [self.settings.min_session_timeout, self.settings.max_session_timeout];
        let timeout_ms = hello.timeout_ms.clamp(min.as_millis() as u64, max.as_millis() as u64);
        let is_new = hello.session == 0;
        let session = if is_new { self.servers[server].next_session } else { hello.session };
        if is_new {
            self.servers[server].next_session += 1;
        } else {
            self.close_session_here(server, session);
        }
        let opened = Connection {
            session,
            timeout_ms,
            identities: hello.identities,
            is_open: false,
            early: Vec::new(),
            pending: VecDeque::new(),
        };
        self.servers[server].connections.insert(connection, opened);
        if is_new {
            let origin = Origin { server, connection, xid: 0 };
            self.order(server, origin, session, Vec::new(), Order::CreateSession { timeout_ms });
        } else if hello.password != password_of(session) {
            self.finish_session(server, connection, false);
        } else if self.servers[server].leading().is_some() {
            let is_valid = self.revalidate(server, server, session, timeout_ms);
            self.finish_session(server, connection, is_valid);
        } else {
            self.mail_leader(server, Mail::Revalidate { connection, session, timeout_ms });
        }
    }

    pub(super) fn finish_session(&mut self, server: usize, connection: ConnectionId, is_valid: bool) {
        let Some(opened) = self.servers[server].connections.get_mut(&connection) else { return };
        if !is_valid {
            self.send(connection, Message::Expired);
            return self.close(server, connection);
        }
        opened.is_open = true;
        let (session, timeout_ms) = (opened.session, opened.timeout_ms);
        let early = std::mem::take(&mut opened.early);
        self.send(connection, Message::Connected { session, timeout_ms, password: password_of(session) });
        for (xid, request) in early {
            self.request(server, connection, xid, request);
        }
    }

    fn request(&mut self, server: usize, connection: ConnectionId, xid: Xid, request: Request) {
        let Some(known) = self.servers[server].connections.get_mut(&connection) else { return };
        if !known.is_open {
            return known.early.push((xid, request));
        }
        if let Request::Auth { scheme, data } = request {
            return self.authenticate(server, connection, xid, &scheme, &data);
        }
        let (session, timeout_ms, who) = (known.session, known.timeout_ms, known.identities.clone());
        if !self.touch(server, session, timeout_ms) {
            return;
        }
        let is_sync = matches!(request, Request::Sync { .. });
        let is_write =
            matches!(request, Request::Write(_) | Request::Multi(_) | Request::SetAcl { .. } | Request::Close);
        let is_ordered = is_write || (is_sync && self.servers[server].leading().is_none());
        let known = self.servers[server].connections.get_mut(&connection).unwrap();
        if is_ordered {
            known.pending.push_back(Pending::Write(xid));
            let origin = Origin { server, connection, xid };
            self.order(server, origin, session, who, Order::Request(request));
        } else {
            known.pending.push_back(Pending::Read { xid, request, who });
            self.pump(server, connection);
        }
    }

    /// The session was heard of. A leader drops requests of a session that is being closed.
    fn touch(&mut self, server: usize, session: SessionId, timeout_ms: u64) -> bool {
        let now = self.now;
        if let Some(leading) = self.servers[server].leading_mut() {
            let clock_ms = leading.clock_ms(now);
            leading.expiry.touch(session, timeout_ms, clock_ms)
        } else {
            self.servers[server].touched.insert(session, timeout_ms);
            true
        }
    }

    fn order(&mut self, server: usize, origin: Origin, session: SessionId, who: Vec<Id>, order: Order) {
        if self.servers[server].leading().is_some() {
            self.decide_for(server, origin, session, &who, order);
        } else {
            self.mail_leader(server, Mail::Forward { origin, session, who, order });
        }
    }

    fn authenticate(&mut self, server: usize, connection: ConnectionId, xid: Xid, scheme: &str, data: &[u8]) {
        let known = self.servers[server].connections.get_mut(&connection).unwrap();
        let id = match scheme {
            "digest" => Some(Id::new("digest", &digest::id_of(data))),
            "ip" => known.identities.iter().find(|id| id.scheme == "ip").cloned(),
            _ => None,
        };
        let Some(id) = id else {
            self.send(connection, Message::Reply { xid, zxid: 0, result: Err(Code::AuthFailed) });
            return self.close(server, connection);
        };
        if !known.identities.contains(&id) {
            known.identities.push(id);
        }
        self.send(connection, Message::Reply { xid, zxid: 0, result: Ok(Reply::Done) });
    }

    /// Answers the reads that wait for no write any more.
    fn pump(&mut self, server: usize, connection: ConnectionId) {
        while let Some(known) = self.servers[server].connections.get_mut(&connection) {
            let Some(Pending::Read { .. }) = known.pending.front() else { return };
            let Some(Pending::Read { xid, request, who }) = known.pending.pop_front() else { return };
            let session = known.session;
            let owned =
                self.servers[server].leading_mut().map_or(Ok(()), |leading| leading.expiry.check(session, server));
            let result = owned.and_then(|()| self.read(server, connection, &request, &who));
            self.reply(server, connection, xid, result);
        }
    }

    fn reply(&mut self, server: usize, connection: ConnectionId, xid: Xid, result: Result<Reply, Code>) {
        let moved = OpReply::Failed(Code::SessionMoved);
        let has_moved = match &result {
            Ok(Reply::Multi(replies)) => replies.contains(&moved),
            result => *result == Err(Code::SessionMoved),
        };
        if has_moved {
            return self.close(server, connection);
        }
        let zxid = self.servers[server].state.last_zxid;
        self.send(connection, Message::Reply { xid, zxid, result });
    }

    pub(super) fn apply_until(&mut self, server: usize, zxid: Zxid) {
        while let Some(entry) = self.servers[server].log.get(self.servers[server].applied).cloned() {
            if entry.zxid > zxid {
                return;
            }
            let known = &mut self.servers[server];
            known.applied += 1;
            let (result, changes) = known.state.apply(&entry);
            for change in changes {
                for fired in self.servers[server].watches.fire(&change) {
                    self.tell(server, entry.zxid, fired);
                }
            }
            let origin = entry.origin.filter(|origin| origin.server == server);
            match (&entry.txn, origin) {
                (_, None) => {}
                (Txn::CreateSession { .. }, Some(origin)) => self.finish_session(server, origin.connection, true),
                (_, Some(origin)) => self.resolve(server, origin, result),
            }
            if let Txn::CloseSession { .. } = entry.txn {
                self.close_session_here(server, entry.session);
                self.servers[server].touched.remove(&entry.session);
                if let Some(leading) = self.servers[server].leading_mut() {
                    leading.expiry.remove(entry.session);
                }
            }
        }
    }

    fn tell(&mut self, server: usize, zxid: Zxid, fired: Fired) {
        let Some(known) = self.servers[server].connections.get(&fired.connection) else { return };
        if acl::check(&fired.acl, READ, &known.identities).is_ok() {
            let zxid = if self.settings.version == Version::V3_9 { zxid } else { -1 };
            self.send(fired.connection, Message::Event { zxid, kind: fired.kind, path: fired.path });
        }
    }

    /// The reply to a write, and then to the reads behind it.
    fn resolve(&mut self, server: usize, origin: Origin, result: Result<Reply, Code>) {
        let Some(known) = self.servers[server].connections.get_mut(&origin.connection) else { return };
        known.pending.pop_front();
        self.reply(server, origin.connection, origin.xid, result);
        self.pump(server, origin.connection);
    }

    pub(super) fn answer_sync(&mut self, server: usize, origin: Origin) {
        self.resolve(server, origin, Ok(Reply::Done));
    }

    fn close_session_here(&mut self, server: usize, session: SessionId) {
        let known = self.servers[server].connections.iter();
        for connection in known.filter(|(_, one)| one.session == session).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.close(server, connection);
        }
    }

    pub(super) fn close(&mut self, server: usize, connection: ConnectionId) {
        self.forget(server, connection);
        self.send(connection, Message::Closed);
    }

    fn forget(&mut self, server: usize, connection: ConnectionId) {
        self.servers[server].connections.remove(&connection);
        self.servers[server].watches.forget(connection);
    }
}
