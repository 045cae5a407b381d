use super::*;
use std::process::{Command, Stdio};

/// A folder with the file `old`, removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilework-output-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("old"), b"old").unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn all(file: &mut WholeFile) -> io::Result<()> {
    file.write_all(b"all")
}

/// An ignored test in its own process, which `sh` starts after `limits`.
fn child(limits: &str, test: &str) -> Command {
    let mut shell = Command::new("sh");
    let line = format!("{limits} exec \"$0\" --exact --ignored --nocapture io::whole_file::tests::{test}");
    shell.arg("-c").arg(line).arg(std::env::current_exe().unwrap());
    shell
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let folder = Folder::new("fails");
    let old = folder.path("old");
    let failed = write_aside(&old, |file| {
        file.write_all(&[1; 4 << 20])?;
        Err(io::Error::other("no more"))
    });
    let failed = failed.unwrap_err();
    assert_eq!(failed.kind(), crate::ErrorKind::Io);
    assert!(failed.to_string().ends_with("old: cannot be written: no more"), "{failed}");
    let refused = write_aside(&old, |_| Err(io::Error::other(err!(Shape, "too long")))).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Shape);
    assert_eq!((fs::read(&old).unwrap(), folder.files()), (b"old".to_vec(), 1));
    assert!(write_aside(folder.path("new"), |_| Err(io::Error::other("no more"))).is_err());
    drop(WholeFile::create(folder.path("new")).unwrap());
    assert_eq!(folder.files(), 1);
}

#[test]
fn finish_all_puts_files_in_place_together() {
    let folder = Folder::new("together");
    let [mut a, b] = ["a", "b"].map(|name| WholeFile::create(folder.path(name)).unwrap());
    a.write_all(b"all").unwrap();
    assert_eq!(folder.files(), 1);
    WholeFile::finish_all([a, b]).unwrap();
    assert_eq!(fs::read(folder.path("a")).unwrap(), b"all");
    assert_eq!((fs::read(folder.path("b")).unwrap(), folder.files()), (vec![], 3));
}

#[test]
fn concurrent_writers_leave_complete_files() {
    let folder = Folder::new("threads");
    let path = folder.path("old");
    write_aside(&path, |file| file.write_all(&[0; 100_000])).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    write_aside(path, |file| {
                        file.write_all(&[t; 50_000])?;
                        file.flush()?;
                        file.write_all(&[t; 50_000])
                    })
                    .unwrap();
                    let seen = fs::read(path).unwrap();
                    assert!(seen.len() == 100_000 && seen.iter().all(|b| *b == seen[0]));
                }
            });
        }
    });
    assert_eq!(folder.files(), 1);
}

#[test]
fn check_outputs_rejects_unwritable_and_repeated_paths() {
    let folder = Folder::new("check");
    let refused = |path: PathBuf, why: &str| {
        let checked = check_outputs([&path]).unwrap_err();
        assert!(checked.to_string().contains(why), "{checked}");
        assert_eq!(write_aside(&path, all).unwrap_err().to_string(), checked.to_string());
    };
    refused(folder.0.clone(), "it is a directory; name a file in it");
    refused(folder.path("no/a"), "there is no folder");
    refused(folder.path("old/a"), "old/a: cannot be written: ");
    refused(PathBuf::new(), "it is not a file name");
    check_outputs([folder.path("a"), folder.path("b"), folder.path("old")]).unwrap();
    for other in ["./a", "../a", "a"] {
        let other = folder.0.join(other.replace("..", &format!("../{}", folder.0.file_name().unwrap().display())));
        let same = check_outputs([folder.path("a"), folder.path("b"), other]).unwrap_err();
        assert_eq!(same.kind(), crate::ErrorKind::InvalidArgument);
        assert!(same.to_string().contains("/a are the same file; use a different file for each output"), "{same}");
    }
    assert_eq!(folder.files(), 1);
    // The longest possible name.
    write_aside(folder.path(&"n".repeat(255)), all).unwrap();
}

#[cfg(unix)]
#[test]
fn links_stay_and_their_targets_are_written() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("links");
    for (target, link) in [("old", "link"), ("new", "first"), ("first", "second"), ("no/a", "astray")] {
        symlink(target, folder.path(link)).unwrap();
    }
    for (link, target) in [("link", "old"), ("second", "new")] {
        write_aside(folder.path(link), all).unwrap();
        assert!(fs::symlink_metadata(folder.path(link)).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path(target)).unwrap(), b"all");
    }
    assert!(fs::symlink_metadata(folder.path("first")).unwrap().is_symlink());
    assert_eq!(folder.files(), 6);
    let same = check_outputs([folder.path("new"), folder.path("second")]).unwrap_err();
    assert_eq!(same.kind(), crate::ErrorKind::InvalidArgument);
    assert!(write_aside(folder.path("astray"), all).unwrap_err().to_string().contains("there is no folder"));
    symlink("circle", folder.path("circle")).unwrap();
    assert!(write_aside(folder.path("circle"), all).is_err());
}

#[cfg(unix)]
#[test]
fn permissions_of_an_existing_file_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o7777;
    let usual = mode("old");
    write_aside(folder.path("new"), all).unwrap();
    assert_eq!(mode("new"), usual);
    for (set, kept) in [(0o600, 0o600), (0o640, 0o640), (0o4755, 0o755)] {
        fs::set_permissions(folder.path("old"), fs::Permissions::from_mode(set)).unwrap();
        write_aside(folder.path("old"), all).unwrap();
        assert_eq!(mode("old"), kept);
    }
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_sockets_are_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new("pipes");
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // There is no reader yet, and a check does not wait.
    check_outputs([&fifo, &fifo]).unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    write_aside(&fifo, all).unwrap();
    assert_eq!(reader.join().unwrap(), b"all");
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());

    let socket = folder.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(write_aside(&socket, all).unwrap_err().to_string().contains("it is a socket"));
    assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());

    write_aside("/dev/null", all).unwrap();
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(folder.files(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_old_file() {
    use std::os::unix::fs::FileTypeExt;
    let full = write_aside("/dev/full", all).unwrap_err();
    assert!(full.to_string().contains("No space left"), "{full}");
    assert!(fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device());
    // Buffered bytes, whose write fails in `finish`, and more bytes than the buffer holds.
    for bytes in ["20000", "4000000"] {
        let folder = Folder::new(&format!("full-{bytes}"));
        let mut child = child("trap '' XFSZ; ulimit -f 16;", "a_full_disk_here");
        let output = child.env("PLACE", folder.path("old")).env("BYTES", bytes).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        assert_eq!((fs::read(folder.path("old")).unwrap(), folder.files()), (b"old".to_vec(), 1));
    }
}

#[test]
#[ignore = "run by the test before it"]
fn a_full_disk_here() {
    let [place, bytes] = ["PLACE", "BYTES"].map(|name| std::env::var(name).unwrap());
    let full = write_aside(place, |file| file.write_all(&vec![1; bytes.parse().unwrap()])).unwrap_err();
    assert!(full.to_string().contains("too large"), "{full}");
}

/// Files without a name exist on Linux only.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_process_leaves_nothing() {
    let folder = Folder::new("killed");
    let mut child = child("", "a_write_without_end");
    let mut child = child.env("PLACE", folder.path("old")).stdout(Stdio::piped()).spawn().unwrap();
    let out = io::BufReader::new(child.stdout.take().unwrap());
    assert!(io::BufRead::lines(out).any(|line| line.unwrap().contains("written")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((fs::read(folder.path("old")).unwrap(), folder.files()), (b"old".to_vec(), 1));
}

#[test]
#[ignore = "run by the test before it"]
fn a_write_without_end() {
    let place = std::env::var("PLACE").unwrap();
    let _ = write_aside(place, |file| {
        file.write_all(&[1; 4 << 20])?;
        println!("\nwritten");
        io::stdout().flush()?;
        std::thread::sleep(std::time::Duration::from_secs(600));
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn standard_output_in_a_file_is_not_replaced() {
    let folder = Folder::new("standard");
    let log = File::create(folder.path("log")).unwrap();
    // As `/dev/stdout`, which a machine may lack.
    std::os::unix::fs::symlink("/dev/fd/1", folder.path("link")).unwrap();
    let mut child = child("", "a_write_to_standard_output");
    let child = child.env("PLACE", folder.path("link")).stdout(Stdio::from(log));
    assert!(child.status().unwrap().success());
    let text = fs::read_to_string(folder.path("log")).unwrap();
    let places = ["before\n", "all", "after\n", "1 passed"].map(|part| text.find(part));
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
}

#[test]
#[ignore = "run by the test before it"]
fn a_write_to_standard_output() {
    println!("before");
    write_aside(std::env::var("PLACE").unwrap(), all).unwrap();
    println!("after");
}
