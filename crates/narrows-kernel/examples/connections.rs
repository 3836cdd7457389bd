//! How long it takes to find this host's connections, and to borrow one: `cargo run --release -p narrows-kernel --example connections`.
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use narrows_kernel::Connections;

fn main() {
    let began = Instant::now();
    let finder = Connections::load().expect("as root");
    println!("load: {:?}", began.elapsed());
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let _held: Vec<(TcpStream, TcpStream)> = (0..50)
        .map(|_| (TcpStream::connect(address).expect("it listens"), listener.accept().expect("one").0))
        .collect();
    for _ in 0..3 {
        let began = Instant::now();
        let all = finder.all().expect("as root");
        println!("walk: {:?}, {} connections", began.elapsed(), all.len());
        let began = Instant::now();
        let count = all.iter().filter(|one| one.socket().is_ok()).count();
        println!("borrow: {:?} each, {count}", began.elapsed() / u32::try_from(all.len().max(1)).expect("few"));
    }
}
