//! One end of a tunnel: seals what its machine says, and opens what the far end said, once.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use super::Refusal;
use super::keys::{Agreed, Asking, Names, Session};
use super::layout::{
    ACKNOWLEDGEMENT, GREETING, HEADER, Kind, MAX_SIGN, NONCE, NUMBERED, Path, SALT, SHIM, Shim, Unverified, WELCOME,
    acknowledgement, header,
};
use super::window::Window;
use crate::key::{Key, Keys};

/// Greetings that were believed, of which none is believed again: more than a restart every second makes in an hour.
const GREETINGS: usize = 4_096;

/// What the far end said, and nobody else can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// A marked packet, or a repair of one: never the same twice.
    Marked(Shim, &'a [u8]),
    /// A marked packet has come.
    Acknowledgement {
        /// Of the packet.
        session: u32,
        /// Of the packet.
        number: u32,
        /// As which of its tries it came.
        tries: u8,
    },
    /// It asks for a session. Each greeting is opened once, unless this end was made anew since: it may be a recording.
    Greeting {
        /// Above those of all earlier ones.
        clock: u64,
        /// Drawn anew for each.
        token: u64,
        /// The DSCP of disguised packets there, when it was sent; 0 for none. What holds now is [`End::far_sign`].
        sign: u8,
    },
    /// It answers the last greeting.
    Welcome {
        /// The greeting's.
        token: u64,
        /// What marked packets are to name.
        session: u32,
        /// As of a greeting.
        sign: u8,
    },
}

/// What is kept of a greeting.
#[derive(Clone, Copy)]
struct Greeting {
    clock: u64,
    token: u64,
    /// Which of the keys it was made with.
    with: usize,
    sign: u8,
}

/// One end of a tunnel: seals what its machine says, and opens what the far end said, once.
pub struct End {
    key: Key,
    near: Names,
    far: Names,
    /// What this end says of its disguised packets.
    sign: u8,
    /// This end's greetings.
    asking: Asking,
    /// The far end's, with each key that is believed.
    asked: Vec<(Key, Asking)>,
    /// The last greeting, until it is answered: its clock and token.
    greeted: Option<(u64, u64)>,
    /// In which this end marks.
    sending: Option<Session>,
    /// In which the far end does, and the sign of the greeting that asked for it.
    receiving: Option<(Session, Window, u8)>,
    /// The far end's last greeting.
    greeting: Option<Greeting>,
    /// What the far end has said of its disguised packets since this end was made.
    far_sign: Option<u8>,
    /// Tokens of the far end's greetings, and their order.
    tokens: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl End {
    /// An end that has no session yet. It asks with its own key, and answers with that with which it was asked.
    pub fn new(keys: &Keys, names: &Names) -> End {
        let far = names.reversed();
        End {
            asking: Asking::new(keys.own(), names),
            asked: keys.believed().map(|key| (key.clone(), Asking::new(key, &far))).collect(),
            key: keys.own().clone(),
            near: names.clone(),
            far,
            sign: 0,
            greeted: None,
            sending: None,
            receiving: None,
            greeting: None,
            far_sign: None,
            tokens: BTreeSet::new(),
            order: VecDeque::new(),
        }
    }

    /// The same with disguised packets, which have this DSCP, [`MAX_SIGN`] at most: it tells the far end.
    #[must_use]
    pub fn with_sign(self, sign: u8) -> End {
        debug_assert!(sign <= MAX_SIGN);
        End { sign, ..self }
    }

    /// The DSCP of the far end's disguised packets, 0 for none; `None` until it has said so, and that was no recording: a welcome is
    /// valid for the last greeting alone, and a greeting's sign counts from the first marked packet of the session that it asked for,
    /// whose keys depend on this end's salt.
    pub const fn far_sign(&self) -> Option<u8> {
        self.far_sign
    }

    /// Asks for a session, in a packet of this path. The nonce is drawn by the system for this greeting alone.
    pub fn greet(&mut self, path: Path, nonce: &[u8; NONCE], clock: u64, token: u64) -> [u8; GREETING] {
        self.greeted = Some((clock, token));
        let mut bytes = [0; GREETING];
        bytes[..HEADER].copy_from_slice(&header(Kind::Greeting, self.sign, self.near.tunnel()));
        bytes[HEADER..28].copy_from_slice(nonce);
        bytes[28..36].copy_from_slice(&clock.to_be_bytes());
        bytes[36..44].copy_from_slice(&token.to_be_bytes());
        let tag = self.asking.greeting.tag(nonce, &said(path, &bytes[..HEADER], &bytes[28..44]));
        bytes[44..].copy_from_slice(&tag);
        bytes
    }

    /// Answers the far end's last greeting, and begins the session: what is of another is refused from now on. Nonce and salt are drawn
    /// by the system for this alone. `None` if the token is not that greeting's.
    pub fn welcome(
        &mut self,
        path: Path,
        (nonce, salt): (&[u8; NONCE], &[u8; SALT]),
        token: u64,
        session: u32,
    ) -> Option<[u8; WELCOME]> {
        let Greeting { clock, with, sign, .. } = self.greeting.filter(|greeting| greeting.token == token)?;
        let (key, asked) = &self.asked[with];
        let agreed = Agreed { clock, token, session, salt: *salt };
        self.receiving = Some((Session::new(key, &self.far, &agreed), Window::new(), sign));
        let mut bytes = [0; WELCOME];
        bytes[..HEADER].copy_from_slice(&header(Kind::Welcome, self.sign, self.near.tunnel()));
        bytes[HEADER..28].copy_from_slice(nonce);
        bytes[28..36].copy_from_slice(&token.to_be_bytes());
        bytes[36..40].copy_from_slice(&session.to_be_bytes());
        bytes[40..56].copy_from_slice(salt);
        let tag = asked.welcome.tag(nonce, &said(path, &bytes[..HEADER], &bytes[28..56]));
        bytes[56..].copy_from_slice(&tag);
        Some(bytes)
    }

    /// What goes ahead of a marked packet. `None` if its session is not the one that was agreed on last. With a session and number it is
    /// called once for each try.
    pub fn mark(&self, shim: Shim, inner: &[u8]) -> Option<[u8; SHIM]> {
        let session = self.sending.as_ref().filter(|session| session.number == shim.session)?;
        let numbered = shim.bytes(self.near.tunnel());
        let tag = session.marked.tag(&numbered, inner);
        let mut bytes = [0; SHIM];
        bytes[..NUMBERED].copy_from_slice(&numbered);
        bytes[NUMBERED..].copy_from_slice(&tag);
        Some(bytes)
    }

    /// Acknowledges a marked packet. `None` if its session is over.
    pub fn acknowledge(&self, session: u32, number: u32, tries: u8) -> Option<[u8; ACKNOWLEDGEMENT]> {
        let (of, ..) = self.receiving.as_ref().filter(|(of, ..)| of.number == session)?;
        let numbered = acknowledgement(self.near.tunnel(), session, number, tries);
        let tag = of.acknowledgement.tag(&numbered, &[]);
        let mut bytes = [0; ACKNOWLEDGEMENT];
        bytes[..NUMBERED].copy_from_slice(&numbered);
        bytes[NUMBERED..].copy_from_slice(&tag);
        Some(bytes)
    }

    /// What a datagram says, if the far end said it in a packet of this path, and what it remembers changes by that alone. `None` if it is
    /// none of this tunnel: it is to be left alone.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn open<'a>(&mut self, path: Path, bytes: &'a [u8]) -> Option<Result<Opened<'a>, Refusal>> {
        let read = Unverified::parse(bytes, self.near.tunnel())?;
        Some(read.and_then(|read| self.verify(path, bytes, read)))
    }

    fn verify<'a>(&mut self, path: Path, bytes: &[u8], read: Unverified<'a>) -> Result<Opened<'a>, Refusal> {
        let genuine = |yes: bool| if yes { Ok(()) } else { Err(Refusal::Unauthenticated) };
        match read {
            Unverified::Marked { shim, tag, inner } => {
                let (session, window, sign) = (self.receiving.as_mut())
                    .filter(|(session, ..)| session.number == shim.session)
                    .ok_or(Refusal::UnknownSession)?;
                genuine(session.marked.is_tag(&shim.bytes(self.near.tunnel()), inner, tag))?;
                if !window.take(shim.number, shim.tries) {
                    return Err(Refusal::Replayed);
                }
                self.far_sign = Some(*sign);
                Ok(Opened::Marked(shim, inner))
            }
            Unverified::Acknowledgement { session, number, tries, tag } => {
                let of = self.sending.as_ref().filter(|of| of.number == session).ok_or(Refusal::UnknownSession)?;
                let numbered = acknowledgement(self.near.tunnel(), session, number, tries);
                genuine(of.acknowledgement.is_tag(&numbered, &[], tag))?;
                Ok(Opened::Acknowledgement { session, number, tries })
            }
            Unverified::Greeting { sign, nonce, clock, token, tag } => {
                let said = said(path, &bytes[..HEADER], &bytes[28..44]);
                let with = self.asked.iter().position(|(_, asked)| asked.greeting.is_tag(nonce, &said, tag));
                let with = with.ok_or(Refusal::Unauthenticated)?;
                if !self.remember(token) {
                    return Err(Refusal::Replayed);
                }
                self.greeting = Some(Greeting { clock, token, with, sign });
                Ok(Opened::Greeting { clock, token, sign })
            }
            Unverified::Welcome { sign, nonce, token, session, salt, tag } => {
                genuine(self.asking.welcome.is_tag(nonce, &said(path, &bytes[..HEADER], &bytes[28..56]), tag))?;
                let (clock, _) = self.greeted.take_if(|(_, asked)| *asked == token).ok_or(Refusal::Unasked)?;
                let agreed = Agreed { clock, token, session, salt };
                self.sending = Some(Session::new(&self.key, &self.near, &agreed));
                self.far_sign = Some(sign);
                Ok(Opened::Welcome { token, session, sign })
            }
        }
    }

    /// A greeting is genuine: whether it is new.
    fn remember(&mut self, token: u64) -> bool {
        if !self.tokens.insert(token) {
            return false;
        }
        self.order.push_back(token);
        if self.order.len() > GREETINGS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
        true
    }
}

impl fmt::Debug for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("End").field("near", &self.near).finish_non_exhaustive()
    }
}

/// What the tag of a greeting or a welcome is over: the addresses, the first bytes, and what it says.
fn said(path: Path, header: &[u8], body: &[u8]) -> Vec<u8> {
    [&path.bytes()[..], header, body].concat()
}
