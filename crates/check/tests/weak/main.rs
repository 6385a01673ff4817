//! The weak levels on histories small enough to judge by eye.

mod lattice;
mod papers;
mod patterns;
mod semantics;
mod support;
