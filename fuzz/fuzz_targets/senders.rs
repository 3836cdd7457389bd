//! The file of senders and the keys that it names are read as root: whatever they say, they are refused with code 2, the
//! file and help, or each sender has an identity, addresses of one family and the key of its file.
#![no_main]
#![allow(dead_code, reason = "modules of narrows-daemon, of which this needs a part")]

#[path = "../../crates/narrows-daemon/src/failure.rs"]
mod failure;
#[path = "../../crates/narrows-daemon/src/key.rs"]
mod key;
#[path = "../../crates/narrows-daemon/src/near_source/senders.rs"]
mod senders;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use narrows_wire::Key;

/// A folder in memory where there is one.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared = PathBuf::from("/dev/shm");
    let parent = if shared.is_dir() { shared } else { std::env::temp_dir() };
    let folder = parent.join(format!("narrows-fuzz-senders-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for files");
    let own = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(folder.join("a.key"));
    drop(own.expect("a file for a key"));
    folder
});

fuzz_target!(|input: (Option<&str>, &str)| {
    let (given, text) = input;
    let right = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
    let digits = given.unwrap_or(right);
    let file = FOLDER.join("senders.toml");
    fs::write(FOLDER.join("a.key"), digits).expect("a key is written");
    fs::write(&file, text).expect("a file is written");
    match senders::read(&file) {
        Ok(senders) => {
            let key = Key::parse(digits).expect("what is no key is refused");
            assert!(!senders.is_empty());
            for ((_, host), sender) in &senders {
                assert!(host.is_ipv4() == sender.address.is_ipv4());
                assert!(!host.is_unspecified() && !sender.address.is_unspecified());
                assert!(sender.keys.believed().all(|one| one.tag(b"x") == key.tag(b"x")));
            }
        }
        Err(failure) => {
            let (code, sentence, help) = failure.parts();
            assert!(code == 2 && help.is_some_and(|help| !help.is_empty()), "{failure}");
            assert!(sentence.starts_with(FOLDER.to_str().expect("text")) || sentence.starts_with('/'), "{failure}");
        }
    }
});
