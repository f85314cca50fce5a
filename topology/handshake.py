"""Why a TLS handshake failed, in an operator's words instead of OpenSSL's. Pure.

Both ends say it: the one that refused from its own check, the other one from the alert that it was sent.
"""

from topology.certificates import Kind

# Source: X509_V_ERR_* of OpenSSL's x509_vfy.h.
_CHECKED = {
    3: "there is no list of revoked certificates from its authority",
    9: "it is not valid yet: is a clock wrong?",
    10: "it has expired",
    12: "the list of revoked certificates has expired: make it anew (headway pki revoke)",
    18: "unknown authority: it is signed by itself",
    19: "unknown authority: it is not of ours",
    20: "unknown authority: it is not of ours",
    21: "unknown authority: it is not of ours",
    7: "unknown authority: its signature is wrong",
    23: "it is revoked",
}
_PURPOSE, _OTHER_NAME, _OTHER_ADDRESS = 26, 62, 64

# Source: RFC 8446 section 6.2, in the spelling of OpenSSL's sslerr.h.
_ALERTS = {
    "TLSV1_ALERT_UNKNOWN_CA": "its authority is unknown there",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it is not accepted",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it is not for the name that was dialled, or damaged",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it is not for this end",
    "TLSV1_ALERT_DECRYPT_ERROR": "its signature is wrong",
}
_NO_CERTIFICATE = {"PEER_DID_NOT_RETURN_A_CERTIFICATE", "TLSV13_ALERT_CERTIFICATE_REQUIRED"}
_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
_OLD_TLS = {"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "TLSV13_ALERT_MISSING_EXTENSION"}


def why_untrusted(peer: Kind, code: int, openssl_says: str, dialled: str = "") -> str:
    """Return why we do not trust the other end's certificate.

    Args:
        peer: which end it is.
        code: ``verify_code`` of Python's SSLCertVerificationError.
        openssl_says: its ``verify_message``, for what has no words of ours.
        dialled: the name or address that the certificate should have been for.
    """
    whose = f"the {peer}'s certificate"
    if code == _PURPOSE:
        its, other = ("an agent", "a controller") if peer is Kind.AGENT else ("a controller", "an agent")
        return f"{whose} must not be used by {its}: is it {other}'s?"
    if code in {_OTHER_NAME, _OTHER_ADDRESS}:
        return f"{whose} is not for {dialled}, which was dialled"
    return f"{whose} is refused: {_CHECKED.get(code, openssl_says)}"


def why_failed(peer: Kind, reason: str) -> str:
    """Return why a handshake failed other than by our check of the certificate.

    Args:
        peer: which end the other one is.
        reason: ``reason`` of Python's SSLError.
    """
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return f"the {peer} has shown no certificate: has its configuration a tls section?"
    if reason in _NO_CERTIFICATE:
        return f"the {peer} says: no certificate was shown"
    if reason in _ALERTS:
        return f"the {peer} refuses our certificate: {_ALERTS[reason]}"
    if reason in _NO_TLS:
        return f"the {peer} does not speak TLS"
    if reason in _OLD_TLS:
        return f"the {peer} speaks no TLS 1.3"
    return f"TLS with the {peer} failed: {reason.lower().replace('_', ' ') or 'it hung up'}"
