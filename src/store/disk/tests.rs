use super::*;

fn store(name: &str) -> (Store, PathBuf) {
    let root = std::env::temp_dir().join(format!("tilework-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    (Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]), root)
}

#[test]
fn loads_files_saved_under_the_same_key() {
    let (store, root) = store("saved");
    assert_eq!(store.load("a", b"key"), None);
    store.save("a", b"key", b"payload");
    store.save("a", b"other", b"");
    assert_eq!(store.load("a", b"key").as_deref(), Some(&b"payload"[..]));
    assert_eq!(store.load("a", b"other").as_deref(), Some(&b""[..]));
    assert_eq!(store.load("b", b"key"), None);
    let foreign = Store::new(&CacheDir::At(root.clone()), "mesa", &["25"]);
    assert_eq!(foreign.load("a", b"key"), None);
    store.clear();
    assert_eq!(store.load("a", b"key"), None);
    assert_eq!((store.report().trouble, store.report().damaged), (None, 0));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn rejects_truncated_and_corrupted_files() {
    let whole = pack(b"key", b"payload");
    assert_eq!(unpack(&whole, b"key").map(|place| &whole[place]), Some(&b"payload"[..]));
    assert_eq!(unpack(&whole, b"kez"), None);
    for n in 0..whole.len() {
        assert_eq!(unpack(&whole[..n], b"key"), None, "{n} bytes");
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[n] ^= 1 << bit;
            assert_eq!(unpack(&flipped, b"key"), None, "bit {bit} of byte {n}");
        }
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert_eq!(unpack(&longer, b"key"), None);
}

#[test]
fn a_damaged_file_is_counted_and_replaced() {
    let (store, root) = store("damaged");
    store.save("a", b"key", b"payload");
    fs::write(store.path("a", b"key"), b"tilework and then something else").unwrap();
    assert_eq!((store.load("a", b"key"), store.report().damaged), (None, 1));
    store.save("a", b"key", b"again");
    assert_eq!(store.load("a", b"key").as_deref(), Some(&b"again"[..]));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn limits_the_bytes_and_keeps_foreign_files() {
    let (mut store, root) = store("bounded");
    store.max_bytes = 10_000;
    fs::create_dir_all(&store.home).unwrap();
    let foreign = store.home.join("notes.txt");
    fs::write(&foreign, [0; 50_000]).unwrap();
    for i in 0..100u32 {
        store.save("a", &i.to_le_bytes(), &[7; 500]);
    }
    let bytes: u64 = files(&root).iter().map(|f| f.bytes).sum();
    assert!(bytes <= 10_000 && bytes > 5_000, "{bytes} bytes");
    // The last file written remains, the first is gone.
    assert!(store.load("a", &99u32.to_le_bytes()).is_some() && store.load("a", &0u32.to_le_bytes()).is_none());
    assert!(foreign.exists());
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn reports_a_file_in_place_of_the_directory() {
    let (_, root) = store("file");
    fs::write(&root, b"").unwrap();
    let store = Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]);
    store.save("a", b"key", b"payload");
    assert_eq!(store.load("a", b"key"), None);
    let trouble = store.report().trouble.unwrap();
    assert!(trouble.contains(&*root.to_string_lossy()), "{trouble}");
    fs::remove_file(root).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn reports_a_directory_that_cannot_be_created() {
    let store = Store::new(&CacheDir::At("/proc/tilework".into()), "mesa", &["22.3"]);
    assert_eq!((store.load("a", b"key"), store.report().trouble), (None, None));
    store.save("a", b"key", b"payload");
    let trouble = store.report().trouble.unwrap();
    assert!(trouble.starts_with("writing /proc/tilework/mesa-"), "{trouble}");
    assert_eq!(store.report().written, 0);
}

/// Runs the ignored test in a process that cannot write a byte to a file.
#[test]
#[cfg(target_os = "linux")]
fn reports_a_full_disk() {
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact --ignored store::disk::tests::a_full_disk_here";
    let me = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh").args(["-c", limited]).arg(me).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by the test before it"]
fn a_full_disk_here() {
    let (store, root) = store("full");
    store.save("a", b"key", b"payload");
    assert_eq!(store.load("a", b"key"), None);
    assert!(store.report().trouble.is_some_and(|text| text.contains("too large")));
    assert_eq!(fs::read_dir(&store.home).unwrap().count(), 0, "a partial file is left");
    fs::remove_dir_all(root).unwrap();
}

/// Pipes without readers and writers in place of files.
#[test]
#[cfg(unix)]
fn reports_pipes_and_folders_in_place_of_files() {
    let (finished, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for pipe in [true, false] {
            let (store, root) = store(if pipe { "pipes" } else { "folders" });
            fs::create_dir_all(&store.home).unwrap();
            let paths = [store.path("a", b"key"), store.home.join(LOCK)];
            for path in &paths {
                if pipe {
                    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
                    assert!(made.success());
                } else {
                    fs::create_dir(path).unwrap();
                }
            }
            assert_eq!(store.load("a", b"key"), None);
            let trouble = store.report().trouble.unwrap();
            assert!(trouble.contains("not a regular file") && trouble.starts_with("reading"), "{trouble}");
            store.save("a", b"key", b"payload");
            store.update("a", b"other", |old| old.unwrap_or(b"new".to_vec()));
            assert_eq!(store.load("a", b"other").as_deref(), Some(&b"new"[..]), "updates work without the lock");
            assert!(paths.iter().all(|path| !fs::metadata(path).unwrap().is_file()), "not replaced");
            assert_eq!(store.report().written, 1);
            store.clear();
            assert!(paths.iter().all(|path| path.exists()), "not removed");
            fs::remove_dir_all(root).unwrap();
        }
        finished.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(60)).expect("blocked on a pipe, or the test failed");
}

#[test]
fn concurrent_writers_leave_complete_files() {
    let (store, root) = store("writers");
    std::thread::scope(|scope| {
        for t in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..200 {
                    store.save("a", b"key", &[t; 4096]);
                    let seen = store.load("a", b"key").unwrap();
                    assert!(seen.len() == 4096 && seen.iter().all(|b| *b == seen[0]));
                }
            });
        }
    });
    assert_eq!(store.report().damaged, 0);
    assert_eq!(files(&root).len(), 1);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn concurrent_updates_are_all_kept() {
    let (store, root) = store("changes");
    // One store for each, as in separate processes.
    let other = || Store::new(&CacheDir::At(root.clone()), "mesa", &["22.3"]);
    std::thread::scope(|scope| {
        for t in 0..4u8 {
            let store = other();
            scope.spawn(move || {
                for _ in 0..25 {
                    store.update("a", b"key", |old| {
                        let mut all = old.unwrap_or_default();
                        all.push(t);
                        all
                    });
                }
            });
        }
    });
    let mut all = store.load("a", b"key").unwrap();
    all.sort_unstable();
    assert_eq!(all, [[0; 25], [1; 25], [2; 25], [3; 25]].concat());
    // A lock that is never released blocks nobody.
    let held = store.lock_file().unwrap();
    other().update("a", b"key", |old| vec![old.unwrap().len() as u8]);
    assert_eq!(store.load("a", b"key").as_deref(), Some(&[100][..]));
    drop(held);
    assert_eq!(files(&root).len(), 1);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_disabled_cache_keeps_nothing() {
    let store = Store::new(&CacheDir::Off, "mesa", &[]);
    store.save("a", b"key", b"payload");
    assert_eq!((store.load("a", b"key"), store.report()), (None, CacheReport::default()));
}
