//! The `rows` example: its index against the host's, and its command line.

use super::program::{Example, Folder, path};
use crate::support::coverage::turn;
use crate::support::{Random, devices, gpu};
use parts::cli;
use parts::index::{Index, Indexer};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../examples/rows"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    pub(super) mod index;
    mod saved;
}

/// The starts of lines, computed sequentially.
fn starts(text: &[u8]) -> Vec<u64> {
    let begins = |i: &usize| *i == 0 || text[i - 1] == b'\n';
    (0..text.len()).filter(begins).map(|i| i as u64).collect()
}

/// Bytes of which one in `one_in` is a newline, and many differ from it by one bit.
fn text(random: &mut Random, n: usize, one_in: u64) -> Vec<u8> {
    let near = [0x8a, 0x0b, 0x00, 0x0d, 0xff, 0x0a ^ 0x80, b'x', 0x09];
    let byte = |r: u64| if r.is_multiple_of(one_in) { b'\n' } else { near[(r >> 32) as usize % near.len()] };
    (0..n).map(|_| byte(random.next())).collect()
}

#[test]
fn rows_match_the_host_when_chunks_cut_lines() {
    let mut random = Random::new(1);
    for device in devices() {
        let chunks: &[usize] = if device.main { &[8, 64, 4104, 70_000] } else { &[4104] };
        for &chunk in chunks {
            let indexer = Indexer::new(&device.gpu, chunk as u64).unwrap();
            let most = chunk * if chunk < 1000 { 5 } else { 3 } + 5;
            let mut texts = vec![b"".to_vec(), b"\n".to_vec(), b"a".to_vec(), b"a\n".to_vec()];
            texts.extend([chunk - 1, chunk, chunk + 1, most].map(|n| vec![b'\n'; n]));
            texts.extend([chunk, 2 * chunk, most].map(|n| vec![b'y'; n]));
            texts.extend([1, 3, 40].map(|one_in| text(&mut random, most, one_in)));
            for text in texts {
                let mut done = 0;
                let index = indexer.index(&text[..], |bytes| done += bytes).unwrap();
                let label = format!("{}: {} bytes in chunks of {chunk}", device.label, text.len());
                assert_eq!(index, Index { starts: starts(&text), bytes: text.len() as u64 }, "{label}");
                assert_eq!(index.check(&text[..]).unwrap(), Ok(()), "{label}");
                assert_eq!((done, index.memory()), (text.len() as u64, 8 * index.lines()), "{label}");
            }
        }
    }
}

#[test]
fn rows_check_finds_errors() {
    let index = |starts: &[u64], bytes| Index { starts: starts.to_vec(), bytes };
    let text = &b"ab\n\nc"[..];
    let check = |index: &Index| index.check(text).unwrap();
    assert_eq!(check(&index(&[0, 3, 4], 5)), Ok(()));
    assert!(check(&index(&[0, 4], 5)).unwrap_err().contains("line 2 begins at byte 3"));
    assert!(check(&index(&[0, 3], 5)).unwrap_err().contains("nowhere"));
    assert!(check(&index(&[0, 3, 4, 5], 5)).unwrap_err().contains("3 lines in 5 bytes"));
    assert!(check(&index(&[0, 3, 4], 6)).is_err());
}

fn run(file: &Path, args: &[&str]) -> (u8, String, String) {
    Example("rows", cli::run).run(&[&[path(file)], args].concat())
}

#[test]
fn rows_prints_the_lines_asked_for() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("lines");
    // The character and the end of the line cross the end of a chunk.
    let long = format!("{}\u{20ac}{}\r\nlast\r", "x".repeat(65_535), "y".repeat(65_536 + 65_533));
    let file = folder.file("a.txt", format!("one\r\n\ntwo \u{e4}\n{long}").as_bytes());
    let lines = ["one", "", "two \u{e4}", long.split("\r\n").next().unwrap(), "last\r"];
    for (i, line) in lines.iter().enumerate() {
        let (code, out, err) = run(&file, &["--line", &(i + 1).to_string()]);
        assert!(code == 0 && out == format!("{line}\n"), "line {}: {err}", i + 1);
        assert!(err.contains("5 lines"), "{err}");
    }
    assert_eq!(run(&file, &["--range", "2..3", "--line", "1", "-n"]).1, "2: \n3: two \u{e4}\n1: one\n");
    assert_eq!(run(&file, &["--range", "5..", "--range", "..2"]).1, "last\r\none\n\n");
    let (code, out, _) = run(&file, &["--check"]);
    assert!(code == 0 && out.contains("a.txt: 5 lines") && out.contains("same lines as on the processor"));

    let binary = folder.file("b", b"\xff\xe2\x82\n\x00\n");
    assert_eq!(run(&binary, &["--range", "1.."]).1, "\u{fffd}\u{fffd}\n\0\n");
    let other = binary.to_str().unwrap();
    assert!(run(&file, &[other, "--line", "1"]).1.contains(&format!("\n==> {other} <==\n\u{fffd}")));
    let empty = folder.file("empty", b"");
    assert!(run(&empty, &[]).1.contains("empty: 0 lines"));
}

#[test]
fn rows_rejects_bad_input() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("bad");
    let file = folder.file("a.txt", b"one\ntwo\n");
    let cases: &[(&[&str], &str)] = &[
        (&["--line", "3"], "a.txt: no line 3; it has 2 lines"),
        (&["--range", "1..9"], "no line 9"),
        (&["--range", "4.."], "no line 4"),
        (&["--line", "0"], "1 or more"),
        (&["--line", "x"], "--line x"),
        (&["--range", "2..1"], "ends before it begins"),
        (&["--range", ".."], "must be A..B"),
        (&["--chunk", "0"], "--chunk 0"),
        (&["--index", "a", "--index", "b"], "--index is given twice"),
        (&["--frob"], "--frob"),
        (&["no such file"], "no such file"),
        (&["."], "is a directory"),
        (&["a.txt", "--index", "i"], "name only one file"),
    ];
    for (args, text) in cases {
        let (code, out, err) = run(&file, args);
        let last = err.lines().last().unwrap();
        assert!(code == 2 && out.is_empty() && last.contains(text), "{args:?}: {code} {out} {err}");
    }
    assert!(run(&file, &["--help"]).1.starts_with("usage: rows"));

    // Control characters in a file name do not reach the terminal.
    let red = folder.file("\u{1b}[31mred\r", b"one\n");
    let (_, out, _) = run(&red, &[]);
    let (_, heads, _) = run(&red, &[file.to_str().unwrap(), "--line", "1"]);
    let (_, _, err) = run(&red, &["--line", "5"]);
    for text in [out, heads, err] {
        assert!(text.contains(r"\u{1b}[31mred\r") && !text.contains(['\u{1b}', '\r']), "{text:?}");
    }
}

#[test]
fn rows_keeps_its_index() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("index");
    let file = folder.file("a.txt", b"one\ntwo\n");
    let index = folder.0.join("a.rows");
    let args = ["--index", index.to_str().unwrap(), "--line", "2", "--check"];
    let (code, out, err) = run(&file, &args);
    assert!(code == 0 && out == "two\n" && err.contains("written to"), "{err}");
    let (code, out, err) = run(&file, &args);
    assert!(code == 0 && out == "two\n" && err.contains("read from"), "{err}");
    assert!(err.contains("same lines as on the processor"), "{err}");

    // A changed file gets a new index.
    folder.file("a.txt", b"one\n2\nthree");
    let (code, out, err) = run(&file, &args);
    assert!(code == 0 && out == "2\n" && err.contains("written to") && err.contains("has changed"), "{err}");

    // So does a file whose index is damaged, truncated or extended.
    let bytes = fs::read(&index).unwrap();
    assert_eq!(bytes.len(), 8 * (5 + 3 + 1));
    let replaced = |damaged: &[u8], what: &str| {
        fs::write(&index, damaged).unwrap();
        let (code, out, err) = run(&file, &args);
        assert!(code == 0 && out == "2\n" && err.contains("written to"), "{what}: {err}");
        let why = if what.starts_with("version") { "it was of another version" } else { "it was damaged" };
        assert!(err.contains(&format!("{why}, and is replaced")), "{what}: {err}");
        assert_eq!(fs::read(&index).unwrap(), bytes, "{what}");
    };
    for at in (8..bytes.len()).filter(|at| turn(*at, 7)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        replaced(&damaged, &format!("{} byte {at}", if at < 16 { "version" } else { "damage" }));
    }
    for length in (8..bytes.len()).filter(|length| turn(*length, 7)) {
        replaced(&bytes[..length], &format!("{length} bytes"));
    }
    replaced(&[&bytes[..], &[0; 8]].concat(), "longer");
    let mut old = bytes.clone();
    old[8] = 1;
    old.truncate(64);
    replaced(&old, "version 1");

    // Any other file is left alone.
    let foreign = folder.file("notes", b"not an index, and longer than the head of one would be");
    let (code, _, err) = run(&file, &["--index", foreign.to_str().unwrap()]);
    assert!(code == 2 && err.contains("is not an index"), "{err}");
    assert!(fs::read(&foreign).unwrap().starts_with(b"not an index"));
}

/// The file of [`rows_in_a_process_of_its_own`].
const SHARED: &str = "TILEWORK_SHARED_TEXT";

#[test]
fn concurrent_rows_share_an_index() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("index-shared");
    let file = folder.file("a.txt", "line\n".repeat(20_000).as_bytes());
    let once = || {
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let test = concat!(module_path!(), "::rows_in_a_process_of_its_own").split_once("::").unwrap().1;
        program.args(["--exact", "--ignored", test]).env(SHARED, &file);
        program.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    for _ in 0..2 {
        for child in [once(), once(), once(), once()] {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
        }
        fs::remove_file(folder.0.join("a.rows")).unwrap();
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
#[ignore = "run by the test before it"]
fn rows_in_a_process_of_its_own() {
    let file = PathBuf::from(std::env::var_os(SHARED).unwrap());
    let index = file.with_extension("rows");
    for _ in 0..6 {
        let (code, out, err) = run(&file, &["--index", index.to_str().unwrap(), "--line", "20000"]);
        assert!(code == 0 && out == "line\n", "{err}");
        // The index is complete at all times. If it is missing, the next run writes a new one.
        assert_eq!(fs::read(&index).map_or(0, |bytes| bytes.len()) % (8 * 20_006), 0);
        let _ = fs::remove_file(&index);
    }
    let (code, _, err) = run(&file, &["--index", index.to_str().unwrap()]);
    assert!(code == 0, "{err}");
}
