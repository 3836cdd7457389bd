//! Differences between plans.
