//! `run --host`: several processes that stress one database, and `check --join` over what they recorded.

use std::process::{Output, Stdio};

use crate::sandbox::Sandbox;

/// Runs a host each, all at once.
fn run_hosts(sandbox: &Sandbox, of: u32, more: &[&str]) -> Vec<Output> {
    let start = |number: u32| {
        let (host, out) = (format!("{number}/{of}"), format!("host{number}"));
        let flags = ["run", "--db", "sqlite:shared.db", "--seed", "7", "--host", &host];
        let flags = [&flags[..], &["--out", &out], more].concat();
        let mut command = sandbox.command(&flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // The first comes last: the others wait for the tables that it makes.
    let hosts: Vec<_> = (1..=of).rev().map(start).collect();
    hosts.into_iter().rev().map(|host| host.wait_with_output().unwrap()).collect()
}

#[test]
fn what_several_hosts_recorded_is_one_history() {
    let sandbox = Sandbox::new();
    for output in run_hosts(&sandbox, 3, &["--sessions", "2", "--txns", "150"]) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    let joined = ["check", "--level", "sser", "--json", "--join", "host1", "host2", "host3"];
    let done = sandbox.run(&joined);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    let verdict: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(verdict["size"]["committed"], 450);
    // Hosts read what others wrote: one of them alone shows nothing.
    for host in ["host1", "host2", "host3"] {
        let alone = sandbox.run(&["check", "--level", "rc", host]);
        let said = String::from_utf8_lossy(&alone.stderr).into_owned();
        assert_eq!(alone.status.code(), Some(2), "{said}");
        assert!(said.contains("isolario check --join host1 host2 host3\n"), "{said}");
    }
    assert_eq!(sandbox.code(&["check", "--join", "host1", "host3"]), 2);
    // Tables that an earlier run left are not taken for this run's.
    for number in 1..=3 {
        std::fs::remove_dir_all(sandbox.path(&format!("host{number}"))).unwrap();
    }
    for output in
        run_hosts(&sandbox, 3, &["--workload", "append", "--sessions", "1", "--txns", "50"])
    {
        assert_eq!(output.status.code(), Some(0));
    }
    assert_eq!(sandbox.code(&["check", "--level", "sser", "--join", "host1", "host2", "host3"]), 0);
}

#[test]
fn hosts_are_numbered_and_share_a_seed() {
    let sandbox = Sandbox::new();
    for (flags, said) in [
        (
            &["run", "--host", "4/3", "--seed", "1"][..],
            "the number of this host and of all hosts, such as 2/3",
        ),
        (&["run", "--host", "1/2"][..], "--seed"),
        (
            &["run", "--host", "1/2", "--seed", "1", "--whitebox"][..],
            "--whitebox has no effect with --host",
        ),
    ] {
        let output = sandbox.run(flags);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
