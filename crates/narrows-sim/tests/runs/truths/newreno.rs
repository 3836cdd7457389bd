//! NewReno: the sawtooth.

use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};

use crate::plans::{Dumbbell, run, smooth};

/// Without a buffer, a window that swings between half and all of the path's capacity uses three quarters of it.
#[test]
fn newreno_without_a_buffer_uses_three_quarters() {
    let network = Dumbbell {
        rate: Rate::from_mbps(100),
        rtt: Span::from_ms(20),
        limit: 3,
        // Evenly spaced: a burst would be lost before the path is full.
        profile: Profile { host_pacing: Some((100, 100)), ..smooth(Profile::LINUX_6) },
        ..Dumbbell::default()
    };
    let results = run(&network.long("newreno", false, Span::from_secs(120)), 1);
    let port = &results.ports[network.bottleneck()];
    assert!((port.utilisation - 0.75).abs() < 0.02, "{}", port.utilisation);
}

/// With a buffer of one bandwidth-delay product the window swings between it and twice it: the link never idles.
#[test]
fn newreno_with_a_full_buffer_never_idles() {
    let network = Dumbbell { rate: Rate::from_mbps(100), rtt: Span::from_ms(20), limit: 175, ..Dumbbell::default() };
    let results = run(&network.long("newreno", false, Span::from_secs(120)), 1);
    let port = &results.ports[network.bottleneck()];
    assert!(port.utilisation > 0.995, "{}", port.utilisation);
}
