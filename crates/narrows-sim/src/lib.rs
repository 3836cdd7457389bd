//! The fast driver.
