//! Reads certificates from files. An error never contains a part of a key.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use zookeeper_client::{TlsCa, TlsCerts, TlsIdentity};

use crate::zookeeper::client::tls::verifier::{self, Verifier};
use crate::zookeeper::client::tls::{Files, Flaw, Identity, Part};

/// For the client library, and for our own questions to a server.
pub struct Read {
    pub certs: TlsCerts,
    pub config: Arc<ClientConfig>,
}

/// Detects a changed file: device, inode, size, and time of change.
pub type Stamps = Vec<Option<(u64, u64, u64, i64, i64)>>;

pub fn stamps(files: &Files) -> Stamps {
    let stamp = |path| {
        let stat = std::fs::metadata(path).ok()?;
        Some((stat.dev(), stat.ino(), stat.size(), stat.ctime(), stat.ctime_nsec()))
    };
    [Part::Authority, Part::Certificate, Part::Key].iter().map(|part| stamp(files.path(*part)?)).collect()
}

pub fn read(files: &Files) -> Result<Read, Flaw> {
    // Chosen explicitly: the library panics if several providers are linked and none is chosen.
    if aws_lc_rs::default_provider().install_default().is_err() {
        tracing::trace!("A provider of cryptography was chosen before");
    }
    let authority = text(Part::Authority, &files.ca)?;
    let roots = roots(&authority)?;
    let verifier = WebPkiServerVerifier::builder(Arc::clone(&roots)).build();
    let verifier = verifier.map_err(|error| flaw(Part::Authority, format!("cannot be used: {error}")))?;
    let ca = TlsCa::from_pem(&authority).map_err(|error| flaw(Part::Authority, format!("cannot be used: {error}")))?;
    let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(Verifier {
        inner: Arc::clone(&verifier),
        any_name: files.any_name,
    }));
    let certs = TlsCerts::builder().with_ca(ca);
    let (certs, mut config) = match &files.identity {
        None => (certs, config.with_no_client_auth()),
        Some(Identity { certificate, key }) => {
            let (certificate, key) = (text(Part::Certificate, certificate)?, text(Part::Key, key)?);
            let (chain, private) = (chain(&certificate, &verifier)?, private_key(&key)?);
            let config = config.with_client_auth_cert(chain, private).map_err(|error| misfit(&error))?;
            let identity = TlsIdentity::from_pem(&certificate, &key);
            (
                certs.with_identity(identity.map_err(|error| flaw(Part::Key, format!("cannot be used: {error}")))?),
                config,
            )
        }
    };
    let certs = certs.build().map_err(|error| flaw(Part::Authority, format!("cannot be used: {error}")))?;
    // A resumed session is not asked for its certificate again, but a diagnosis must be about the present one.
    config.resumption = Resumption::disabled();
    Ok(Read { certs, config: Arc::new(config) })
}

fn flaw(part: Part, complaint: impl Into<String>) -> Flaw {
    Flaw { part, complaint: complaint.into(), may_pass: false }
}

fn of_dates(complaint: &str) -> Flaw {
    Flaw { may_pass: true, ..flaw(Part::Certificate, complaint) }
}

fn text(part: Part, path: &Path) -> Result<String, Flaw> {
    let unreadable = |error: std::io::Error| {
        flaw(part, format!("cannot be read: {error}; write the path of a PEM file that this user may read"))
    };
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(unreadable)
}

fn certificates(part: Part, pem: &str) -> Result<Vec<CertificateDer<'static>>, Flaw> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(flaw(part, "holds no certificate; write a PEM file with -----BEGIN CERTIFICATE-----"))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(flaw(part, format!("is no good PEM file: {error}"))),
    }
}

fn roots(pem: &str) -> Result<Arc<RootCertStore>, Flaw> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(Part::Authority, pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| flaw(Part::Authority, format!("holds a certificate that cannot be used: {error}")))?;
    }
    Ok(Arc::new(roots))
}

fn chain(pem: &str, verifier: &WebPkiServerVerifier) -> Result<Vec<CertificateDer<'static>>, Flaw> {
    let chain = certificates(Part::Certificate, pem)?;
    let Some(own) = chain.first() else { return Ok(chain) };
    // Only the dates matter here, and they are checked first: the servers judge who signed it.
    let anybody = ServerName::from(std::net::Ipv4Addr::LOCALHOST);
    match verifier.verify_server_cert(own, &[], &anybody, &[], UnixTime::now()) {
        Err(Error::InvalidCertificate(error)) if verifier::has_expired(&error) => {
            Err(of_dates("has expired; renew it, or set this host's clock"))
        }
        Err(Error::InvalidCertificate(error)) if verifier::is_too_early(&error) => {
            Err(of_dates("is not valid yet; set this host's clock, or have it issued anew"))
        }
        Err(Error::InvalidCertificate(CertificateError::BadEncoding)) => {
            Err(flaw(Part::Certificate, "holds no certificate that can be understood"))
        }
        _ => Ok(chain),
    }
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, Flaw> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        let complaint = if pem.contains("ENCRYPTED") {
            "holds an encrypted key, and there is nobody to ask for its passphrase; decrypt it with openssl pkey"
        } else {
            "holds no private key; write a PEM file with -----BEGIN PRIVATE KEY-----"
        };
        flaw(Part::Key, complaint)
    })
}

fn misfit(error: &Error) -> Flaw {
    match error {
        Error::InconsistentKeys(_) => flaw(Part::Key, "is not the key of the certificate in --tls-cert"),
        other => flaw(Part::Key, format!("cannot be used: {other}")),
    }
}
