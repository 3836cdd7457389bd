/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A controller for the simulator in plain C. (For BPF programs and modules of Linux there is vmlinux.h.)
 *
 * Times are in seconds, sizes in bytes, windows in packets, rates in bit/s of IP packets. What is not known is NAN: test it with
 * isnan().
 */
#ifndef NARROWS_H
#define NARROWS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <narrows_parameter.h>

/* A function with other arguments than the simulator calls it with would compute with what is not there. */
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
#ifndef __clang__
#pragma GCC diagnostic error "-Wdiscarded-qualifiers"
#endif

/* The controller's part of a connection: it changes these, and the simulator reads them after each call. */
struct narrows_sender {
	double window;		/* congestion window, packets: 1 to 2^30; the fraction of a packet is kept, but not used */
	double threshold;	/* slow-start threshold, packets, at least 1; INFINITY: none yet */
	double pacing_rate;	/* at which packets leave; 0: as the window allows */
	void *const state;	/* `state_size` bytes of the controller's own, zero at first; NULL if it has none */
};

/* What changes slowly, and the time. */
struct narrows_path {
	double now;		/* simulated time; NAN in `init` */
	double srtt;		/* smoothed RTT; NAN before the first */
	double min_rtt;		/* minimum RTT of 300 s; NAN before the first */
	double rto;		/* retransmission timeout */
	double line_rate;	/* of the host */
	uint64_t una;		/* first byte not acknowledged */
	uint64_t nxt;		/* first byte not sent */
	uint64_t in_flight;	/* packets in the network */
	uint64_t initial_window;
	uint64_t mss;		/* payload of a full packet */
	uint64_t packet;	/* size of a full packet */
};

/* Where the sender stands. */
enum narrows_phase { NARROWS_OPEN, NARROWS_ECN_REDUCTION, NARROWS_RECOVERY, NARROWS_LOSS };
/* What kept the sender from sending more. */
enum narrows_limit { NARROWS_WINDOW, NARROWS_RECEIVER, NARROWS_APPLICATION, NARROWS_PACING, NARROWS_NEAR_SOURCE };
/* Why the window should fall: a loss, or the echo of a mark by classic ECN. */
enum narrows_cause { NARROWS_BY_LOSS, NARROWS_BY_ECN };

/* An acknowledgement. */
struct narrows_ack {
	double rtt;		/* of the newest packet; NAN if it was retransmitted */
	double delivery_rate;	/* NAN if it is not measured */
	uint64_t rtt_seq;	/* the first byte of the packet that `rtt` is of */
	uint64_t acked;		/* packets delivered */
	uint64_t marked;	/* packets reported as marked */
	uint64_t lost;		/* packets declared lost */
	uint64_t delivered;	/* packets since the connection began */
	uint64_t prior_in_flight;	/* before it */
	uint64_t max_in_flight;	/* most of the last RTT */
	enum narrows_phase phase;
	enum narrows_limit limited_by;
	bool ece;		/* it carries the echo of a mark */
	bool app_limited;	/* the application limited the delivery rate */
	bool may_grow;		/* data was acknowledged in sequence and the transport does not reduce */
};

/* A packet that leaves. */
struct narrows_sent {
	double idle;		/* how long nothing had been sent, if nothing was in flight; else NAN */
	uint64_t size;
};

/* A packet that was found lost. */
struct narrows_lost {
	double sent_at;			/* simulated time at which it left */
	uint64_t segment;		/* its place in the stream, counted in segments */
	uint64_t in_flight_at_send;	/* packets in the network when it left, itself included */
	uint64_t lost_since_send;	/* packets found lost since it left, itself included */
	uint64_t delivered;		/* packets since the connection began */
	bool app_limited;		/* the application limited the sender when it left */
};

/* What a switch wrote into a packet when it began to leave. */
struct narrows_hop {
	double at;			/* simulated time */
	double rate;			/* of the line */
	uint64_t queue;			/* IP bytes in the port's queues, without the packet */
	uint64_t sent;			/* bytes that the port had sent, framing included, without the packet */
};

/*
 * What a controller is. `on_ack` and `on_congestion` must be there; without the others the simulator does as NewReno. A
 * controller that does not own recovery may raise its window only where `may_grow` is true: the transport reduces gradually towards it.
 */
struct narrows_controller {
	const char *name;
	size_t state_size;
	bool needs_ecn;			/* packets are ECN-capable, receivers report marks exactly [RFC 8257 §3.2] */
	bool needs_delivery_rate;	/* it reads `delivery_rate`, or has `on_lost`, which costs time */
	bool needs_telemetry;		/* switches write into packets what `on_telemetry` reads */
	bool owns_recovery;		/* the window holds at once, also during loss recovery */

	/* A connection opens, with the initial window, no threshold and no pacing; the time is not known. */
	void (*init)(struct narrows_sender *s, const struct narrows_path *path);
	/* An acknowledgement delivers something or reports a mark. */
	void (*on_ack)(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path);
	/*
	 * A packet was found lost. If an acknowledgement finds it, this comes before its `on_ack`, which counts it, with the path as it
	 * was before. If the timer that waits for reordering does, before `on_congestion`; the next `on_ack` counts it, unless a timeout
	 * comes first. If a timeout gives it up, after `on_timeout`, and no `on_ack` counts it.
	 */
	void (*on_lost)(struct narrows_sender *s, const struct narrows_lost *lost, const struct narrows_path *path);
	/* What switches wrote into the latest packet that reached the receiver came back, in their order; before `on_ack`. */
	void (*on_telemetry)(struct narrows_sender *s, const struct narrows_hop *hops, size_t count);
	/* At most once per window of data, after `on_ack`. */
	void (*on_congestion)(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path);
	/* The retransmission timer fires; the window must be 1 afterwards. If `repeated`, for data that had its answer already. */
	void (*on_timeout)(struct narrows_sender *s, bool repeated, const struct narrows_path *path);
	/* A packet leaves. */
	void (*on_sent)(struct narrows_sender *s, const struct narrows_sent *sent, const struct narrows_path *path);
	/* Data is about to be sent after a pause longer than a retransmission timeout. */
	void (*on_idle_restart)(struct narrows_sender *s, double idle, const struct narrows_path *path);
	/* The last reduction was spurious; these were window and threshold before it. */
	void (*on_undo)(struct narrows_sender *s, double window, double threshold);
};

/* NARROWS_CONTROLLER(name, .on_ack = …, …); */
#define NARROWS_CONTROLLER(called, ...)								\
	static const struct narrows_controller narrows_controller_##called =			\
		{ .name = #called, __VA_ARGS__ };						\
	static const struct narrows_controller *narrows_controller_entry_##called		\
		__attribute__((used, section("narrows_controllers"))) = &narrows_controller_##called

/* NARROWS_PARAMETER(type, name, value): a variable of this value, unless an experiment says another. A number or bool. */
#define NARROWS_PARAMETER(type, called, value)							\
	static type called = value;								\
	_Static_assert(NARROWS_KIND(called) != NARROWS_TEXT, "a parameter is a number or a bool, and not const");	\
	NARROWS_PARAMETER_ENTRY(called, &called, sizeof(called), NARROWS_KIND(called), NULL)

/* A random number, 0 or more and less than 1, from a stream of the connection's own that the run's seed decides. */
extern double narrows_random(void);

#endif
