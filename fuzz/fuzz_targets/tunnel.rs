//! Whatever comes to an edge router's port, nothing is believed without the key, and nothing fails.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_wire::Key;
use narrows_wire::tunnel::{End, Names, Path};

fuzz_target!(|input: (bool, [u8; 4], [u8; 4], &[u8])| {
    let (greeted, source, destination, bytes) = input;
    let path = Path { source: source.into(), destination: destination.into() };
    // The tunnel that a fuzzer finds first.
    let names = Names::new("left", "right", 0).expect("they differ");
    let mut end = End::new(&Key::new([7; 32]).into(), &names);
    if greeted {
        end.greet(path, &[0; 24], 0, 0);
    }
    assert!(!matches!(end.open(path, bytes), Some(Ok(_))));
});
