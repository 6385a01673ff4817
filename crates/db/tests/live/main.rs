//! Adapters against real servers. A server that is not installed is a failure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod applications;
mod certificates;
mod contract;
mod encryption;
mod etcd;
mod faults;
mod mariadb;
mod postgres;
mod promises;
mod redis;
mod rows;
mod site;
mod standby;
mod statements;
mod strangers;
mod trial;
