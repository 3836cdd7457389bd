//! A network of anything.
