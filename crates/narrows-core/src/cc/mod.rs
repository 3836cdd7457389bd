//! Congestion controllers: facts in, two numbers out.
//!
//! A controller reads [`Ack`]s and states a window in packets and, if it paces, a rate. Sequence numbers, loss
//! detection, retransmission, timers and the shape of the reduction belong to the transport ([`crate::tcp`]). The
//! vocabulary is that of the Linux kernel's hook table, so that an algorithm reads the same here and in its kernel twin.
//!
//! # The order of calls
//! On an acknowledgement: [`on_ack`](CongestionControl::on_ack), then, if the same acknowledgement began an episode of
//! loss or classic ECN, [`on_congestion`](CongestionControl::on_congestion). This is the kernel's order (`in_ack_event`
//! and `pkts_acked` come before `ssthresh`), so that DCTCP's α is up to date when its cut is computed. `on_ack` is told
//! the phase *after* that decision and must not grow the window unless [`Ack::may_grow`]. Those that need delivery rates hear of
//! each packet found lost ([`on_lost`](CongestionControl::on_lost)) before `on_ack`, and after
//! [`on_timeout`](CongestionControl::on_timeout) of those that the timeout gave up.
//!
//! # Adding a controller
//! One file with a type, its [`Spec`] and its tests; one line in the `registry!` below; one page in `docs/reference/algorithms/`.
//! `docs/tutorial/your-own-controller.md` goes through it with an example, from an empty file to a figure.

use crate::packet::Seq;
use crate::rng::SmallStream;
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Span, Time};

pub mod bbr;
pub mod bbr_v3;
pub mod copa;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
pub mod external;
pub mod gemini;
/// The example of `docs/tutorial/your-own-controller.md`: compiled and tested, not registered.
#[cfg(test)]
#[path = "../../../../docs/tutorial/your-own-controller/cautious.rs"]
pub mod guide;
#[cfg(test)]
mod harness;
pub mod hpcc;
pub mod ledbat_plus_plus;
pub mod newreno;
pub mod parts;
pub mod prague;
pub mod swift;
pub mod timely;
pub mod uno;
pub mod vegas;
pub mod vivace;

pub(crate) use crate::component::parameters;
pub use crate::component::{Kind, Parameter, Settings, Value};

/// The smallest window a controller states, except after a timeout [RFC 5681 §3.1].
pub const MIN_WINDOW: Packets = Packets::new(2);

/// Who moves the window during loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The transport, by proportional rate reduction towards the controller's window [RFC 6937]: Linux without
    /// `cong_control`.
    Transport,
    /// The controller: its window holds at once. Linux with `cong_control`.
    Controller,
}

/// Where the sender stands between losses; Linux's `icsk_ca_state` without `Disorder`, in which packets were
/// reported beyond a hole and none is lost yet: controllers in C see it from what is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing is wrong.
    #[default]
    Open,
    /// A reduction after an acknowledgement with ECE is under way, no loss.
    EcnReduction,
    /// Fast recovery: a loss was found and the data outstanding at that moment is not yet all acknowledged.
    Recovery,
    /// After a retransmission timeout, until the data outstanding then is acknowledged.
    Loss,
}

/// Why an episode of congestion began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Loss detected by acknowledgements or by RACK's timer [RFC 6675 §5, RFC 8985 §6.2].
    Loss,
    /// An acknowledgement with ECE, once per window of data [RFC 3168 §6.1.2].
    Ecn,
}

/// What kept the sender from sending more, at the moment of its last transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The congestion window. Only then may a window grow [RFC 7661 §4.3].
    Window,
    /// The peer's receive window.
    Receiver,
    /// The application offered no more data.
    #[default]
    Application,
    /// The controller's own pacing rate.
    Pacing,
    /// A near-source rate limiter.
    NearSource,
}

/// One measured RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// From transmission to acknowledgement, both by the sender's clock; never of a retransmitted segment [Karn 1987].
    pub span: Span,
    /// First byte of the segment that it was taken on: a controller can tell a sample from before its last cut.
    pub seq: Seq,
}

/// A delivery-rate sample [draft-cheng-iccrg-delivery-rate-estimation §3; Linux `tcp_rate.c`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered over the interval.
    pub delivered: Packets,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Span,
    /// The connection's delivered count when the sampled packet was sent: tells rounds apart.
    pub prior_delivered: Packets,
    /// Whether the application, not the network, limited the sample.
    pub app_limited: bool,
    /// Packets in flight when the sampled packet was sent, itself included.
    pub in_flight_at_send: Packets,
    /// Packets found lost since it was sent, those found by this acknowledgement included.
    pub lost_since_send: Packets,
}

/// One transmission that was found lost, for controllers that need delivery rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When it was found.
    pub now: Time,
    /// Its segment's place in the stream, counted in segments: neighbours differ by one.
    pub segment: u64,
    /// When it left.
    pub sent_at: Time,
    /// Packets in flight when it was sent, itself included.
    pub in_flight_at_send: Packets,
    /// Packets found lost since it was sent, itself included.
    pub lost_since_send: Packets,
    /// Whether the application, not the network, limited the sender when it was sent.
    pub app_limited: bool,
    /// Packets delivered over the connection's life.
    pub delivered: Packets,
}

/// Everything one acknowledgement tells. Built in one place, `tcp/sender`, read everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Packets newly delivered by it, cumulatively or selectively.
    pub acked: Packets,
    /// How many of `acked` the receiver reported as marked: all or none, by the ECE flag, as Linux counts.
    pub marked: Packets,
    /// Packets declared lost since the previous acknowledgement, by this one or by RACK's timer; what a retransmission
    /// timeout gave up is not among them.
    pub lost: Packets,
    /// The ECE flag was set and ECN is in use.
    pub ece: bool,
    /// The RTT of the newest segment it acknowledges, if that was never retransmitted.
    pub rtt: Option<RttSample>,
    /// The delivery-rate sample.
    pub delivery: Option<RateSample>,
    /// Packets delivered over the connection's life, this acknowledgement included.
    pub delivered: Packets,
    /// First byte not yet acknowledged.
    pub una: Seq,
    /// First byte not yet sent.
    pub nxt: Seq,
    /// Packets thought to be in the network after this acknowledgement: sent, not delivered, not lost.
    pub in_flight: Packets,
    /// The same before it.
    pub prior_in_flight: Packets,
    /// Most packets in flight over the last round: slow start may grow up to twice that.
    pub max_in_flight: Packets,
    /// Where the sender stands, an episode that begins with this acknowledgement included.
    pub phase: Phase,
    /// What limited the sender.
    pub limited_by: Limit,
    /// The peer's timestamp and the echo of ours, in the ticks of the hosts' [profile](crate::tcp::profile) [RFC 7323 §3.2].
    pub timestamps: (u32, u32),
    /// It acknowledges data in sequence, or the path is known to reorder and it delivers any: only then may a window grow
    /// [RFC 5681 §3.1, Linux `tcp_may_raise_cwnd`].
    pub in_order: bool,
}

impl Ack {
    /// Whether a controller whose recovery the transport owns may raise its window: not while the transport reduces, nor on
    /// reports of segments above a hole.
    pub const fn may_grow(&self) -> bool {
        self.in_order && matches!(self.phase, Phase::Open | Phase::Loss)
    }
}

/// A transmission, at the moment it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The IP packet.
    pub size: Bytes,
    /// How long nothing had been sent, when all that was sent before is acknowledged; otherwise `None`.
    pub idle: Option<Span>,
    /// Nothing was in flight before it: it follows idle time, or is a retransmission when all that is out is delivered or lost, as
    /// the first after a timeout (Linux `CA_EVENT_TX_START`).
    pub starts: bool,
}

/// What changes slowly. Kept by the transport, lent to the controller at every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Size of the IP packet that carries it: what pacing and bandwidth-delay products count.
    pub packet: Bytes,
    /// Initial window.
    pub initial_window: Packets,
    /// Line rate of the sending host's port.
    pub line_rate: Rate,
    /// Smoothed RTT, once there was a sample.
    pub srtt: Option<Span>,
    /// Minimum RTT of the last 300 s (Linux `tcp_min_rtt`, sysctl `tcp_min_rtt_wlen`).
    pub min_rtt: Option<Span>,
    /// Retransmission timeout, without back-off.
    pub rto: Span,
    /// Segments that the host would hand to its port in one piece: 1 where segmentation offload is off.
    pub burst: u32,
    /// First byte not yet acknowledged.
    pub una: Seq,
    /// First byte not yet sent.
    pub nxt: Seq,
    /// Packets thought to be in the network.
    pub in_flight: Packets,
    /// Segments sent and not acknowledged in sequence, whatever became of them (Linux `packets_out`).
    pub outstanding: u32,
    /// When pacing lets the next piece go; in the past if nothing holds it back.
    pub departs_at: Time,
}

/// The controller's contract. Every method is total: any order of calls with any consistent facts is legal.
pub trait CongestionControl {
    /// Who moves the window during loss recovery: the same at every call.
    fn recovery(&self) -> Owner;

    /// An acknowledgement that delivered something, or carried ECE.
    fn on_ack(&mut self, ack: &Ack, path: &Path);

    /// A transmission was found lost, by an acknowledgement, RACK's timer or a timeout. Told only to those whose [`Spec`] needs
    /// delivery rates. An acknowledgement tells of what it finds before [`on_ack`](Self::on_ack), with the path as it was before;
    /// RACK's timer before [`on_congestion`](Self::on_congestion), and the next acknowledgement counts it, unless a timeout comes
    /// first; a timeout after [`on_timeout`](Self::on_timeout), and no acknowledgement counts it.
    fn on_lost(&mut self, _lost: &Lost, _path: &Path) {}

    /// What the ports on a packet's way wrote into it came back with an acknowledgement: of the latest packet that reached the
    /// receiver before it sent that, hop by hop. Told before [`on_ack`](Self::on_ack), to those whose [`Spec`] needs it; where the
    /// host's adapter holds segments back, as soon as they reach that, so that a window set here may hold earlier.
    fn on_telemetry(&mut self, _hops: &[Hop]) {}

    /// A new episode of loss or classic ECN began: at most once per window of data [RFC 6675 §5, RFC 3168 §6.1.2].
    /// With [`Owner::Transport`], [`window`](Self::window) then states where the reduction leads.
    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path);

    /// The retransmission timer expired: everything outstanding counts as lost, the window collapses. `repeated` if the
    /// same window of data already had its loss answered: then the threshold stays [RFC 5681 §3.1].
    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path);

    /// A segment left.
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _path: &Path) {}

    /// Whether [`on_sent`](Self::on_sent) matters only where a transmission [starts](Sent::starts) something: then it need not be
    /// called of others. The same at every call.
    fn hears_of_starts_only(&self) -> bool {
        false
    }

    /// Whether [`pacing`](Self::pacing) says nothing, ever.
    fn never_paces(&self) -> bool {
        false
    }

    /// Data is about to be sent after `idle`, longer than the retransmission timeout [RFC 5681 §4.1].
    fn on_idle_restart(&mut self, _now: Time, _idle: Span, _path: &Path) {}

    /// The last episode or timeout proved spurious: restore what it took [RFC 4015, Linux `undo_cwnd`].
    fn on_undo(&mut self) {}

    /// The host remembers the slow-start threshold of earlier connections to the peer: nothing was sent yet.
    fn recall(&mut self, _threshold: Packets) {}

    /// The congestion window in packets of at most one MSS; at least 1.
    fn window(&self) -> Packets;

    /// The slow-start threshold in packets; `u64::MAX` where there is none yet.
    fn slow_start_threshold(&self) -> Packets {
        Packets::new(u64::MAX)
    }

    /// The rate to pace at, counted in IP bytes; `None` sends as the window allows.
    fn pacing(&self) -> Option<Rate> {
        None
    }

    /// Most packets to hand to the port in one piece when pacing; `None` leaves it to the host's segmentation offload.
    fn burst(&self) -> Option<Packets> {
        None
    }
}

/// What a controller is built from.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Its parameters, in the order of its [`Spec`].
    pub settings: Settings<'a>,
    /// The path as known at the start.
    pub path: &'a Path,
    /// Randomness of its own.
    pub random: SmallStream,
}

/// Whether and how a controller uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EcnUse {
    /// Its packets are not ECN-capable, unless the experiment asks for classic ECN.
    Optional,
    /// It needs ECN and the run-exact echo of the DCTCP receiver [RFC 8257 §3.2].
    Exact,
    /// As [`Exact`](EcnUse::Exact), and its packets are ECT(1), which says that it is scalable: L4S [RFC 9331 §4.1].
    L4s,
}

impl EcnUse {
    /// Whether it cannot do without.
    pub const fn is_needed(self) -> bool {
        !matches!(self, EcnUse::Optional)
    }
}

/// What runs a controller on a Linux host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// The kernel's own, which it knows by this name; it has no parameters.
    Own(&'static str),
    /// Its twin, a program of ours: not every kernel has one of its own, and that has no parameters.
    Twin,
    /// Nothing: a model, which the simulator alone has.
    None,
}

/// What the world may know of a controller: name, texts, parameters, and how to build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// As written in experiments: lower case, stable.
    pub name: &'static str,
    /// As written in figures.
    pub title: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Where it is defined; keys of `docs/references.toml`.
    pub source: &'static str,
    /// Its use of ECN.
    pub ecn: EcnUse,
    /// Which of a kernel's controllers it is.
    pub kernel: Kernel,
    /// Whether it reads [`Ack::delivery`] or is to hear of each loss by [`on_lost`](CongestionControl::on_lost): the transport
    /// keeps those records only for the controllers that do.
    pub needs_delivery_rate: bool,
    /// Whether each packet must be acknowledged at once: the delay of an acknowledgement would pass for a queue's, or feedback would
    /// be missing.
    pub needs_every_ack: bool,
    /// Whether it reads [`on_telemetry`](CongestionControl::on_telemetry): then every port of a switch writes what it knows into
    /// packets of data, and receivers send that back.
    pub needs_telemetry: bool,
    /// Whether it draws random numbers ([`Context::random`]): where nothing of a plan does, all seeds give the same results.
    pub draws: bool,
    /// Pairs of parameters of which the first may not be above the second.
    pub ordered: &'static [(&'static str, &'static str)],
    /// What an experiment may set.
    pub parameters: &'static [Parameter],
}

impl Spec {
    /// Of values for all parameters, the first pair that is not [ordered](Spec::ordered): parameters and values. What is left to
    /// the controller is not judged.
    pub fn disorder(&self, values: &[Value]) -> Option<[(&'static Parameter, Value); 2]> {
        let of = |name: &str| {
            let mut all = self.parameters.iter().zip(values.iter().copied());
            all.find(|(parameter, _)| parameter.name == name)
        };
        self.ordered.iter().find_map(|(least, most)| {
            let [least, most] = [of(least)?, of(most)?];
            (least.1.integer()? > most.1.integer()?).then_some([least, most])
        })
    }
}

/// Lists every controller: the enum that dispatches, its specs, and how each is built. What stands after `by pointer` is an
/// [`external::External`]: each variant would make the code of all calls larger, and so every other controller slower. Others of
/// them are built by whoever has them.
macro_rules! registry {
    ($($module:ident :: $controller:ident),*; by pointer: $($other:ident :: $pointed:ident),* $(,)?) => {
        registry! {
            @with [$($module::$controller),*] [$($other::$pointed),*] $($module::$controller,)* external::External
        }
    };
    (
        @with [$($own:ident :: $built:ident),*] [$($other:ident :: $pointed:ident),*]
        $($module:ident :: $controller:ident),*
    ) => {
        /// Any controller. Dispatch is a `match`, so that the packet path has no indirect call.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "a variant is its controller, held by value")]
        pub enum Controller {
            $($controller($module::$controller),)*
        }

        /// Every controller's [`Spec`], in the order of the registry.
        pub const SPECS: &[&Spec] = &[$(&$own::SPEC,)* $(&$other::SPEC,)*];

        impl Controller {
            /// Builds the controller with this `name`; `None` if there is none.
            pub fn build(name: &str, context: &Context<'_>) -> Option<Controller> {
                $(if name == $own::SPEC.name {
                    return Some(Controller::$built($own::$built::new(context)));
                })*
                $(if name == $other::SPEC.name {
                    let machine = alloc::boxed::Box::new($other::$pointed::new(context));
                    return Some(Controller::External(external::External::new(&$other::SPEC, machine)));
                })*
                None
            }
            /// The [`Spec`] of this controller.
            pub fn spec(&self) -> &'static Spec {
                match self { $(Controller::$built(_) => &$own::SPEC,)* Controller::External(c) => c.spec }
            }
            /// See [`CongestionControl::recovery`].
            pub fn recovery(&self) -> Owner {
                match self { $(Controller::$controller(c) => c.recovery(),)* }
            }
            /// See [`CongestionControl::on_ack`]. Returns the window from then on.
            #[inline(always)]
            pub fn on_ack(&mut self, ack: &Ack, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_ack(ack, path); c.window() })* }
            }
            /// Whether its code is elsewhere.
            pub fn is_external(&self) -> bool {
                matches!(self, Controller::External(_))
            }
            /// See [`CongestionControl::on_lost`]. Returns the window from then on.
            pub fn on_lost(&mut self, lost: &Lost, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_lost(lost, path); c.window() })* }
            }
            /// See [`CongestionControl::on_telemetry`]. Returns the window from then on.
            pub fn on_telemetry(&mut self, hops: &[Hop]) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_telemetry(hops); c.window() })* }
            }
            /// See [`CongestionControl::on_congestion`]. Returns the window from then on.
            pub fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_congestion(now, cause, path); c.window() })* }
            }
            /// See [`CongestionControl::on_timeout`]. Returns the window from then on.
            pub fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_timeout(now, repeated, path); c.window() })* }
            }
            /// See [`CongestionControl::on_sent`]. Returns the window from then on.
            #[inline(always)]
            pub fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_sent(now, sent, path); c.window() })* }
            }
            /// See [`CongestionControl::never_paces`].
            pub fn never_paces(&self) -> bool {
                match self { $(Controller::$controller(c) => c.never_paces(),)* }
            }
            /// See [`CongestionControl::hears_of_starts_only`].
            pub fn hears_of_starts_only(&self) -> bool {
                match self { $(Controller::$controller(c) => c.hears_of_starts_only(),)* }
            }
            /// See [`CongestionControl::on_idle_restart`]. Returns the window from then on.
            pub fn on_idle_restart(&mut self, now: Time, idle: Span, path: &Path) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_idle_restart(now, idle, path); c.window() })* }
            }
            /// See [`CongestionControl::on_undo`]. Returns the window from then on.
            pub fn on_undo(&mut self) -> Packets {
                match self { $(Controller::$controller(c) => { c.on_undo(); c.window() })* }
            }
            /// See [`CongestionControl::recall`].
            pub fn recall(&mut self, threshold: Packets) {
                match self { $(Controller::$controller(c) => c.recall(threshold),)* }
            }
            /// See [`CongestionControl::window`].
            pub fn window(&self) -> Packets {
                match self { $(Controller::$controller(c) => c.window(),)* }
            }
            /// See [`CongestionControl::slow_start_threshold`].
            pub fn slow_start_threshold(&self) -> Packets {
                match self { $(Controller::$controller(c) => c.slow_start_threshold(),)* }
            }
            /// See [`CongestionControl::pacing`].
            pub fn pacing(&self) -> Option<Rate> {
                match self { $(Controller::$controller(c) => c.pacing(),)* }
            }
            /// See [`CongestionControl::burst`].
            pub fn burst(&self) -> Option<Packets> {
                match self { $(Controller::$controller(c) => c.burst(),)* }
            }
        }
    };
}

registry! {
    newreno::NewReno,
    cubic::Cubic,
    vegas::Vegas,
    bbr::Bbr,
    dctcp::Dctcp,
    gemini::Gemini,
    dcqcn::Dcqcn;
    by pointer:
    swift::Swift,
    timely::Timely,
    copa::Copa,
    ledbat_plus_plus::LedbatPlusPlus,
    prague::Prague,
    bbr_v3::BbrV3,
    vivace::Vivace,
    uno::Uno,
    hpcc::Hpcc,
}

/// The [`Spec`] of the controller with this name.
pub fn spec(name: &str) -> Option<&'static Spec> {
    SPECS.iter().copied().find(|spec| spec.name == name)
}
