//! What every registered controller owes the transport ([`contract`]), and its readers ([`pages`]).

mod contract;
mod pages;
