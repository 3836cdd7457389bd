"""An independent decoder of the datagrams of Narrows: notifications, and the tunnel between two edge routers.

It was written from the document of the wire format (wire.md) alone, by someone who had not seen the implementation, and
it must stay so: if the two disagree, correct the document or the implementation, and then this from the document. Do
not consult the implementation, import it, or copy from it. For the same reason the cryptography is here in full, with
nothing but Python's standard library.

It reads JSON objects from standard input, one per line, and writes one JSON object per line. A datagram that is not of
the documented layout is answered with {"ok": false}; a request that makes no sense ends the program with an exception.
"""

import hashlib
import hmac
import ipaddress
import json
import struct
import sys

MASK = 0xFFFFFFFF
TAG = 16

# Cryptography


def quarter_round(x, a, b, c, d):
    """Mix four words of the ChaCha state (RFC 8439, section 2.1)."""
    for target, other, rotated, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[target] = (x[target] + x[other]) & MASK
        word = x[rotated] ^ x[target]
        x[rotated] = (word << bits | word >> (32 - bits)) & MASK


def chacha_rounds(key, last):
    """Return the state before and after the 20 rounds; `last` is its last row, 16 bytes (RFC 8439, section 2.3)."""
    before = struct.unpack("<16I", b"expand 32-byte k" + key + last)
    after = list(before)
    for _ in range(10):
        for i in range(4):
            quarter_round(after, i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter_round(after, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return before, after


def chacha20_block(key, counter, nonce):
    """Return 64 bytes of the key stream (RFC 8439, section 2.3)."""
    before, after = chacha_rounds(key, struct.pack("<I", counter) + nonce)
    return struct.pack("<16I", *((a + b) & MASK for a, b in zip(before, after)))


def hchacha20(key, nonce):
    """Derive a key from a key and 16 bytes of a nonce (draft-irtf-cfrg-xchacha-03, section 2.2)."""
    _, after = chacha_rounds(key, nonce)
    return struct.pack("<8I", *after[:4], *after[12:])


def poly1305(key, message):
    """Return the one-time authenticator of a message (RFC 8439, section 2.5)."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for start in range(0, len(message), 16):
        block = message[start : start + 16] + b"\x01"
        total = (total + int.from_bytes(block, "little")) * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(key[16:], "little")) % (1 << 128)).to_bytes(16, "little")


def chacha20_poly1305_tag(key, nonce, data):
    """Return the tag for associated data and an empty plaintext; the nonce has 12 bytes (RFC 8439, section 2.8)."""
    padding = bytes(-len(data) % 16)
    lengths = struct.pack("<QQ", len(data), 0)
    return poly1305(chacha20_block(key, 0, nonce)[:32], data + padding + lengths)


def xchacha20_poly1305_tag(key, nonce, data):
    """The same for a nonce of 24 bytes (draft-irtf-cfrg-xchacha-03, section 2)."""
    return chacha20_poly1305_tag(hchacha20(key, nonce[:16]), bytes(4) + nonce[16:], data)


def hkdf_sha256(secret, salt, info, length):
    """Extract and expand a key (RFC 5869, sections 2.2 and 2.3)."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    block, output = b"", b""
    for i in range(1, -(-length // 32) + 1):
        block = hmac.digest(extracted, block + info + bytes([i]), hashlib.sha256)
        output += block
    return output[:length]


# Notifications


def quoted_address(family, field):
    """Return the text of an address of a notification, or None if it is malformed."""
    if family == 4:
        return str(ipaddress.IPv4Address(field[:4])) if not any(field[4:]) else None
    address = ipaddress.IPv6Address(field)
    return str(address.ipv4_mapped or address)


def decode_notification(request):
    """Answer a request about a notification: None if its layout is wrong."""
    datagram = bytes.fromhex(request["bytes"])
    if len(datagram) != 88:
        return None
    version, kind, feedback, family, sender, sent, offset, growth, *tcp = struct.unpack_from(
        ">4B2Q2i2HI2H", datagram
    )
    source_port, destination_port, seq, payload, unused = tcp
    if (version, kind, unused) != (1, 1, 0) or family not in (4, 6):
        return None
    source, destination = quoted_address(family, datagram[40:56]), quoted_address(family, datagram[56:72])
    if source is None or destination is None:
        return None
    tag = hmac.digest(bytes.fromhex(request["key"]), datagram[:72], hashlib.sha256)[:TAG]
    return {
        "authentic": hmac.compare_digest(tag, datagram[72:]),
        "sender": sender,
        "sent_ns": sent,
        "feedback": feedback,
        "offset": offset,
        "growth": growth,
        "source": [source, source_port],
        "destination": [destination, destination_port],
        "seq": seq,
        "payload": payload,
    }


# The tunnel


def with_length(text):
    """Encode a label or a name, preceded by its length in one byte."""
    encoded = text.encode()
    return bytes([len(encoded)]) + encoded


def derive_keys(request, label, agreed_values):
    """Return the keys of a label: for what the initiator sends, and for what the responder sends."""
    names = (label, request["initiator"], request["responder"])
    info = b"".join(map(with_length, names)) + struct.pack(">H", request["tunnel"]) + agreed_values
    keys = hkdf_sha256(bytes.fromhex(request["secret"]), b"narrows tunnel 1", info, 64)
    return keys[:32], keys[32:]


def greeting_keys(request):
    """Return the keys for the greetings, and for the welcomes in response."""
    return derive_keys(request, "greeting", b"")


def session_keys(request):
    """Return the keys for the loss-eligible packets of the agreed session, and for their acknowledgements."""
    agreed = request["agreed"]
    values = struct.pack(">QQI", agreed["clock"], agreed["token"], agreed["session"]) + bytes.fromhex(agreed["salt"])
    return derive_keys(request, "session", values)


def mapped(text):
    """Return the 16 bytes of an address as an IPv6 address; IPv4 is mapped."""
    address = ipaddress.ip_address(text)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def handshake_is_authentic(request, key, datagram):
    """Whether the tag of a greeting or a welcome is right; it is in the last 16 bytes."""
    addresses = mapped(request["source"]) + mapped(request["destination"])
    tag = xchacha20_poly1305_tag(key, datagram[4:28], addresses + datagram[:4] + datagram[28:-TAG])
    return hmac.compare_digest(tag, datagram[-TAG:])


def session_is_authentic(request, index, datagram):
    """Whether the tag of a loss-eligible packet (index 0) or an acknowledgement (1) is right; not without a session."""
    if request["agreed"] is None:
        return False
    tag = chacha20_poly1305_tag(session_keys(request)[index], datagram[:12], datagram[28:])
    return hmac.compare_digest(tag, datagram[12:28])


def decode_greeting(request, datagram):
    """Decode a greeting: None if its layout is wrong."""
    if len(datagram) != 60 or datagram[1] > 63:
        return None
    clock, token = struct.unpack_from(">QQ", datagram, 28)
    authentic = handshake_is_authentic(request, greeting_keys(request)[0], datagram)
    return {"kind": "greeting", "authentic": authentic, "clock": clock, "token": token, "sign": datagram[1]}


def decode_welcome(request, datagram):
    """Decode a welcome: None if its layout is wrong."""
    if len(datagram) != 72 or datagram[1] > 63:
        return None
    token, session = struct.unpack_from(">QI", datagram, 28)
    authentic = handshake_is_authentic(request, greeting_keys(request)[1], datagram)
    fields = {"token": token, "session": session, "salt": datagram[40:56].hex(), "sign": datagram[1]}
    return {"kind": "welcome", "authentic": authentic} | fields


def decode_numbered(datagram):
    """Return what a loss-eligible packet and an acknowledgement have in common."""
    session, number = struct.unpack_from(">II", datagram, 4)
    return {"session": session, "number": number, "tries": datagram[1] >> 2}


def decode_marked(request, datagram):
    """Decode a loss-eligible packet: None if its layout is wrong. Whether it contains an IP packet is not checked."""
    if len(datagram) < 28 + 40 or not 1 <= datagram[1] >> 2 <= 15:
        return None
    authentic = session_is_authentic(request, 0, datagram)
    fields = {"kind": "marked", "authentic": authentic, "ecn": datagram[1] & 3, "inner": datagram[28:].hex()}
    return fields | decode_numbered(datagram)


def decode_acknowledgement(request, datagram):
    """Decode an acknowledgement: None if its layout is wrong."""
    if len(datagram) != 28 or datagram[1] & 3 or not 1 <= datagram[1] >> 2 <= 15:
        return None
    fields = {"kind": "acknowledgement", "authentic": session_is_authentic(request, 1, datagram)}
    return fields | decode_numbered(datagram)


TUNNEL_KINDS = {0x11: decode_marked, 0x12: decode_acknowledgement, 0x13: decode_greeting, 0x14: decode_welcome}


def decode_tunnel(request):
    """Answer a request about a datagram of the tunnel: None if it is of another tunnel or its layout is wrong."""
    datagram = bytes.fromhex(request["bytes"])
    if not datagram or datagram[0] not in TUNNEL_KINDS or datagram[2:4] != struct.pack(">H", request["tunnel"]):
        return None
    return TUNNEL_KINDS[datagram[0]](request, datagram)


DECODERS = {"notification": decode_notification, "tunnel": decode_tunnel}


def main():
    """Answer each line of standard input with one line."""
    for line in sys.stdin:
        request = json.loads(line)
        fields = DECODERS[request["what"]](request)
        print(json.dumps({"ok": False} if fields is None else {"ok": True} | fields), flush=True)


if __name__ == "__main__":
    main()
