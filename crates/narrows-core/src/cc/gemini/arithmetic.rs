//! GEMINI's arithmetic: pure functions of 64-bit integers, the same in the kernel.
//!
//! Scales: windows in Q10 packets; α and every relative cut in Q20; F and h in Q10; H in Q36; RTTs in whole
//! microseconds; the bandwidth-delay product in bits. All divisions round down. Nothing overflows for windows up to
//! [`MAX_WINDOW`] and paths up to 400 Gbit/s and 1 s; beyond that, products saturate and the clamps decide.

/// One, of a window or of F and h.
pub const ONE_Q10: u64 = 1 << 10;
/// One, of α and of relative cuts.
pub const ONE_Q20: u64 = 1 << 20;
/// The window never falls below two packets, as DCTCP's [RFC 8257 §3.3, Linux `tcp_dctcp.c`].
pub const MIN_WINDOW: u64 = 2 * ONE_Q10;
/// The window never exceeds 2³⁰ packets, so that a window times a Q20 fraction fits in 64 bits.
pub const MAX_WINDOW: u64 = ONE_Q10 << 30;

/// C·RTT in bits.
pub const fn bandwidth_delay_bits(capacity_bps: u64, rtt_us: u64) -> u64 {
    capacity_bps.saturating_mul(rtt_us) / 1_000_000
}

/// T = max(`least_us`, `share`·RTT_base) in microseconds, `share` in Q20.
pub const fn delay_threshold(least_us: u64, share: u64, base_us: u64) -> u64 {
    let scaled = base_us.saturating_mul(share) >> 20;
    if scaled > least_us { scaled } else { least_us }
}

/// F = 4K/(C·RTT + K) [GEMINI Theorem 1]: `k` in packets, the product in bits, hence K·`packet_bits`.
pub const fn scale_factor(k: u64, bandwidth_delay_bits: u64, packet_bits: u64) -> u64 {
    let k_bits = k.saturating_mul(packet_bits);
    let whole = bandwidth_delay_bits.saturating_add(k_bits);
    k_bits.saturating_mul(4 * ONE_Q10) / if whole == 0 { 1 } else { whole }
}

/// h = H·C·RTT packets per RTT, between `least` and `most` [GEMINI §III-B, §III-D].
pub const fn additive_step(h_q36: u64, bandwidth_delay_bits: u64, least: u64, most: u64) -> u64 {
    let step = bandwidth_delay_bits.saturating_mul(h_q36) >> 26;
    let step = if step < least { least } else { step };
    if step > most { most } else { step }
}

/// The marked fraction of a window's packets.
pub const fn marked_fraction(marked: u64, acked: u64) -> u64 {
    let fraction = marked.saturating_mul(ONE_Q20) / if acked == 0 { 1 } else { acked };
    if fraction > ONE_Q20 { ONE_Q20 } else { fraction }
}

/// α ← (1−g)·α + g·M with g = 2^−`shift` [DCTCP eq. 1]. Each shift rounds down, so α stalls below 2^`shift`/2²⁰ instead
/// of reaching 0; it reaches 1.
pub const fn average(alpha: u64, fraction: u64, shift: u64) -> u64 {
    alpha - (alpha >> shift) + (fraction >> shift)
}

/// f_dcn = min(α·F, `most`): the product is limited and not F, for F > 1 on short paths is what balances their small h.
pub const fn ecn_cut(alpha: u64, factor: u64, most: u64) -> u64 {
    let cut = alpha.saturating_mul(factor) >> 10;
    if cut < most { cut } else { most }
}

/// W ← W·(1−f), at least [`MIN_WINDOW`], never more than W.
pub const fn reduce(window: u64, fraction: u64) -> u64 {
    let fraction = if fraction > ONE_Q20 { ONE_Q20 } else { fraction };
    let reduced = (window * (ONE_Q20 - fraction)) >> 20;
    if reduced > MIN_WINDOW {
        reduced
    } else if window < MIN_WINDOW {
        window
    } else {
        MIN_WINDOW
    }
}

/// W ← W + n·h/W. `credit` carries the remainder of the division to the next call, so that steps far below one unit
/// of Q10 still add up to exactly h per window.
pub const fn increase(window: u64, credit: u64, acked: u64, step: u64) -> (u64, u64) {
    let credit = credit.saturating_add(acked.saturating_mul(step).saturating_mul(ONE_Q10));
    let grown = window.saturating_add(credit / window);
    (if grown > MAX_WINDOW { MAX_WINDOW } else { grown }, credit % window)
}
