//! Keys: one secret, from which each direction, kind and session has its own [RFC 5869].

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Tag, XChaCha20Poly1305};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::layout::{NONCE, NUMBERED, SALT};
use crate::key::{Key, LENGTH, TAG};

/// Longest name of an edge, bytes.
const MAX_NAME: usize = 64;

/// What two edges are called, and the number of what is between them. They differ in nothing but the order of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    near: String,
    far: String,
    tunnel: u16,
}

/// Why edges cannot be called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty or too long.
    #[error("a name has 1 to {MAX_NAME} bytes; this has {0}")]
    Length(usize),
    /// Whatever one says could be held for the other's.
    #[error("the two edges need different names")]
    Same,
}

impl Names {
    /// This edge is called `near`, the other `far`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(near: &str, far: &str, tunnel: u16) -> Result<Names, NameError> {
        for name in [near, far] {
            if !(1..=MAX_NAME).contains(&name.len()) {
                return Err(NameError::Length(name.len()));
            }
        }
        if near == far {
            return Err(NameError::Same);
        }
        Ok(Names { near: near.to_owned(), far: far.to_owned(), tunnel })
    }

    /// The tunnel's number.
    pub const fn tunnel(&self) -> u16 {
        self.tunnel
    }

    /// As the other edge has them.
    pub(super) fn reversed(&self) -> Names {
        Names { near: self.far.clone(), far: self.near.clone(), tunnel: self.tunnel }
    }

    /// `LENGTH` bytes for each of `N` keys of what the near edge says to the far one under this label.
    fn derive<const N: usize>(&self, key: &Key, label: &str, rest: &[&[u8]]) -> Zeroizing<[[u8; LENGTH]; N]> {
        let length = |text: &str| [u8::try_from(text.len()).expect("names and labels are short")];
        let (of_label, of_near, of_far) = (length(label), length(&self.near), length(&self.far));
        let tunnel = self.tunnel.to_be_bytes();
        let mut info: Vec<&[u8]> = vec![&of_label, label.as_bytes(), &of_near, self.near.as_bytes(), &of_far];
        info.extend([self.far.as_bytes(), &tunnel]);
        info.extend(rest);
        let mut all = Zeroizing::new(vec![0; N * LENGTH]);
        Hkdf::<Sha256>::new(Some(b"narrows tunnel 1"), key.bytes())
            .expand_multi_info(&info, &mut all)
            .expect("it is less than 255 hashes");
        Zeroizing::new(std::array::from_fn(|at| std::array::from_fn(|byte| all[at * LENGTH + byte])))
    }
}

/// Keys of greetings that one edge says, and of the answers to them. They outlive sessions, and their nonces are drawn.
pub(super) struct Asking {
    pub(super) greeting: Drawn,
    pub(super) welcome: Drawn,
}

impl Asking {
    /// The near edge asks.
    pub(super) fn new(key: &Key, names: &Names) -> Asking {
        let keys = names.derive::<2>(key, "greeting", &[]);
        Asking { greeting: Drawn::new(&keys[0]), welcome: Drawn::new(&keys[1]) }
    }
}

/// A key whose nonces are drawn at random from 2¹⁹².
pub(super) struct Drawn(XChaCha20Poly1305);

impl Drawn {
    fn new(key: &[u8; LENGTH]) -> Drawn {
        Drawn(XChaCha20Poly1305::new(key.into()))
    }

    pub(super) fn tag(&self, nonce: &[u8; NONCE], said: &[u8]) -> [u8; TAG] {
        let tag = self.0.encrypt_inout_detached(&(*nonce).into(), said, (&mut [][..]).into());
        tag.expect("it is not too long").into()
    }

    pub(super) fn is_tag(&self, nonce: &[u8; NONCE], said: &[u8], tag: &[u8; TAG]) -> bool {
        let tag = Tag::from(*tag);
        self.0.decrypt_inout_detached(&(*nonce).into(), said, (&mut [][..]).into(), &tag).is_ok()
    }
}

/// Keys of a session: of the marked packets of the edge that asked for it, and of the other's acknowledgements.
pub(super) struct Session {
    pub(super) number: u32,
    pub(super) marked: Counted,
    pub(super) acknowledgement: Counted,
}

/// What a session's keys come from besides the secret and the names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    pub(super) clock: u64,
    pub(super) token: u64,
    pub(super) session: u32,
    pub(super) salt: [u8; SALT],
}

impl Session {
    /// A session in which the near edge marks.
    pub(super) fn new(key: &Key, names: &Names, agreed: &Agreed) -> Session {
        let Agreed { clock, token, session, salt } = agreed;
        let said: [&[u8]; 4] = [&clock.to_be_bytes(), &token.to_be_bytes(), &session.to_be_bytes(), salt];
        let keys = names.derive::<2>(key, "session", &said);
        Session { number: *session, marked: Counted::new(&keys[0]), acknowledgement: Counted::new(&keys[1]) }
    }
}

/// A key whose nonces are what the datagrams begin with: with one of these, one thing is said.
pub(super) struct Counted(ChaCha20Poly1305);

impl Counted {
    fn new(key: &[u8; LENGTH]) -> Counted {
        Counted(ChaCha20Poly1305::new(key.into()))
    }

    pub(super) fn tag(&self, nonce: &[u8; NUMBERED], said: &[u8]) -> [u8; TAG] {
        let tag = self.0.encrypt_inout_detached(&(*nonce).into(), said, (&mut [][..]).into());
        tag.expect("it is not too long").into()
    }

    pub(super) fn is_tag(&self, nonce: &[u8; NUMBERED], said: &[u8], tag: &[u8; TAG]) -> bool {
        let tag = Tag::from(*tag);
        self.0.decrypt_inout_detached(&(*nonce).into(), said, (&mut [][..]).into(), &tag).is_ok()
    }
}
