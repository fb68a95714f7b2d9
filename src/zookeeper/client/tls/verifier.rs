//! Which certificates of servers we accept: only those of an authority that we trust, whatever the name.
#![expect(unsafe_code, reason = "the client library marks a choice of its user's as unsafe")]

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use zookeeper_client::TlsOptions;

/// The check of rustls, and whether its last step, the name, counts.
#[derive(Debug)]
pub struct Verifier {
    pub inner: Arc<WebPkiServerVerifier>,
    pub any_name: bool,
}

/// `--tls-any-name`, for the client library.
pub fn ignore_names(options: TlsOptions) -> TlsOptions {
    // SAFETY: no memory is at stake. The library's `unsafe` warns that another server may pass for ours, which the user
    // of --tls-any-name has accepted.
    unsafe { options.with_no_hostname_verification() }
}

pub fn is_for_another_name(error: &CertificateError) -> bool {
    matches!(error, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

pub fn has_expired(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. })
}

pub fn is_too_early(error: &CertificateError) -> bool {
    matches!(error, CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. })
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(own, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(error)) if self.any_name && is_for_another_name(&error) => {
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
