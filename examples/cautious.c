#include <narrows.h>

NARROWS_PARAMETER(double, delay, 0.005);	/* seconds */

struct cautious {
	uint64_t fresh_from;	/* RTTs count only of data sent after the last reduction */
};

static void cut(struct narrows_sender *s, double window, const struct narrows_path *path)
{
	struct cautious *own = s->state;

	s->window = s->threshold = fmax(window, 2);
	own->fresh_from = path->nxt;
}

static void on_ack(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path)
{
	struct cautious *own = s->state;

	if (!isnan(ack->rtt) && ack->rtt > path->min_rtt + delay) {
		if (ack->phase == NARROWS_OPEN && ack->rtt_seq >= own->fresh_from)
			cut(s, s->window * 7 / 8, path);
	} else if (ack->may_grow && ack->limited_by == NARROWS_WINDOW) {
		if (s->window < s->threshold)
			s->window = fmin(s->window + ack->acked, s->threshold);
		else
			s->window += ack->acked / s->window;
	}
}

static void on_congestion(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path)
{
	cut(s, s->window / 2, path);
}

NARROWS_CONTROLLER(cautious, .state_size = sizeof(struct cautious), .on_ack = on_ack, .on_congestion = on_congestion);
