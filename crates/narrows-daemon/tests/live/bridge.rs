//! Two bridges, and what passes them.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Outcome;
use crate::site::{EDGES, LEFT_V4, RIGHT_V4, RIGHT_V6, Site, kind, receive, send};
use crate::world::{ip, within};

const MEGABYTE: usize = 1_000_000;

fn count(state: &Value, path: &str) -> u64 {
    path.split('.').fold(state, |state, key| &state[key]).as_u64().unwrap_or_else(|| panic!("{path}: {state}"))
}

/// Until `done`, for so many seconds at most.
fn within_seconds(most: u64, what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(most), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Half of what is Not-ECT and has data is lost: a twentieth of all data, where a tenth is marked. Hosts have no ECN.
pub(crate) fn a_transfer_over_a_lossy_wide_area_is_whole_and_fast() -> Outcome {
    let bytes = 50 * MEGABYTE;
    for to in [RIGHT_V4, RIGHT_V6] {
        // Without a process the kernel joins the interfaces: a bridge that ended, and the same loss.
        let site = Site::new(false);
        drop([site.bridge(0, ""), site.bridge(1, "")]);
        std::thread::sleep(Duration::from_millis(100));
        site.faults.loss.store(50, Ordering::Relaxed);
        let without = site.transfer(to, 2 * MEGABYTE, || {});
        site.faults.loss.store(0, Ordering::Relaxed);
        let bridges = [site.bridge(0, ""), site.bridge(1, "")];
        // The first packets make the edges known to each other.
        site.transfer(to, MEGABYTE, || {});
        site.faults.loss_not_ect.store(500, Ordering::Relaxed);
        let with = site.transfer(to, bytes, || {});
        site.faults.loss_not_ect.store(0, Ordering::Relaxed);
        let state = site.status_soon(0);
        let dropped = site.seen.dropped.load(Ordering::Relaxed);
        println!("  {to}: {:.1} Mbit/s without, {:.1} with the pair, {dropped} packets lost", without.mbps, with.mbps);
        println!("  left {}", state["transmitted"]);
        println!("  right {}", site.status(1)["received"]);
        println!("  delay {}, resident {}", state["delay_us"], state["resident_bytes"]);
        assert!(count(&state, "transmitted.repaired") > 100, "{state:#}");
        assert!(with.mbps > 2.0 * without.mbps, "{with:?} {without:?}");
        for bridge in bridges {
            assert_eq!(bridge.end(), "");
        }
    }
    Ok(())
}

/// Packets come twice, and three milliseconds late, while a fifth of the marked are lost: what the host gets is what was sent, and of what came twice
/// the far edge lets one through.
pub(crate) fn a_wide_area_that_doubles_and_reorders_does_no_harm() -> Outcome {
    let site = Site::new(false);
    let bridges = [site.bridge(0, ""), site.bridge(1, "")];
    site.transfer(RIGHT_V4, MEGABYTE, || {});
    site.faults.loss_not_ect.store(200, Ordering::Relaxed);
    site.faults.twice.store(30, Ordering::Relaxed);
    site.faults.late.store(30, Ordering::Relaxed);
    let transfer = site.transfer(RIGHT_V4, 20 * MEGABYTE, || {});
    let (near, far) = (site.status_soon(0), site.status(1));
    println!("  {:.1} Mbit/s; left {}; right {}", transfer.mbps, near["transmitted"], far["received"]);
    assert!(count(&near, "transmitted.repaired") > 50, "{near:#}");
    assert!(count(&far, "received.duplicates") > 20, "{far:#}");
    for bridge in bridges {
        assert_eq!(bridge.end(), "");
    }
    Ok(())
}

/// TCP packets of no connection, one a millisecond, and a datagram with each, which passes in any case: what a bridge loses is what comes
/// without its twin, however busy this machine is.
struct Probe {
    site: std::os::fd::OwnedFd,
    there: std::os::fd::OwnedFd,
}

impl Probe {
    fn new(site: &Site) -> Probe {
        Probe { site: site.host_socket(0), there: site.host_socket(1) }
    }

    fn frame(tcp: bool, number: u32) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0];
        // To an address that nobody has.
        let ip = etherparse::PacketBuilder::ipv4([192, 0, 2, 98], [192, 0, 2, 99], 64);
        let said = [&b"probe"[..], &number.to_be_bytes()].concat();
        let written = match tcp {
            true => ip.tcp(9, 9, 0, 1_000).ack(1).write(&mut frame, &said),
            false => ip.udp(9, 9).write(&mut frame, &said),
        };
        written.expect("it is short");
        frame
    }

    /// For this long; the longest time in which TCP packets were lost that came to the other host's wire before. `at` is called after a quarter.
    fn gap(&self, time: Duration, at: impl FnOnce() + Send) -> Duration {
        // When each was sent, and whether the datagram and the TCP packet came.
        let mut probes: Vec<(Instant, [bool; 2])> = vec![];
        let (begin, mut room) = (Instant::now(), vec![0; 1 << 11]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(time / 4);
                at();
            });
            // What is sent last has time to arrive.
            while begin.elapsed() < time + Duration::from_millis(300) {
                if begin.elapsed() < time && probes.len() as u128 <= begin.elapsed().as_millis() {
                    let number = u32::try_from(probes.len()).expect("seconds");
                    probes.push((Instant::now(), [false; 2]));
                    for tcp in [false, true] {
                        send(&self.site, &Probe::frame(tcp, number));
                    }
                }
                while let Some(size) = receive(&self.there, &mut room) {
                    let Some((head, number)) = room[..size].split_last_chunk::<4>() else { continue };
                    if head.ends_with(b"probe")
                        && let Some((_, came)) = probes.get_mut(u32::from_be_bytes(*number) as usize)
                    {
                        came[usize::from(head[23] == 6)] = true;
                    }
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let came = probes.iter().filter(|(_, came)| came[1]).count();
        assert!(came > 100, "{came} of {} came", probes.len());
        let (mut since, mut gap) = (None, Duration::ZERO);
        for &(sent, came) in &probes {
            match came {
                [_, true] => since = None,
                [true, false] => gap = gap.max(sent - *since.get_or_insert(sent)),
                // The wire lost both.
                [false, false] => {}
            }
        }
        gap
    }
}

pub(crate) fn a_killed_bridge_is_a_wire_and_a_restarted_one_marks_again() -> Outcome {
    for edge in 0..2 {
        let site = Site::new(true);
        let mut bridges = [site.bridge(0, ""), site.bridge(1, "")];
        let probe = Probe::new(&site);
        let mut gaps = [Duration::ZERO; 2];
        let transfer = site.transfer(RIGHT_V4, 120 * MEGABYTE, || {
            assert!(site.seen.kinds[0][0].load(Ordering::Relaxed) > 100, "it marks");
            gaps[0] = probe.gap(Duration::from_secs(1), || bridges[edge].kill());
            // The other one has stopped: nothing answers it.
            let marked = || site.seen.firsts[0].load(Ordering::Relaxed);
            let before = marked();
            std::thread::sleep(Duration::from_millis(300));
            assert!(marked() - before <= 1, "{} are marked still", marked() - before);
            gaps[1] = probe.gap(Duration::from_secs(1), || bridges[edge] = site.bridge(edge, ""));
        });
        let acknowledged = || site.seen.kinds[1][1].load(Ordering::Relaxed);
        let before = acknowledged();
        // It is greeted once a second, while there is something to mark.
        within_seconds(5, "they meet again", || {
            site.transfer(RIGHT_V4, MEGABYTE, || {});
            acknowledged() > before
        });
        site.faults.loss_not_ect.store(500, Ordering::Relaxed);
        site.transfer(RIGHT_V4, 5 * MEGABYTE, || {});
        let state = site.status_soon(edge);
        println!(
            "  edge {edge}: killed, a gap of {:.0?} in what it forwards, {:.0?} in what TCP delivers; restarted, {:.0?}; {:.0} Mbit/s over all",
            gaps[0], transfer.gap, gaps[1], transfer.mbps
        );
        println!("  kernel {}", state["kernel"]);
        assert!(gaps[0] < Duration::from_millis(100) && gaps[1] < Duration::from_millis(100), "{gaps:?}");
        assert!(acknowledged() - before > 100, "it marks again: {}", acknowledged() - before);
        assert!(count(&site.status(0), "transmitted.repaired") > 50, "and repairs: {}", site.status(0));
    }
    Ok(())
}

pub(crate) fn forgeries_and_recordings_change_nothing_and_are_not_answered() -> Outcome {
    const PER_SECOND: u128 = 10_000;
    let site = Site::new(true);
    let _bridges = [site.bridge(0, ""), site.bridge(1, "")];
    let quiet = site.transfer(RIGHT_V4, 30 * MEGABYTE, || {});
    let sockets = [site.wan_socket(0), site.wan_socket(1)];
    let mut sent = 0_u64;
    let said =
        |kind: usize| site.seen.kinds.each_ref().map(|side| side[kind].load(Ordering::Relaxed)).iter().sum::<u64>();
    let before = [site.status_soon(0), site.status(1)];
    let said_before = [said(1), said(3)];
    let attacked = site.transfer(RIGHT_V4, 60 * MEGABYTE, || {
        let recorded: Vec<(usize, Vec<u8>)> = {
            let all = site.seen.recorded.lock().expect("nobody fails with it");
            (0..2)
                .flat_map(|from| {
                    all[from].iter().filter(|frame| !frame.is_empty()).map(move |frame| (from, frame.clone()))
                })
                .collect()
        };
        assert_eq!(recorded.len(), 4, "one of each kind");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(2) {
            while u128::from(sent) < begin.elapsed().as_millis() * PER_SECOND / 1_000 {
                let place = usize::try_from(sent).expect("few");
                let (from, frame) = &recorded[place % 4];
                let mut frame = frame.clone();
                // What was recorded, and what is not quite that.
                if place / 4 % 2 == 0
                    && let Some(last) = frame.last_mut()
                {
                    *last ^= 1;
                }
                // From one edge to the other; it may be too busy to take it.
                sent += u64::from(send(&sockets[1 - from], &frame));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    let after = [site.status_soon(0), site.status(1)];
    let grown = |path: &str| -> u64 { (0..2).map(|edge| count(&after[edge], path) - count(&before[edge], path)).sum() };
    let refused: u64 = ["malformed", "unknown-session", "unauthenticated", "replayed", "unasked"]
        .iter()
        .map(|reason| grown(&format!("refused.{reason}")))
        .sum();
    let stray = grown("transmitted.stray_acknowledgements");
    println!(
        "  {:.0} Mbit/s in quiet, {:.0} under {sent} forgeries: {refused} refused, {stray} stray",
        quiet.mbps, attacked.mbps
    );
    after.iter().for_each(|state| println!("  {}", state["refused"]));
    assert_eq!(grown("transmitted.sessions"), 0, "nobody was made to meet anew");
    for state in &after {
        assert!(state["sign"].is_u64() && state["far_sign"] == state["sign"], "{state}");
    }
    // Repairs that a busy machine made the far edge send are acknowledged, and nothing else.
    let acknowledged = grown("received.marked_packets") + grown("received.duplicates");
    assert_eq!([said(1), said(3)], [said_before[0] + acknowledged, said_before[1]], "nothing is answered");
    assert!(refused + stray >= sent * 99 / 100, "each is counted");
    Ok(())
}

/// Bytes that came to a host at its interface while `send` sent.
fn came(site: &Site, host: usize, wanted: impl Fn(&[u8]) -> bool, send: impl FnOnce()) -> Vec<Vec<u8>> {
    let socket = site.host_socket(host);
    send();
    std::thread::sleep(Duration::from_millis(60));
    let mut room = vec![0; 1 << 16];
    std::iter::from_fn(|| receive(&socket, &mut room).map(|size| room[..size].to_vec()))
        .filter(|frame| wanted(frame))
        .collect()
}

pub(crate) fn what_is_not_tcp_passes_as_it_is() -> Outcome {
    let site = Site::new(false);
    let _bridges = [site.bridge(0, ""), site.bridge(1, "")];
    let socket = site.host_socket(0);
    let head = |kind: [u8; 2]| [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8], &kind[..]].concat();
    let mut udp = head([8, 0]);
    etherparse::PacketBuilder::ipv4([192, 0, 2, 98], [192, 0, 2, 99], 64)
        .udp(9, 8_936)
        .write(&mut udp, b"not a shim")
        .expect("short");
    let mut fragment = head([8, 0]);
    etherparse::PacketBuilder::ipv4([192, 0, 2, 98], [192, 0, 2, 99], 64)
        .tcp(9, 9, 1, 1)
        .write(&mut fragment, &[7; 64])
        .expect("short");
    fragment[20] = 0x20;
    let mut header: [u8; 20] = fragment[14..34].try_into().expect("a header");
    header[10..12].fill(0);
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("folded");
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut extended = head([0x86, 0xdd]);
    // Hop-by-hop options ahead of TCP.
    extended.extend([0x60, 0, 0, 0, 0, 28, 0, 64]);
    extended.extend([[3; 16], [4; 16]].concat());
    extended.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    extended.extend([5; 20]);
    let unknown = [head([0x88, 0xb5]), vec![1; 80]].concat();
    for frame in [&udp, &fragment, &extended, &unknown] {
        let there = came(&site, 1, |came| came[..12] == frame[..12], || assert!(send(&socket, frame)));
        assert_eq!(there, std::slice::from_ref(frame));
    }
    // Addresses are asked for and found; a datagram of any size comes.
    within(site.host(0), || {
        let socket = UdpSocket::bind((LEFT_V4, 0)).expect("a port is free");
        let other = within(site.host(1), || UdpSocket::bind((RIGHT_V4, 0)).expect("a port is free"));
        let address = other.local_addr().expect("it is bound");
        other.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
        for size in [1, 1_472, 9_000] {
            socket.send_to(&vec![7; size], address).expect("there is a route");
            let mut room = vec![0; 1 << 16];
            let (came, _) = other.recv_from(&mut room).expect("it comes");
            assert_eq!((came, &room[..came]), (size, &vec![7; size][..]));
        }
    });
    let state = site.status_soon(0);
    assert_eq!(count(&state, "kernel.inside.diverted"), 0, "{state:#}");
    assert!(count(&state, "kernel.inside.straight") >= 8, "{state:#}");
    Ok(())
}

pub(crate) fn full_packets_fit_and_a_narrow_path_is_found() -> Outcome {
    let site = Site::new(true);
    let _bridges = [site.bridge(0, ""), site.bridge(1, "")];
    let transfer = site.transfer(RIGHT_V4, 10 * MEGABYTE, || {});
    let state = site.status_soon(0);
    let marked = count(&state, "transmitted.marked_packets");
    println!("  {:.0} Mbit/s, {marked} marked, {} too long", transfer.mbps, count(&state, "frames.too_long"));
    assert_eq!((count(&state, "frames.clamped"), count(&state, "frames.too_long")), (1, 0), "each edge its host's");
    assert!(marked > 500);
    assert_eq!(site.seen.too_long.load(Ordering::Relaxed), 0);
    // From now on the way takes less: hosts and edges learn of it.
    site.faults.longest.store(1_300, Ordering::Relaxed);
    let transfer = site.transfer(RIGHT_V4, 5 * MEGABYTE, || {});
    let state = site.status_soon(0);
    println!("  {:.0} Mbit/s on a path of 1300, {}, {}", transfer.mbps, state["frames"], state["longest_packet_bytes"]);
    assert_eq!(count(&state, "longest_packet_bytes.ipv4"), 1_300);
    assert!(count(&state, "frames.complaints") > 0);
    Ok(())
}

/// New connections stalled for good after the outer interface was given a smaller MTU.
pub(crate) fn another_mtu_is_followed() -> Outcome {
    let site = Site::new(true);
    let _bridges = [site.bridge(0, ""), site.bridge(1, "")];
    site.transfer(RIGHT_V4, MEGABYTE, || {});
    for mtu in [1_300, 1_400] {
        for (edge, [_, outside]) in EDGES.iter().enumerate() {
            ip(&format!("-n {} link set {outside} mtu {mtu}", site.edge(edge)));
        }
        within_seconds(5, "both edges notice", || {
            (0..2).all(|edge| count(&site.status(edge), "longest_packet_bytes.ipv4") == mtu)
        });
        let before = count(&site.status_soon(0), "transmitted.marked_packets");
        let transfer = site.transfer(RIGHT_V4, 5 * MEGABYTE, || {});
        let state = site.status_soon(0);
        println!("  {:.0} Mbit/s with an MTU of {mtu}, {}", transfer.mbps, state["frames"]);
        assert!(count(&state, "transmitted.marked_packets") > before + 200, "{state:#}");
        assert_eq!(count(&state, "frames.too_long"), 0, "each edge lowers its host's segments");
    }
    Ok(())
}

pub(crate) fn what_no_process_authenticates_can_be_dropped() -> Outcome {
    let site = Site::new(false);
    let mut bridges = [site.bridge(0, ""), site.bridge(1, "--without-process drop")];
    site.transfer(RIGHT_V4, MEGABYTE, || {});
    let marked = site.seen.recorded.lock().expect("nobody fails with it")[0][0].clone();
    bridges[1].kill();
    std::thread::sleep(Duration::from_millis(100));
    let wan = site.wan_socket(1);
    let inner = marked[14 + 56..].to_vec();
    let there = came(&site, 1, |frame| frame[14..] == inner[..], || assert!(send(&wan, &marked)));
    assert!(there.is_empty(), "{there:02x?}");
    // TCP itself goes on, disguised or not.
    let transfer = site.transfer(RIGHT_V4, MEGABYTE, || {});
    let state = &site.status(1)["kernel"]["outside"];
    println!("  {:.0} Mbit/s, {state}", transfer.mbps);
    assert_eq!(count(state, "unwrapped"), 0, "{state}");
    assert!(count(state, "dropped") >= 1 && count(state, "undisguised") > 300, "{state}");
    Ok(())
}

pub(crate) fn without_its_process_the_kernel_undoes_what_the_far_edge_did() -> Outcome {
    for to in [RIGHT_V4, RIGHT_V6] {
        let site = Site::new(false);
        let mut bridges = [site.bridge(0, ""), site.bridge(1, "")];
        site.transfer(to, MEGABYTE, || {});
        let recorded = site.seen.recorded.lock().expect("nobody fails with it").clone();
        let (marked, greeting) = (&recorded[0][0], &recorded[0][2]);
        bridges[1].kill();
        std::thread::sleep(Duration::from_millis(100));
        let head = if to == RIGHT_V4 { 56 } else { 76 };
        let expected = [&marked[..14], &marked[14 + head..]].concat();
        let wan = site.wan_socket(1);
        let ours = |frame: &[u8]| frame[14..] == expected[14..] || kind(frame).is_some();
        let there = came(&site, 1, ours, || assert!(send(&wan, marked) && send(&wan, greeting)));
        assert_eq!(there, [expected], "unwrapped; and greetings are for nobody");
        // Hidden inside, what is for another host comes to nobody.
        let mut hidden = marked.clone();
        hidden[14 + head + if to == RIGHT_V4 { 19 } else { 39 }] ^= 1;
        let there =
            came(&site, 1, |frame| frame[14..].starts_with(&hidden[14 + head..][..8]), || assert!(send(&wan, &hidden)));
        assert!(there.is_empty(), "{there:02x?}");
        // Whole transfers of packets that the left edge disguises, with checksums that the host accepts.
        let transfer = site.transfer(to, MEGABYTE, || {});
        let state = &site.status(1)["kernel"]["outside"];
        println!("  {to}: {:.0} Mbit/s, {state}", transfer.mbps);
        assert!(count(state, "unwrapped") >= 1 && count(state, "dropped") >= 1, "{state}");
        assert!(count(state, "undisguised") > 300, "{state}");
    }
    Ok(())
}

pub(crate) fn interfaces_of_bare_packets_are_joined_too() -> Outcome {
    let site = Site::new(false);
    let name = site.edge(0);
    let tuns = within(name, || ["nbt0", "nbt1"].map(crate::site::tun));
    for device in ["nbt0", "nbt1"] {
        ip(&format!("-n {name} link set {device} up"));
    }
    ip(&format!("-n {name} address add 198.51.100.1/32 dev nbt0"));
    let mut bridge = site.bridge_of(0, ["nbt0", "nbt1"], "");
    let packet = |to: [u8; 4], tcp: bool| {
        let mut bytes = vec![];
        let ip = etherparse::PacketBuilder::ipv4([192, 0, 2, 98], to, 64);
        if tcp {
            ip.tcp(9, 9, 0, 1_000).ack(1).write(&mut bytes, b"probe").expect("short");
        } else {
            ip.udp(9, 9).write(&mut bytes, b"probe").expect("short");
        }
        bytes
    };
    for alive in [true, false] {
        for (from, tcp) in [(0, true), (0, false), (1, true), (1, false)] {
            let bytes = packet([192, 0, 2, 99], tcp);
            assert_eq!(rustix::io::write(&tuns[from], &bytes), Ok(bytes.len()));
            let mut came = None;
            within_seconds(2, "it comes", || {
                let mut room = [0; 2_048];
                if let Ok(size) = rustix::io::read(&tuns[1 - from], &mut room)
                    && room[..size].ends_with(b"probe")
                {
                    came = Some(room[..size].to_vec());
                }
                came.is_some()
            });
            let came = came.expect("it was waited for");
            // From inside, alive, it is disguised.
            let disguised = alive && tcp && from == 0;
            assert_eq!((came[1] == 44 << 2 | 2, &came[12..]), (disguised, &bytes[12..]));
        }
        if alive {
            assert_eq!(rustix::io::write(&tuns[0], &packet([198, 51, 100, 1], false)), Ok(33));
            let state = site.status_of(0, ["nbt0", "nbt1"]);
            assert_eq!(count(&state["kernel"]["inside"], "own"), 1, "{state}");
            bridge.kill();
            std::thread::sleep(Duration::from_millis(60));
        }
    }
    Ok(())
}

pub(crate) fn what_was_set_is_put_back_and_nothing_stays() -> Outcome {
    let site = Site::new(false);
    let flags = |device: &str| {
        within(site.edge(0), || {
            let output =
                std::process::Command::new("ip").args(["-d", "link", "show", device]).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let tc = std::process::Command::new("tc").args(["qdisc", "show", "dev", device]).output().expect("it runs");
            (text.contains("PROMISC"), String::from_utf8_lossy(&tc.stdout).contains("clsact"))
        })
    };
    let before = EDGES[0].map(flags);
    assert_eq!(before, [(false, false); 2]);
    let bridge = site.bridge(0, "");
    assert_eq!(EDGES[0].map(flags), [(true, true); 2]);
    let (code, _, error) = site.remove(0);
    assert_eq!((code, error.contains("a process works on this bridge")), (1, true), "{error}");
    assert_eq!(site.status_soon(0)["alive"], true);
    assert_eq!(bridge.end(), "");
    assert_eq!(EDGES[0].map(flags), [(true, true); 2], "the site stays connected");
    assert_eq!(site.status(0)["alive"], false);
    // A second process takes the place of the first, and is alone.
    let mut bridge = site.bridge(0, "");
    let second = within(site.edge(0), || {
        std::process::Command::new(crate::shell::NARROWSD)
            .args([
                "bridge",
                "--inside",
                EDGES[0][0],
                "--outside",
                EDGES[0][1],
                "--name",
                "x",
                "--peer",
                "y",
                "--rate",
                "1Gbps",
                "--key",
                "/dev/null",
            ])
            .output()
            .expect("it runs")
    });
    assert!(!second.status.success());
    bridge.kill();
    let (code, out, error) = site.remove(0);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert_eq!(EDGES[0].map(flags), before);
    assert!(!std::path::Path::new("/sys/fs/bpf/narrows").exists());
    assert_eq!(site.remove(0).0, 1, "there is none any more");
    Ok(())
}

pub(crate) fn an_interface_that_goes_is_named_and_the_other_restored() -> Outcome {
    for (command, side, said) in [
        ("qdisc del", 1, "another program has removed the edge router's programs from nbo0\n  help: start it again"),
        (
            "link delete",
            0,
            "the interface nbi0 is gone, and nothing is forwarded\n  help: start it again when nbi0 is back",
        ),
    ] {
        let site = Site::new(false);
        let bridge = site.bridge(0, "");
        let device = EDGES[0][side];
        within(site.edge(0), || match side {
            0 => ip(&format!("{command} {device}")),
            _ => {
                let arguments = format!("{command} dev {device} clsact");
                let output = std::process::Command::new("tc").args(arguments.split(' ')).output().expect("tc runs");
                assert!(output.status.success(), "{output:?}");
            }
        });
        let error = bridge.fails();
        assert!(error.contains(said), "{error}");
        let (code, out, error) = site.remove(0);
        assert_eq!((code, error.as_str()), (0, ""), "{out}");
        assert!(!std::path::Path::new("/sys/fs/bpf/narrows").exists());
    }
    Ok(())
}

/// Small packets of one connection from the left host, a tenth of them marked, faster and faster. The far edge gets what is marked and acknowledges
/// it; all else ends in the WAN, so that what the left bridge can do is measured, and not what two of them and two programs around them can do
/// on the same processors.
pub(crate) fn how_many_packets_a_second_and_how_long_each_takes() -> Outcome {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0];
    etherparse::PacketBuilder::ipv4([192, 0, 2, 98], [192, 0, 2, 99], 64)
        .tcp(9, 9, 0, 1_000)
        .ack(1)
        .write(&mut frame, &[1; 64])
        .expect("short");
    frame[15] |= 2;
    let _first = crate::site::GoFirst::new();
    for per_second in [20_000_u64, 100_000, 200_000, 250_000] {
        let site = Site::new(true);
        site.faults.delay_us.store(0, Ordering::Relaxed);
        ip(&format!("-n {} link set {} txqueuelen 1000", site.edge(0), EDGES[0][1]));
        let bridges = [0, 1].map(|edge| site.bridge(edge, "--hiding nothing"));
        // Before what else this machine does, which is not what is asked.
        bridges.iter().for_each(|bridge| bridge.go_first());
        site.transfer(RIGHT_V4, MEGABYTE, || {});
        site.faults.tunnel_alone.store(true, Ordering::Relaxed);
        let socket = site.host_socket(0);
        let before = (site.status_soon(0), bridges[0].processor_time());
        let (begin, mut sent) = (Instant::now(), 0_u64);
        while begin.elapsed() < Duration::from_secs(2) {
            let due = begin.elapsed().as_micros() * u128::from(per_second) / 1_000_000;
            // What could not be sent in time is not sent at once.
            for _ in 0..due.saturating_sub(u128::from(sent)).min(64) {
                sent += 1;
                send(&socket, &frame);
            }
            if u128::from(sent) >= due {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let after = (site.status_soon(0), bridges[0].processor_time());
        let grown = |path: &str| count(&after.0, path) - count(&before.0, path);
        let time = (after.1 - before.1).as_secs_f64();
        let through = grown("frames.from_inside");
        println!(
            "  offered {:.0}/s: {:.0}/s through the process, {} by the kernel as the ring was full, {} marked, {:.0} % of a processor, {:.2} us each; delay of these and of 1 MB before, us: {}",
            sent as f64 / seconds,
            through as f64 / seconds,
            grown("kernel.inside.ring_full"),
            grown("transmitted.marked_packets"),
            time / seconds * 100.0,
            time * 1e6 / through.max(1) as f64,
            after.0["delay_us"],
        );
        within_seconds(5, "it still answers", || {
            send(&socket, &frame);
            site.status(0)["connected"] == true
        });
    }
    Ok(())
}
