//! What a directory has after its power failed, by the calls that databases make.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use isolario_disk::Disk;
use tempfile::TempDir;

/// A disk over a new directory, which outlives it.
fn new() -> (Disk, TempDir) {
    let directory = TempDir::new().unwrap();
    let disk = Disk::over(directory.path()).expect("this test needs /dev/fuse, and to be root");
    (disk, directory)
}

fn has(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn what_was_synced_is_kept_and_the_rest_is_forgotten() {
    let (mut disk, directory) = new();
    let path = directory.path().join("log");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_data().unwrap();
    file.write_all(b" and not").unwrap();
    file.write_all_at(b"S", 0).unwrap();
    assert_eq!(has(&path), b"Synced and not", "until the power fails, all is there");
    drop(file);
    disk.fail().unwrap();
    assert_eq!(has(&path), b"synced");
}

#[test]
fn a_shortened_file_is_long_again() {
    let (mut disk, directory) = new();
    let path = directory.path().join("table");
    let long: Vec<u8> = (0..20_000_u32).map(|byte| byte as u8).collect();
    fs::write(&path, &long).unwrap();
    disk.sync();
    let file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all_at(b"new", 9000).unwrap();
    drop(file);
    assert_eq!(has(&path).len(), 9003);
    disk.fail().unwrap();
    assert!(has(&path) == long);
}

#[test]
fn a_file_that_syncs_every_write_loses_nothing() {
    let (mut disk, directory) = new();
    let path = directory.path().join("wal");
    let data_sync = rustix::fs::OFlags::DSYNC.bits() as i32;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).custom_flags(data_sync).open(&path).unwrap();
    file.write_all(b"kept").unwrap();
    drop(file);
    disk.fail().unwrap();
    assert_eq!(has(&path), b"kept");
}

/// As a file system with a journal has it. A file that was renamed before it was synced is empty.
#[test]
fn names_are_kept() {
    let (mut disk, directory) = new();
    let place = directory.path();
    fs::create_dir(place.join("old")).unwrap();
    fs::write(place.join("old/a"), b"never synced").unwrap();
    fs::write(place.join("gone"), b"x").unwrap();
    fs::hard_link(place.join("old/a"), place.join("second")).unwrap();
    std::os::unix::fs::symlink("second", place.join("link")).unwrap();
    fs::rename(place.join("old"), place.join("new")).unwrap();
    fs::remove_file(place.join("gone")).unwrap();
    fs::set_permissions(place.join("second"), fs::Permissions::from_mode(0o600)).unwrap();
    disk.fail().unwrap();
    let mut names: Vec<_> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["link", "new", "second"]);
    assert_eq!(has(&place.join("new/a")), b"");
    assert_eq!(has(&place.join("link")), b"");
    let metadata = fs::metadata(place.join("second")).unwrap();
    assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o600, 2));
}

#[test]
fn power_may_fail_again_and_again() {
    let (mut disk, directory) = new();
    let path = directory.path().join("counter");
    for round in 0..5_u8 {
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        file.write_all(&[round]).unwrap();
        file.sync_all().unwrap();
        file.write_all(b"lost").unwrap();
        drop(file);
        disk.fail().unwrap();
    }
    assert_eq!(has(&path), [0, 1, 2, 3, 4]);
}

/// A file that is open and has no name any more is still a file.
#[test]
fn a_removed_file_is_there_for_who_has_it() {
    let (disk, directory) = new();
    let path = directory.path().join("temporary");
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(b"still here").unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    drop((file, disk));
}

#[test]
fn without_its_layer_the_directory_has_all_that_was_written() {
    let (disk, directory) = new();
    let path = directory.path().join("file");
    fs::write(&path, b"written").unwrap();
    drop(disk);
    assert_eq!(has(&path), b"written");
}
