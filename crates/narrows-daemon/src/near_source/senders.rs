//! The file that says which congestion points a host believes.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use narrows_wire::{Keys, Pair, Sender};
use serde::Deserialize;

use crate::failure::Failure;
use crate::key;

/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

const EXAMPLE: &str = "an entry is four lines below [[sender]]:
    [[sender]]
    identity = \"0x300000007\"
    address = \"192.0.2.254\"
    host = \"192.0.2.1\"
    key-file = \"tor.key\"";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    sender: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    /// Hexadecimal, `0x` before it.
    #[serde(deserialize_with = "identity")]
    identity: u64,
    address: IpAddr,
    /// This host's address that it tells: one entry for each.
    host: IpAddr,
    /// Beside the file, unless the path is absolute.
    key_file: PathBuf,
    /// Another that is believed too, while switch and host change theirs.
    other_key_file: Option<PathBuf>,
}

fn identity<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.ok_or_else(|| serde::de::Error::custom("an identity is 0x and up to 16 hexadecimal digits, in quotes"))
}

/// Reads it and the keys that it names.
///
/// # Errors
/// Code 2, with the line.
pub(super) fn read(path: &Path) -> Result<BTreeMap<Pair, Sender>, Failure> {
    let cannot = |sentence: String| Failure::input(format!("{}: {sentence}", path.display())).help(EXAMPLE);
    let text = text(path).map_err(|error| cannot(error.to_string()))?;
    let document: Document = toml::from_str(&text).map_err(|error| cannot(error.to_string().trim_end().to_owned()))?;
    if document.sender.is_empty() {
        return Err(cannot("there is no [[sender]] in it, and nobody would be believed".to_owned()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut senders = BTreeMap::new();
    for entry in document.sender {
        let other = entry.other_key_file.as_ref().map(|file| key::read(&folder.join(file))).transpose()?;
        let keys = Keys::new(key::read(&folder.join(&entry.key_file))?, other);
        let sender = Sender { address: entry.address.to_canonical(), keys };
        let host = entry.host.to_canonical();
        if let Some(nobody) = [sender.address, host].iter().find(|address| address.is_unspecified()) {
            return Err(cannot(format!("{nobody} is nobody's address")));
        }
        if host.is_ipv4() != sender.address.is_ipv4() {
            return Err(cannot(format!("{} and {host} are of two families", sender.address)));
        }
        if senders.insert((entry.identity, host), sender).is_some() {
            return Err(cannot(format!("identity {:#x} is there twice for {host}", entry.identity)));
        }
    }
    Ok(senders)
}

fn text(path: &Path) -> std::io::Result<String> {
    let size = fs::metadata(path)?.len();
    if size > MAX_BYTES {
        return Err(std::io::Error::other(format!("{size} bytes are too many")));
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_wire::Key;
    use std::os::unix::fs::PermissionsExt;

    /// A folder with a key, and a file of senders with this text; what is read of it.
    fn read_of(name: &str, text: &str, key: &str, mode: u32) -> Result<BTreeMap<Pair, Sender>, String> {
        let folder = std::env::temp_dir().join(format!("narrowsd-senders-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, key_file) = (folder.join("senders.toml"), folder.join("a.key"));
        fs::write(&file, text).unwrap();
        fs::write(&key_file, key).unwrap();
        fs::set_permissions(&key_file, fs::Permissions::from_mode(mode)).unwrap();
        let outcome = read(&file).map_err(|failure| failure.to_string());
        fs::remove_dir_all(&folder).unwrap();
        outcome
    }

    const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
    const ENTRY: &str = "[[sender]]\nidentity = \"0x300000007\"\naddress = \"192.0.2.254\"\n\
                         host = \"192.0.2.1\"\nkey-file = \"a.key\"\n";

    #[test]
    fn senders_are_read_with_their_keys() {
        let both = ENTRY.to_owned() + &ENTRY.replace("192.0.2.254", "2001:db8::fe").replace("192.0.2.1", "2001:db8::1");
        let senders = read_of("good", &both, KEY, 0o600).unwrap();
        assert_eq!(senders.len(), 2, "one congestion point, and two addresses of this host");
        let ((identity, host), sender) = senders.first_key_value().unwrap();
        assert_eq!((*identity, *host), (0x3_0000_0007, [192, 0, 2, 1].into()));
        assert_eq!(sender.address, IpAddr::from([192, 0, 2, 254]));
        assert!(sender.keys.own().is_tag(b"x", &Key::parse(KEY).unwrap().tag(b"x")));
        let two = read_of("two", &format!("{ENTRY}other-key-file = \"a.key\"\n"), KEY, 0o600).unwrap();
        assert_eq!(two.values().next().unwrap().keys.believed().count(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let twice = format!("{ENTRY}{ENTRY}");
        for (name, text, key, mode, expected) in [
            ("empty", "", KEY, 0o600, "no [[sender]]"),
            ("decimal", &*ENTRY.replace("0x300000007", "7"), KEY, 0o600, "line 2"),
            ("address", &*ENTRY.replace("192.0.2.254", "tor-3"), KEY, 0o600, "line 3"),
            ("unknown", &*ENTRY.replace("key-file", "key"), KEY, 0o600, "unknown field `key`"),
            ("twice", &*twice, KEY, 0o600, "0x300000007 is there twice for 192.0.2.1"),
            (
                "families",
                &*ENTRY.replace("192.0.2.1\"", "::1\""),
                KEY,
                0o600,
                "192.0.2.254 and ::1 are of two families",
            ),
            ("nobody", &*ENTRY.replace("192.0.2.254", "0.0.0.0"), KEY, 0o600, "0.0.0.0 is nobody's address"),
            ("nowhere", &*ENTRY.replace("host = \"192.0.2.1\"", ""), KEY, 0o600, "missing field `host`"),
            ("missing", &*ENTRY.replace("a.key", "b.key"), KEY, 0o600, "b.key: No such file"),
            ("open", ENTRY, KEY, 0o644, "others than its owner"),
            ("short", ENTRY, "0011", 0o600, "64 hexadecimal digits; this has 4"),
        ] {
            let said = read_of(name, text, key, mode).expect_err(name);
            assert!(said.contains(expected) && said.contains("help:"), "{name}: {said}");
        }
    }
}
