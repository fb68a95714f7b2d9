//! One question to one server over TLS, for reports: its answer to a four-letter word, or why the TLS connection fails.
//! Nothing else uses this connection.

use std::io::{self, Read, Write};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::zookeeper::client::tls::verifier;
use crate::zookeeper::client::tls::{Certificates, Flaw, Part};

/// An answer to a four-letter word is never near as long.
const LONGEST_ANSWER: usize = 16 * 1024;

/// Before we send, we wait this long for the server to refuse our certificate.
const HESITATION: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The network failed or the server is away: it may pass.
    Network(String),
    /// It passes when this host's clock is set: a host without a battery clock may begin before that.
    TooEarly(String),
    /// It stays until somebody changes the configuration.
    Refused(String),
}

/// Sends `word` and reads until the server closes. The caller bounds the time.
pub async fn ask(host: &str, port: u16, certificates: &Certificates, word: &str) -> Result<String, Trouble> {
    let network = |error: io::Error| Trouble::Network(error.to_string());
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Trouble::Refused("its host name can be in no certificate".to_owned()))?;
    let tls = ClientConnection::new(certificates.config(), name)
        .map_err(|error| Trouble::Refused(format!("our certificates cannot be used: {error}")))?;
    let stream = TcpStream::connect((host, port)).await.map_err(network)?;
    let mut line = Line { stream, tls };
    match line.converse(word).await {
        Ok(answer) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Err(error) => Err(line.explain(&error, certificates)),
    }
}

struct Line {
    stream: TcpStream,
    tls: ClientConnection,
}

impl Line {
    /// The server's answer to `word`, until it closes.
    async fn converse(&mut self, word: &str) -> io::Result<Vec<u8>> {
        let (mut answer, mut has_spoken) = (Vec::new(), false);
        loop {
            self.flush().await?;
            // The server judges our certificate after the handshake (TLS 1.3). If it closes before it has read what we
            // sent, its kernel discards the reason.
            let length = if has_spoken || self.tls.is_handshaking() {
                self.read().await?
            } else if let Ok(length) = timeout(HESITATION, self.read()).await {
                length?
            } else {
                has_spoken = true;
                self.tls.writer().write_all(word.as_bytes())?;
                continue;
            };
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            let mut heard = vec![0; state.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut heard)?;
            answer.extend(heard);
            if state.peer_has_closed() || answer.len() > LONGEST_ANSWER || (length == 0 && !answer.is_empty()) {
                return Ok(answer);
            }
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            if let Some(length) = would_block(self.tls.read_tls(&mut Socket(&self.stream)))? {
                return Ok(length);
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.stream.writable().await?;
            would_block(self.tls.write_tls(&mut Socket(&self.stream)))?;
        }
        Ok(())
    }

    fn explain(&self, error: &io::Error, certificates: &Certificates) -> Trouble {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        if let (None, Some(complaint)) = (inner, own_flaw(certificates)) {
            return Trouble::Refused(format!("it hung up on our certificate in --tls-cert, which {complaint}"));
        }
        match inner {
            Some(Error::InvalidCertificate(error)) if verifier::is_too_early(error) => {
                Trouble::TooEarly("its certificate is not valid yet; set this host's clock".to_owned())
            }
            Some(error) => Trouble::Refused(reason(error, certificates)),
            // It closed after our first bytes: it did not understand them, or is shutting down.
            None if self.tls.is_handshaking() => Trouble::Network("it hung up during the TLS handshake".to_owned()),
            None => Trouble::Network(error.to_string()),
        }
    }
}

fn reason(error: &Error, certificates: &Certificates) -> String {
    match error {
        Error::InvalidCertificate(error) if verifier::has_expired(error) => {
            "its certificate has expired; renew it, or set this host's clock".to_owned()
        }
        Error::InvalidCertificate(error) if verifier::is_for_another_name(error) => format!(
            "its certificate is for another name ({error}); write the host in --connect as its certificate does, or add \
             --tls-any-name"
        ),
        // A signature by another key of the same name: the authority was created anew.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "its certificate is not signed by an authority in --tls-ca; add that authority's certificate there"
                .to_owned()
        }
        Error::InvalidCertificate(error) => format!("its certificate cannot be accepted: {error}"),
        Error::AlertReceived(alert) if is_about_certificates(*alert) && !certificates.holds_key() => {
            "it demands a certificate of ours; add --tls-cert and --tls-key".to_owned()
        }
        // Java sends CertificateUnknown for every problem, so we check our certificate ourselves.
        Error::AlertReceived(alert) if is_about_certificates(*alert) => match own_flaw(certificates) {
            Some(complaint) => format!("it does not accept the certificate in --tls-cert, which {complaint}"),
            None => format!(
                "it does not accept the certificate in --tls-cert ({alert:?}); have it signed by whom the servers trust"
            ),
        },
        Error::InvalidMessage(_) => "it does not speak TLS on that port; write its secureClientPort".to_owned(),
        other => format!("TLS with it fails: {other}"),
    }
}

/// The present error in our certificate.
fn own_flaw(certificates: &Certificates) -> Option<String> {
    let Flaw { part, complaint, .. } = certificates.flaw()?;
    (part == Part::Certificate).then_some(complaint)
}

fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as A;
    matches!(
        alert,
        A::NoCertificate
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::CertificateRequired
            | A::AccessDenied
    )
}

/// `None`: not now.
fn would_block<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// A socket that never blocks, as rustls needs it.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
