//! `scripts/servers`: database servers for a developer.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use isolario_servers::{DevServers, Durability, Kind};

const USAGE: &str = "\
usage: scripts/servers start|stop|status [--durable] [NAME...]

  NAME       postgres, postgres-standby, mariadb, galera, etcd, etcd3, redis (default: all)
  --durable  what is committed survives a crash; slower

The servers run on free loopback ports until they are stopped; stopping removes their data.
";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "scripts/servers: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<ExitCode, Failure> {
    let (flags, mut words): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.starts_with('-'));
    let durability = match flags.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Durability::Fast,
        ["--durable"] => Durability::Durable,
        _ => return usage(),
    };
    if words.is_empty() {
        return usage();
    }
    let command = words.remove(0);
    let kinds = match words.is_empty() {
        true => Kind::ALL.to_vec(),
        false => words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?,
    };
    let directory = env::var_os("ISOLARIO_SERVERS_DIR").unwrap_or_else(|| "target/servers".into());
    let servers = DevServers::at(directory);
    for kind in kinds {
        match command.as_str() {
            "start" => say(kind, &servers.start(kind, durability)?.join("  "))?,
            "stop" if servers.stop(kind)? => say(kind, "stopped")?,
            "stop" => say(kind, "was not running")?,
            "status" => match servers.urls(kind)? {
                Some(urls) => say(kind, &urls.join("  "))?,
                None => say(kind, "not running")?,
            },
            _ => return usage(),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(kind: Kind, what: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{:<10}{what}", kind.name())
}

fn usage() -> Result<ExitCode, Failure> {
    io::stderr().write_all(USAGE.as_bytes())?;
    Ok(ExitCode::from(2))
}
