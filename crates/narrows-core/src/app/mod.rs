//! What the application on one host does next. Applications see their own host only: what they know of the rest of the
//! world came in messages. So one run can be split over several threads, and a live agent can run them unchanged.

pub mod connection_pool;
pub mod scatter_gather;
