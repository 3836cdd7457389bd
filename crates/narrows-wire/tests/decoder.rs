//! Datagrams as another reads them who knows docs/reference/wire.md alone: `decoder.py` was written from that page, without a look at
//! this crate. Drawn at random, whole and damaged, each must mean the same to both.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use narrows_wire::notification::{self, Notification};
use narrows_wire::tunnel::{End, MAX_SIGN, Names, Opened, Path, Refusal, SALT, Shim};
use narrows_wire::{Flow, Key};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

const DECODER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decoder.py");
const CASES: usize = 200;

/// What is asked of the decoder, and what its answer is to have.
type Asked = (Value, Value);

#[test]
fn another_who_read_the_document_reads_the_same() {
    let mut runner = TestRunner::default();
    let mut asked = vec![];
    for _ in 0..CASES {
        let case = drawn(&mut runner);
        notifications(&case, &mut asked);
        tunnel(&case, &mut asked);
    }
    let answers = decoded(&asked);
    assert_eq!(answers.len(), asked.len());
    for ((question, expected), answer) in asked.iter().zip(&answers) {
        for (name, value) in expected.as_object().expect("it is one") {
            assert_eq!(&answer[name], value, "{name} of {question}: {answer}");
        }
    }
    let authentic = |kind: &str| answers.iter().filter(|one| one["kind"] == kind && one["authentic"] == true).count();
    assert_eq!(["greeting", "welcome", "marked", "acknowledgement"].map(authentic), [CASES; 4]);
    let refused = |what: &str| answers.iter().filter(|one| one[what] == false).count();
    println!("{} layouts and {} tags refused of {}", refused("ok"), refused("authentic"), answers.len());
    assert!(refused("ok") > CASES / 2 && refused("authentic") > CASES);
}

fn decoded(asked: &[Asked]) -> Vec<Value> {
    let mut child = (Command::new("python3").arg(DECODER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())
        .expect("python3 is needed to build Narrows");
    let mut input = child.stdin.take().expect("it is piped");
    let questions: String = asked.iter().map(|(question, _)| format!("{question}\n")).collect();
    // Both ends would wait if nobody read what it answers meanwhile.
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()).expect("it reads"));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("all was written");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("it is text");
    lines.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

/// What a case is made of.
#[derive(Clone, Debug)]
struct Drawn {
    key: [u8; 32],
    numbers: [u64; 4],
    small: (u8, u8, u8, u16, u32),
    signed: (i32, i32),
    ports: (u16, u16),
    v6: bool,
    addresses: ([u8; 16], [u8; 16]),
    inner: Vec<u8>,
    nonce: [u8; 24],
    salt: [u8; SALT],
    damage: (usize, u8),
}

fn drawn(runner: &mut TestRunner) -> Drawn {
    let parts = (
        any::<([u8; 32], [u64; 4], (u8, u8, u8, u16, u32))>(),
        any::<((i32, i32), (u16, u16), bool, ([u8; 16], [u8; 16]))>(),
        prop::collection::vec(any::<u8>(), 40..240),
        any::<([u8; 24], [u8; SALT], (usize, u8))>(),
    );
    let parts = parts.new_tree(runner).expect("everything can be drawn").current();
    let ((key, numbers, small), (signed, ports, v6, addresses), inner, (nonce, salt, damage)) = parts;
    Drawn { key, numbers, small, signed, ports, v6, addresses, inner, nonce, salt, damage }
}

impl Drawn {
    fn ends(&self) -> (IpAddr, IpAddr) {
        let address = |octets: [u8; 16]| {
            if self.v6 { octets.into() } else { [octets[0], octets[1], octets[2], octets[3]].into() }
        };
        (address(self.addresses.0), address(self.addresses.1))
    }

    /// With a bit that is another, or, one in sixteen, cut off.
    fn damaged(&self, bytes: &[u8]) -> Vec<u8> {
        let (at, bit) = (self.damage.0 % bytes.len(), self.damage.1);
        let mut bytes = bytes.to_vec();
        if bit < 16 {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << (bit % 8);
        }
        bytes
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn notifications(drawn: &Drawn, asked: &mut Vec<Asked>) {
    let key = Key::new(drawn.key);
    let (source, destination) = drawn.ends();
    let said = Notification {
        sender: drawn.numbers[0],
        sent_ns: drawn.numbers[1],
        feedback: drawn.small.0,
        offset: drawn.signed.0,
        growth: drawn.signed.1,
        flow: Flow {
            source: SocketAddr::new(source, drawn.ports.0),
            destination: SocketAddr::new(destination, drawn.ports.1),
        },
        seq: drawn.small.4,
        payload: drawn.small.3,
    };
    let whole = said.seal(&key);
    for bytes in [whole.to_vec(), drawn.damaged(&whole)] {
        let expected = match notification::Unverified::parse(&bytes).map(|read| read.verify(&key)) {
            Err(_) => json!({ "ok": false }),
            Ok(Err(_)) => json!({ "ok": true, "authentic": false }),
            Ok(Ok(read)) => json!({
                "ok": true, "authentic": true, "sender": read.sender, "sent_ns": read.sent_ns,
                "feedback": read.feedback, "offset": read.offset, "growth": read.growth,
                "source": [shown(source), read.flow.source.port()],
                "destination": [shown(destination), read.flow.destination.port()],
                "seq": read.seq, "payload": read.payload,
            }),
        };
        asked.push((json!({ "what": "notification", "key": hex(&drawn.key), "bytes": hex(&bytes) }), expected));
    }
}

/// An address as Python writes it: of a mapped one, the IPv4 address.
fn shown(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

fn tunnel(drawn: &Drawn, asked: &mut Vec<Asked>) {
    let (source, destination) = drawn.ends();
    let path = Path { source, destination };
    let number = drawn.small.3;
    let names = |near, far| Names::new(near, far, number).expect("they differ");
    let keys = Key::new(drawn.key).into();
    let mut near = End::new(&keys, &names("paris", "frankfurt")).with_sign(drawn.small.1 & MAX_SIGN);
    let mut far = End::new(&keys, &names("frankfurt", "paris")).with_sign(drawn.small.2 & MAX_SIGN);
    let [clock, token, ..] = drawn.numbers;
    let session = drawn.small.4;
    let agreed = json!({ "clock": clock, "token": token, "session": session, "salt": hex(&drawn.salt) });
    let mut ask = |to: &mut End, path: Path, agreed: &Value, bytes: &[u8]| {
        for bytes in [drawn.damaged(bytes), bytes.to_vec()] {
            let question = json!({
                "what": "tunnel", "secret": hex(&drawn.key), "initiator": "paris", "responder": "frankfurt",
                "tunnel": number, "source": path.source.to_string(), "destination": path.destination.to_string(),
                "agreed": agreed, "bytes": hex(&bytes),
            });
            asked.push((question, meaning(to.open(path, &bytes), &drawn.salt)));
        }
    };
    let greeting = near.greet(path, &drawn.nonce, clock, token);
    ask(&mut far, path, &Value::Null, &greeting);
    let welcome = far.welcome(path.reversed(), (&drawn.nonce, &drawn.salt), token, session).expect("it was asked");
    ask(&mut near, path.reversed(), &Value::Null, &welcome);
    // Half of all numbers are before the first, and come too late.
    let first = u32::from(drawn.small.3) << 15 | u32::from(drawn.small.0);
    let shim = Shim { session, number: first, ecn: drawn.small.1 % 4, tries: 1 + drawn.small.2 % 15 };
    let marked = [&near.mark(shim, &drawn.inner).expect("there is a session")[..], &drawn.inner].concat();
    ask(&mut far, path, &agreed, &marked);
    let said = far.acknowledge(session, shim.number, shim.tries).expect("there is a session");
    ask(&mut near, path.reversed(), &agreed, &said);
}

fn meaning(opened: Option<Result<Opened<'_>, Refusal>>, salt: &[u8; SALT]) -> Value {
    match opened {
        None | Some(Err(Refusal::Malformed)) => json!({ "ok": false }),
        // Another session has other keys.
        Some(Err(_)) => json!({ "ok": true, "authentic": false }),
        Some(Ok(Opened::Greeting { clock, token, sign })) => json!({
            "ok": true, "kind": "greeting", "authentic": true, "clock": clock, "token": token, "sign": sign,
        }),
        Some(Ok(Opened::Welcome { token, session, sign })) => json!({
            "ok": true, "kind": "welcome", "authentic": true, "token": token, "session": session, "sign": sign,
            "salt": hex(salt),
        }),
        Some(Ok(Opened::Marked(shim, inner))) => json!({
            "ok": true, "kind": "marked", "authentic": true, "session": shim.session, "number": shim.number,
            "tries": shim.tries, "ecn": shim.ecn, "inner": hex(inner),
        }),
        Some(Ok(Opened::Acknowledgement { session, number, tries })) => json!({
            "ok": true, "kind": "acknowledgement", "authentic": true, "session": session, "number": number,
            "tries": tries,
        }),
    }
}
