//! What a command writes never destroys anything: inputs, links, pipes, devices, other outputs.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::sandbox::{FINE, Sandbox};

const CHECK_OUTPUTS: [&str; 5] = ["--report", "--dot", "--svg", "--junit", "--proof"];

/// A violation that takes search, so that every output has something to hold.
const SKEW: &str = "\
initial 0
session alice
  T1: r x 0, w y 1
session bob
  T2: r y 0, w x 1
";
const CHECK: [&str; 4] = ["check", "--level", "ser", "skew.txt"];

fn with_skew() -> Sandbox {
    Sandbox::new().file("skew.txt", SKEW)
}

#[cfg(target_os = "linux")]
fn with_full_disk() -> Sandbox {
    let sandbox = with_skew();
    symlink("/dev/full", sandbox.path("full")).unwrap();
    sandbox
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs a command with somebody at the other end of a pipe; gives back what came out of it.
fn read_pipe(sandbox: &Sandbox, args: &[&str], pipe: &str) -> (Output, String) {
    let path = sandbox.path(pipe);
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        File::open(path).unwrap().read_to_string(&mut text).unwrap();
        text
    });
    let output = sandbox.run(args);
    (output, reader.join().unwrap())
}

#[test]
fn a_pipe_is_written_through_and_stays_a_pipe() {
    for flag in CHECK_OUTPUTS {
        let sandbox = with_skew();
        make_pipe(&sandbox.path("pipe"));
        let (output, text) = read_pipe(&sandbox, &[&CHECK[..], &[flag, "pipe"]].concat(), "pipe");
        assert_eq!(output.status.code(), Some(1), "{flag}: {}", stderr(&output));
        assert!(!text.is_empty(), "{flag}");
        let pipe = sandbox.path("pipe").symlink_metadata().unwrap();
        assert!(pipe.file_type().is_fifo(), "{flag}");
    }
}

#[test]
fn histories_and_orders_go_through_pipes_as_well() {
    let sandbox = Sandbox::new();
    make_pipe(&sandbox.path("pipe"));
    let convert = ["convert", "--to", "jsonl", "fine.txt", "pipe"];
    let (_, converted) = read_pipe(&sandbox, &convert, "pipe");
    assert!(converted.contains("\"session\":\"alice\""), "{converted}");
    let small = ["gen", "history", "--txns", "50", "--keys", "3"];
    let generate = [&small[..], &["--format", "text", "-o", "pipe"]].concat();
    let (_, generated) = read_pipe(&sandbox, &generate, "pipe");
    assert!(generated.contains("session 0"), "{generated}");
    let order = [&small[..], &["-o", "h.txt", "--version-order-out", "pipe"]].concat();
    let (_, order) = read_pipe(&sandbox, &order, "pipe");
    assert!(order.contains("\"values\""), "{order}");
    assert!(sandbox.path("pipe").symlink_metadata().unwrap().file_type().is_fifo());
}

/// Only the superuser can make a device; everyone else cannot replace one either.
#[test]
fn a_device_stays_a_device() {
    let sandbox = with_skew();
    let null = sandbox.path("null");
    let made =
        Command::new("mknod").arg(&null).args(["c", "1", "3"]).stderr(Stdio::null()).status();
    if !made.unwrap().success() || fs::write(&null, "nothing").is_err() {
        return;
    }
    let mut commands: Vec<Vec<&str>> =
        CHECK_OUTPUTS.iter().map(|flag| [&CHECK[..], &[*flag, "null"]].concat()).collect();
    commands.push(vec!["convert", "--force", "--to", "text", "fine.txt", "null"]);
    commands.push(vec!["gen", "history", "--force", "--format", "text", "-o", "null"]);
    commands.push(vec!["gen", "history", "-o", "h.iso", "--version-order-out", "null"]);
    for args in commands {
        let output = sandbox.run(&args);
        assert_ne!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(null.symlink_metadata().unwrap().file_type().is_char_device(), "{args:?}");
    }
}

#[test]
fn links_are_followed_and_stay_links() {
    let sandbox = with_skew().file("target", "old");
    fs::create_dir(sandbox.path("dir")).unwrap();
    symlink("target", sandbox.path("link")).unwrap();
    symlink("dir/new", sandbox.path("dangling")).unwrap();
    for flag in CHECK_OUTPUTS {
        for (link, target) in [("link", "target"), ("dangling", "dir/new")] {
            let _ = fs::write(sandbox.path("target"), "old");
            let _ = fs::remove_file(sandbox.path("dir/new"));
            let args = [&CHECK[..], &[flag, link]].concat();
            assert_eq!(sandbox.code(&args), 1, "{flag}");
            assert!(sandbox.path(link).is_symlink(), "{flag}");
            assert!(sandbox.read(target).len() > 10, "{flag}");
        }
    }
    let before = sandbox.names();
    assert_eq!(sandbox.code(&["convert", "--to", "text", "fine.txt", "link"]), 2, "it exists");
    let convert = ["convert", "--force", "--to", "text", "fine.txt", "link"];
    assert_eq!(sandbox.code(&convert), 0);
    assert!(sandbox.path("link").is_symlink() && sandbox.read("target").contains("alice"));
    assert_eq!(sandbox.names(), before);
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    let sandbox = Sandbox::new().file("out", "old");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(sandbox.path("out"), private).unwrap();
    for args in [
        &["check", "--report", "out", "fine.txt"][..],
        &["convert", "--force", "--to", "text", "fine.txt", "out"],
    ] {
        assert_eq!(sandbox.code(args), 0);
        let mode = sandbox.path("out").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{args:?}");
    }
}

/// As where a container has only that file writable. Nothing stays beside it.
#[test]
fn a_file_that_cannot_be_replaced_is_written_through() {
    let sandbox = Sandbox::new();
    let (dir, file) = (sandbox.path("dir"), sandbox.path("dir/out"));
    let command = sandbox.path("isolario");
    fs::create_dir(&dir).unwrap();
    fs::write(&file, "old ".repeat(10_000)).unwrap();
    // By another process: what this one has open for writing, a test that starts a program at the same
    // time hands on to it, and a program that somebody has open for writing cannot be started.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_isolario")).arg(&command).status();
    assert!(copied.unwrap().success());
    for (path, mode) in [(&file, 0o666), (&dir, 0o555), (&sandbox.path(""), 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let inode = file.metadata().unwrap().ino();
    for args in [
        &["check", "-q", "--report", "dir/out", "fine.txt"][..],
        &["convert", "--force", "--to", "text", "fine.txt", "dir/out"],
    ] {
        let mut command = Command::new(&command);
        command.args(args).current_dir(sandbox.path(""));
        // Permissions do not bind root.
        if dir.metadata().unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(file.metadata().unwrap().ino(), inode);
        assert!(!sandbox.read("dir/out").contains("old old"));
    }
    assert!(sandbox.read("dir/out").contains("session alice"));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

/// Standard output by another name: what stands there comes after what is printed, in a file too.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_can_be_named() {
    let sandbox = Sandbox::new();
    symlink("/proc/self/fd/1", sandbox.path("stdout")).unwrap();
    let args = ["check", "--level", "rc", "--junit", "stdout", "fine.txt", "cycle.txt"];
    let piped = stdout(&sandbox.run(&args));
    assert_eq!(piped.matches("<testsuites").count(), 1, "{piped}");
    assert!(piped.find("fine.txt: 2 sessions") < piped.find("<testsuites"), "{piped}");
    assert!(piped.ends_with("</testsuites>\n"), "{piped}");
    let file = File::create(sandbox.path("printed")).unwrap();
    sandbox.command(&args).stdout(file).stderr(Stdio::null()).status().unwrap();
    let printed = sandbox.read("printed");
    let times = |text: &str| text.lines().filter(|line| !line.contains("time=")).count();
    assert_eq!(times(&printed), times(&piped), "{printed}");
    assert!(sandbox.path("stdout").is_symlink());
}

#[test]
fn process_substitution_works() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_isolario");
    let script = format!("{program} check -q --proof >(cat > copy) fine.txt > /dev/null; wait");
    let mut shell = Command::new("bash");
    let status = shell.args(["-c", &script]).current_dir(sandbox.path("")).status().unwrap();
    assert!(status.success());
    // The shell does not wait for what it put into the pipe.
    for _ in 0..500 {
        if fs::read_to_string(sandbox.path("copy")).is_ok_and(|text| text.ends_with('\n')) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(sandbox.code(&["verify", "fine.txt", "copy"]), 0);
}

#[test]
fn an_output_that_is_an_input_is_refused_by_any_name() {
    let sandbox = Sandbox::new().file("h.txt", FINE).file("order", "");
    fs::hard_link(sandbox.path("h.txt"), sandbox.path("hard")).unwrap();
    symlink("h.txt", sandbox.path("soft")).unwrap();
    for flag in CHECK_OUTPUTS {
        for name in ["h.txt", "./h.txt", "hard", "soft"] {
            let output = sandbox.run(&["check", flag, name, "h.txt"]);
            assert_eq!(output.status.code(), Some(2), "{flag} {name}");
            let expected =
                format!("error: {flag} {name} is the same file as h.txt, which is an input\n");
            assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
            assert_eq!(sandbox.read("h.txt"), FINE);
        }
    }
    let order = ["check", "--version-order", "order", "--proof", "order", "h.txt"];
    assert_eq!(sandbox.code(&order), 2);
    for name in ["h.txt", "./h.txt", "hard", "soft"] {
        let args = ["convert", "--force", "--to", "jsonl", "h.txt", name];
        assert_eq!(sandbox.code(&args), 2, "{name}");
        assert_eq!(sandbox.read("h.txt"), FINE);
    }
    let mut piped = sandbox.command(&["check", "--report", "h.txt", "-"]);
    let output = piped.stdin(File::open(sandbox.path("h.txt")).unwrap()).output().unwrap();
    assert_eq!((output.status.code(), sandbox.read("h.txt").as_str()), (Some(2), FINE));
}

#[test]
fn an_output_among_the_files_of_a_history_is_refused() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.code(&["gen", "history", "--format", "cobra", "-o", "logs"]), 0);
    let files = fs::read_dir(sandbox.path("logs")).unwrap().count();
    let output = sandbox.run(&["check", "--report", "logs/report.html", "logs"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is in logs"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(sandbox.path("logs")).unwrap().count(), files);
}

#[test]
fn two_outputs_to_one_place_are_refused() {
    let sandbox = Sandbox::new().file("there", "precious");
    symlink("there", sandbox.path("link")).unwrap();
    make_pipe(&sandbox.path("pipe"));
    let before = sandbox.names();
    for (one, other) in [("out", "./out"), ("there", "link"), ("pipe", "pipe")] {
        let output = sandbox.run(&["check", "--report", one, "--svg", other, "fine.txt"]);
        assert_eq!(output.status.code(), Some(2), "{one} {other}");
        assert!(stderr(&output).contains("go to the same file"), "{}", stderr(&output));
    }
    let generate = ["gen", "history", "-o", "h.iso", "--version-order-out", "h.iso"];
    assert_eq!(sandbox.code(&generate), 2);
    let printed = File::options().append(true).open(sandbox.path("there")).unwrap();
    let mut command = sandbox.command(&["check", "--report", "there", "fine.txt"]);
    let output = command.stdout(printed).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard output and --report there"), "{}", stderr(&output));
    assert_eq!(sandbox.read("there"), "precious");
    assert_eq!(sandbox.names(), before);
    let devices = ["check", "--report", "/dev/null", "--svg", "/dev/null", "fine.txt"];
    assert_eq!(sandbox.code(&devices), 0, "a device takes whatever comes");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_what_does_not_fit_and_nothing_else() {
    for flag in CHECK_OUTPUTS {
        let sandbox = with_full_disk();
        let mut args = [&CHECK[..], &[flag, "full"]].concat();
        for other in CHECK_OUTPUTS.iter().filter(|other| **other != flag) {
            args.extend([other, &other[2..]]);
        }
        let output = sandbox.run(&args);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stdout(&output).contains("serializable  violated"), "{flag}");
        assert!(stderr(&output).contains("error: cannot write full: "), "{}", stderr(&output));
        for other in CHECK_OUTPUTS.iter().filter(|other| **other != flag) {
            assert!(!sandbox.read(&other[2..]).is_empty(), "{flag} {other}");
            assert!(stderr(&output).contains(&format!(" to {}\n", &other[2..])), "{other}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_on_a_full_disk_costs_no_files() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["check", "--junit", "out.xml", "cycle.txt", "fine.txt"]);
    let output = command.stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot write to standard output"), "{}", stderr(&output));
    assert_eq!(sandbox.read("out.xml").matches("<testsuite ").count(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn an_order_that_cannot_be_written_does_not_cost_the_history() {
    for flag in ["--version-order-out", "--serialization-order-out"] {
        let sandbox = with_full_disk();
        let output = sandbox.run(&["gen", "history", "-o", "h.iso", flag, "full"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains("error: cannot write full: "), "{}", stderr(&output));
        assert_eq!(sandbox.code(&["check", "-q", "h.iso"]), 0, "{flag}");
    }
}

#[test]
fn whoever_closes_the_pipe_ends_the_work() {
    let sandbox = Sandbox::new();
    for format in ["jsonl", "text", "isolario"] {
        let args = ["gen", "history", "--txns", "1000000000000", "--format", format];
        let mut child =
            sandbox.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{format}");
    }
}
