//! The host's build of the cores, and their state written as the Rust controllers' `Debug` writes it: that is how all of
//! the state is compared, private fields included.

use narrows_core::cc::Phase;
use narrows_core::packet::Seq;
use narrows_core::units::{Rate, Time};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Deref;

/// `struct cc_ack`.
#[repr(C)]
pub(crate) struct CAck {
    pub(crate) now_ns: u64,
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    pub(crate) rtt_us: u64,
    pub(crate) rtt_seq: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) phase: u32,
    pub(crate) limited_by: u32,
    pub(crate) ece: u32,
    pub(crate) in_order: u32,
}

/// `struct cc_path`.
#[repr(C)]
pub(crate) struct CPath {
    pub(crate) packet_bytes: u64,
    pub(crate) initial_window: u64,
    pub(crate) line_rate_bps: u64,
    pub(crate) srtt_eighth_us: u64,
    pub(crate) min_rtt_us: u64,
    pub(crate) rto_ns: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
}

/// `struct twin`: a core behind pointers.
#[repr(C)]
pub(crate) struct Twin {
    size: u64,
    names: *const *const c_char,
    init: unsafe extern "C" fn(*mut c_void, *const u64, *const CPath),
    configure: unsafe extern "C" fn(*mut c_void, *const u64, *const CPath),
    on_ack: unsafe extern "C" fn(*mut c_void, *const CAck, *const CPath),
    on_congestion: unsafe extern "C" fn(*mut c_void, u64, u32, *const CPath),
    on_timeout: unsafe extern "C" fn(*mut c_void, u64, u32, *const CPath),
    on_sent: unsafe extern "C" fn(*mut c_void, u32, *const CPath),
    on_idle_restart: unsafe extern "C" fn(*mut c_void, u64, *const CPath),
    on_undo: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: constants of the library, which nobody changes.
unsafe impl Sync for Twin {}

unsafe extern "C" {
    safe static twin_newreno: Twin;
    safe static twin_dctcp: Twin;
    safe static twin_vegas: Twin;
    safe static twin_gemini: Twin;
    safe static twin_ack_size: u64;
    safe static twin_path_size: u64;
}

/// The state of a controller in C, mirrored.
pub(crate) trait State: Sized + 'static {
    /// Its core.
    fn twin() -> &'static Twin;
    /// Whole packets.
    fn window(&self) -> u64;
    /// Whole packets, `u64::MAX` where there is none.
    fn threshold(&self) -> u64;
    /// Bits of IP packets per second.
    fn pacing(&self) -> Option<u64> {
        None
    }
    /// As the Rust controller's `Debug`.
    fn state(&self) -> String;
}

/// A controller in C.
pub(crate) struct Core<S>(S);

impl<S: State> Core<S> {
    /// The names of its parameters, in the order in which it reads them.
    pub(crate) fn names() -> Vec<&'static str> {
        let mut names = Vec::new();
        loop {
            // SAFETY: the place is that of a name before the closing null, or of that null.
            let name = unsafe { *S::twin().names.add(names.len()) };
            if name.is_null() {
                return names;
            }
            // SAFETY: a string literal of the library: closed by a zero, never freed or changed.
            let text = unsafe { CStr::from_ptr(name) };
            names.push(text.to_str().expect("names are ASCII"));
        }
    }

    pub(crate) fn init(parameters: &[u64], path: &CPath) -> Self {
        assert_eq!(parameters.len(), Self::names().len());
        assert_eq!(S::twin().size, size_of::<S>() as u64);
        let mut state = std::mem::MaybeUninit::<S>::uninit();
        // SAFETY: `init` writes every field of the state, whose size was just compared, and reads as many parameters as it has
        // names.
        unsafe {
            (S::twin().init)(state.as_mut_ptr().cast(), parameters.as_ptr(), path);
            Core(state.assume_init())
        }
    }

    fn raw(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    pub(crate) fn configure(&mut self, parameters: &[u64], path: &CPath) {
        assert_eq!(parameters.len(), Self::names().len());
        // SAFETY: as many parameters as the core has names, the state of this core, and references that are not kept.
        unsafe { (S::twin().configure)(self.raw(), parameters.as_ptr(), path) }
    }

    pub(crate) fn on_ack(&mut self, ack: &CAck, path: &CPath) {
        // SAFETY: the state of this core, and references that are not kept; so below.
        unsafe { (S::twin().on_ack)(self.raw(), ack, path) }
    }

    pub(crate) fn on_congestion(&mut self, now_ns: u64, cause: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (S::twin().on_congestion)(self.raw(), now_ns, cause, path) }
    }

    pub(crate) fn on_timeout(&mut self, now_ns: u64, repeated: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (S::twin().on_timeout)(self.raw(), now_ns, repeated, path) }
    }

    pub(crate) fn on_sent(&mut self, was_idle: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (S::twin().on_sent)(self.raw(), was_idle, path) }
    }

    pub(crate) fn on_idle_restart(&mut self, idle_ns: u64, path: &CPath) {
        // SAFETY: as above.
        unsafe { (S::twin().on_idle_restart)(self.raw(), idle_ns, path) }
    }

    pub(crate) fn on_undo(&mut self) {
        // SAFETY: as above.
        unsafe { (S::twin().on_undo)(self.raw()) }
    }
}

impl<S> Deref for Core<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// `struct cc_window`.
#[repr(C)]
struct CWindow {
    packets: u64,
    threshold: u64,
    credit: u64,
    before_packets: u64,
    before_threshold: u64,
    has_before: u64,
}

impl CWindow {
    fn mirror(&self) -> mirror::Window {
        mirror::Window {
            packets: self.packets,
            threshold: self.threshold,
            credit: self.credit,
            before: (self.has_before != 0).then_some((self.before_packets, self.before_threshold)),
        }
    }
}

/// `struct newreno`.
#[repr(C)]
pub(crate) struct NewReno {
    window: CWindow,
}

impl State for NewReno {
    fn twin() -> &'static Twin {
        &twin_newreno
    }
    fn window(&self) -> u64 {
        self.window.packets
    }
    fn threshold(&self) -> u64 {
        self.window.threshold
    }
    fn state(&self) -> String {
        format!("{:?}", mirror::NewReno { window: self.window.mirror() })
    }
}

/// `struct dctcp`.
#[repr(C)]
pub(crate) struct Dctcp {
    window: CWindow,
    alpha: u64,
    gain_shift: u64,
    acked: u64,
    marked: u64,
    window_end: u64,
}

impl State for Dctcp {
    fn twin() -> &'static Twin {
        &twin_dctcp
    }
    fn window(&self) -> u64 {
        self.window.packets
    }
    fn threshold(&self) -> u64 {
        self.window.threshold
    }
    fn state(&self) -> String {
        let mirror = mirror::Dctcp {
            window: self.window.mirror(),
            alpha: self.alpha,
            gain_shift: self.gain_shift,
            acked: self.acked,
            marked: self.marked,
            window_end: Seq::new(self.window_end),
        };
        format!("{mirror:?}")
    }
}

/// `struct vegas`.
#[repr(C)]
pub(crate) struct Vegas {
    window: CWindow,
    alpha: u64,
    beta: u64,
    gamma: u64,
    active: u64,
    phase: u64,
    round_end: u64,
    base_us: u64,
    least_us: u64,
    samples: u64,
}

impl State for Vegas {
    fn twin() -> &'static Twin {
        &twin_vegas
    }
    fn window(&self) -> u64 {
        self.window.packets
    }
    fn threshold(&self) -> u64 {
        self.window.threshold
    }
    fn state(&self) -> String {
        let mirror = mirror::Vegas {
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            window: self.window.mirror(),
            active: self.active != 0,
            phase: match self.phase {
                0 => Phase::Open,
                1 => Phase::EcnReduction,
                2 => Phase::Recovery,
                3 => Phase::Loss,
                other => panic!("no phase {other}"),
            },
            round_end: Seq::new(self.round_end),
            base_us: self.base_us,
            least_us: self.least_us,
            samples: self.samples,
        };
        format!("{mirror:?}")
    }
}

/// `struct gemini_config`.
#[repr(C)]
struct CConfig {
    capacity_bps: u64,
    k: u64,
    t_us: u64,
    beta: u64,
    h: u64,
    h_least: u64,
    h_most: u64,
    g_shift: u64,
    fixed_factor: u64,
    factor_most: u64,
    ecn_cut_most: u64,
    ecn: u64,
    delay: u64,
    grow_during_cut_round: u64,
    gate_by_timer: u64,
    fresh_samples: u64,
    halve_on_loss: u64,
    route_change_after: u64,
    pacing: u64,
    gain_slow_start: u64,
    gain: u64,
    packet_bits: u64,
}

/// `struct cc_sample`.
#[repr(C)]
struct CSample {
    at: u64,
    value: u64,
}

/// `struct cc_minimum`.
#[repr(C)]
struct CMinimum {
    window: u64,
    best: [CSample; 3],
}

/// `struct gemini`.
#[repr(C)]
pub(crate) struct Gemini {
    config: CConfig,
    window: u64,
    threshold: u64,
    credit: u64,
    alpha: u64,
    acked: u64,
    marked: u64,
    window_end: u64,
    rtt_current_us: u64,
    rtt_previous_us: u64,
    rtt_base_us: CMinimum,
    factor: u64,
    step: u64,
    cut_end: u64,
    last_cut_ns: u64,
    has_last_cut: u64,
    last_cut_was_loss: u64,
    fresh_from: u64,
    futile_cuts: u64,
    futile_windows: u64,
    pacing_bps: u64,
    before_window: u64,
    before_threshold: u64,
    has_before: u64,
}

/// `CC_NONE` is none.
fn some(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

impl State for Gemini {
    fn twin() -> &'static Twin {
        &twin_gemini
    }
    fn window(&self) -> u64 {
        self.window >> 10
    }
    fn threshold(&self) -> u64 {
        if self.threshold == u64::MAX { u64::MAX } else { self.threshold >> 10 }
    }
    fn pacing(&self) -> Option<u64> {
        (self.pacing_bps != 0).then_some(self.pacing_bps)
    }
    fn state(&self) -> String {
        let config = &self.config;
        let mirror = mirror::Gemini {
            config: mirror::Config {
                capacity_bps: config.capacity_bps,
                k: config.k,
                t_us: config.t_us,
                beta: config.beta,
                h: config.h,
                h_least: config.h_least,
                h_most: config.h_most,
                g_shift: config.g_shift,
                fixed_factor: some(config.fixed_factor),
                factor_most: config.factor_most,
                ecn_cut_most: config.ecn_cut_most,
                ecn: config.ecn != 0,
                delay: config.delay != 0,
                grow_during_cut_round: config.grow_during_cut_round != 0,
                gate_by_timer: config.gate_by_timer != 0,
                fresh_samples: config.fresh_samples != 0,
                halve_on_loss: config.halve_on_loss != 0,
                route_change_after: config.route_change_after,
                pacing: config.pacing != 0,
                gain_slow_start: config.gain_slow_start,
                gain: config.gain,
                packet_bits: config.packet_bits,
            },
            window: self.window,
            threshold: self.threshold,
            credit: self.credit,
            alpha: self.alpha,
            acked: self.acked,
            marked: self.marked,
            window_end: Seq::new(self.window_end),
            rtt_current: some(self.rtt_current_us),
            rtt_previous: some(self.rtt_previous_us),
            rtt_base: mirror::WindowedMin(mirror::WindowedMax {
                window: self.rtt_base_us.window,
                // The Rust filter keeps the greatest complement.
                best: self.rtt_base_us.best.each_ref().map(|best| mirror::Sample { at: best.at, value: !best.value }),
            }),
            factor: self.factor,
            step: self.step,
            cut_end: Seq::new(self.cut_end),
            last_cut: (self.has_last_cut != 0).then(|| Time::from_ns(self.last_cut_ns)),
            last_cut_was_loss: self.last_cut_was_loss != 0,
            fresh_from: Seq::new(self.fresh_from),
            futile_cuts: self.futile_cuts,
            futile_windows: self.futile_windows,
            pacing: self.pacing().map(Rate::from_bps),
            before: (self.has_before != 0).then_some((self.before_window, self.before_threshold)),
        };
        format!("{mirror:?}")
    }
}

/// What is told to every core has the size that C gives it; a core's state is compared where it is made.
pub(crate) fn check_sizes() {
    assert_eq!([twin_ack_size, twin_path_size], [size_of::<CAck>(), size_of::<CPath>()].map(|size| size as u64));
}

/// The private state of the Rust controllers, field by field: only their `Debug` is used.
#[allow(dead_code, reason = "fields are read by the derived Debug alone")]
mod mirror {
    use narrows_core::cc::Phase;
    use narrows_core::packet::Seq;
    use narrows_core::units::{Rate, Time};

    #[derive(Debug)]
    pub(super) struct Window {
        pub(super) packets: u64,
        pub(super) threshold: u64,
        pub(super) credit: u64,
        pub(super) before: Option<(u64, u64)>,
    }

    #[derive(Debug)]
    pub(super) struct NewReno {
        pub(super) window: Window,
    }

    #[derive(Debug)]
    pub(super) struct Dctcp {
        pub(super) window: Window,
        pub(super) alpha: u64,
        pub(super) gain_shift: u64,
        pub(super) acked: u64,
        pub(super) marked: u64,
        pub(super) window_end: Seq,
    }

    #[derive(Debug)]
    pub(super) struct Vegas {
        pub(super) alpha: u64,
        pub(super) beta: u64,
        pub(super) gamma: u64,
        pub(super) window: Window,
        pub(super) active: bool,
        pub(super) phase: Phase,
        pub(super) round_end: Seq,
        pub(super) base_us: u64,
        pub(super) least_us: u64,
        pub(super) samples: u64,
    }

    #[derive(Debug)]
    pub(super) struct Sample {
        pub(super) at: u64,
        pub(super) value: u64,
    }

    #[derive(Debug)]
    pub(super) struct WindowedMax {
        pub(super) window: u64,
        pub(super) best: [Sample; 3],
    }

    #[derive(Debug)]
    pub(super) struct WindowedMin(pub(super) WindowedMax);

    #[derive(Debug)]
    pub(super) struct Config {
        pub(super) capacity_bps: u64,
        pub(super) k: u64,
        pub(super) t_us: u64,
        pub(super) beta: u64,
        pub(super) h: u64,
        pub(super) h_least: u64,
        pub(super) h_most: u64,
        pub(super) g_shift: u64,
        pub(super) fixed_factor: Option<u64>,
        pub(super) factor_most: u64,
        pub(super) ecn_cut_most: u64,
        pub(super) ecn: bool,
        pub(super) delay: bool,
        pub(super) grow_during_cut_round: bool,
        pub(super) gate_by_timer: bool,
        pub(super) fresh_samples: bool,
        pub(super) halve_on_loss: bool,
        pub(super) route_change_after: u64,
        pub(super) pacing: bool,
        pub(super) gain_slow_start: u64,
        pub(super) gain: u64,
        pub(super) packet_bits: u64,
    }

    #[derive(Debug)]
    pub(super) struct Gemini {
        pub(super) config: Config,
        pub(super) window: u64,
        pub(super) threshold: u64,
        pub(super) credit: u64,
        pub(super) alpha: u64,
        pub(super) acked: u64,
        pub(super) marked: u64,
        pub(super) window_end: Seq,
        pub(super) rtt_current: Option<u64>,
        pub(super) rtt_previous: Option<u64>,
        pub(super) rtt_base: WindowedMin,
        pub(super) factor: u64,
        pub(super) step: u64,
        pub(super) cut_end: Seq,
        pub(super) last_cut: Option<Time>,
        pub(super) last_cut_was_loss: bool,
        pub(super) fresh_from: Seq,
        pub(super) futile_cuts: u64,
        pub(super) futile_windows: u64,
        pub(super) pacing: Option<Rate>,
        pub(super) before: Option<(u64, u64)>,
    }
}
