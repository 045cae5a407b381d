//! The `wordcount` example: its counts against the host's, its chunks, and its command line.

use super::program::Example;
use crate::support::{Random, devices, gpu};
use parts::cli;
use parts::counter::Counter;
use parts::pieces::Pieces;
use parts::words::Counts;
use std::fs;
use std::path::PathBuf;

#[path = "../../examples/wordcount"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    pub(super) mod counter;
    pub(super) mod pieces;
    pub(super) mod words;
}

fn on_host(text: &[u8]) -> Counts {
    let mut counts = Counts::default();
    counts.add_lines(text).unwrap();
    counts
}

/// Counts the words of a text on the device, split into chunks.
fn on_device(counter: &Counter, text: &[u8], name: &str) -> Counts {
    let path = file(name, text);
    let mut pieces = Pieces::new(vec![path.clone()], counter.chunk());
    let counts = counter.count(|piece| pieces.next(piece), |_| {}).unwrap();
    fs::remove_file(path).unwrap();
    counts
}

fn file(name: &str, text: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tilework-words-{name}-{}", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

fn ranked(counts: &Counts) -> Vec<(String, u64)> {
    let words = counts.ranked().into_iter();
    words.map(|(word, n)| (String::from_utf8_lossy(word).into_owned(), n)).collect()
}

#[test]
fn words_are_split_as_documented() {
    let text = "The the THE don't na\u{ef}ve \u{201c}Quoted\u{201d}\u{2014}dash\u{3001}\u{6f22}\u{5b57} x\u{a0}y 3.14";
    let mut counts = on_host(text.as_bytes());
    assert_eq!(ranked(&counts)[0], ("the".to_owned(), 3));
    let mut rest: Vec<_> = ranked(&counts)[1..].iter().map(|(word, _)| word.clone()).collect();
    rest.sort();
    let wanted = ["14", "3", "dash", "don", "na\u{ef}ve", "quoted", "t", "x", "y", "\u{6f22}\u{5b57}"];
    assert_eq!(rest, wanted);
    assert_eq!((counts.all(), counts.different()), (13, 11));
    // Invalid UTF-8 belongs to words.
    counts = on_host(b"\xc2 \xe2\x80 \xe2\x80\xa6\xff\0a\xc2\xa0");
    let of: Vec<_> = counts.ranked().iter().map(|(word, _)| word.to_vec()).collect();
    assert_eq!(of, [&b"a"[..], b"\xc2", b"\xe2\x80", b"\xff"]);
    assert_eq!(on_host(b"a b a").difference(&on_host(b"a a b")), None);
    let difference = on_host(b"a b a").difference(&on_host(b"a c a")).unwrap();
    assert_eq!(difference, "`b` occurs 0 times; the device says 1");
}

#[test]
fn wordcount_matches_the_host_when_words_cross_chunks() {
    let mut random = Random::new(2);
    let alphabet = b"aAzZ09@[`{/: \n\x7f\x80\xbf\xc2\xe2\xe3\x80\x81\x80\xa0\xff";
    let mut any = |n| -> Vec<u8> { (0..n).map(|_| alphabet[random.next() as usize % alphabet.len()]).collect() };
    let long = |n: usize| [&vec![b'a'; n][..], b" ", &vec![b'a'; n], b" ", &vec![b'A'; n - 1], b"b"].concat();
    let texts = [
        b"".to_vec(),
        b" .,\n".to_vec(),
        b"a".to_vec(),
        b"a a b".to_vec(),
        any(1 << 12),
        // Around the longest word that the device reads.
        [long(1023), long(1024), long(1025)].join(&b' '),
        // Longer than a chunk.
        [b"x y ", &long(3000)[..], b" x"].concat(),
        include_bytes!("../../README.md").to_vec(),
    ];
    for device in devices() {
        for chunk in if device.main { &[1, 2500, 1 << 20][..] } else { &[2500] } {
            let counter = Counter::new(&device.gpu, *chunk).unwrap();
            let texts = texts.iter().filter(|text| *chunk > 1 || text.len() < 10);
            for (i, text) in texts.enumerate() {
                let counts = on_device(&counter, text, "texts");
                let difference = counts.difference(&on_host(text));
                assert_eq!(difference, None, "{}: text {i} in chunks of {chunk}", device.label);
            }
        }
    }
}

#[test]
fn wordcount_is_exact_when_hashes_collide() {
    // Four pairs of these 100,000 words have the same hash, and about 300 agree in the sorted bits.
    let word = |n: u64| -> String { (0..6).map(|i| char::from(b'a' + (n / 10u64.pow(i) % 10) as u8)).collect() };
    let text: Vec<_> =
        [1u64, 7, 77_777].iter().flat_map(|step| (0..100_000).map(move |n| n * step % 100_000)).collect();
    let text = text.into_iter().map(word).collect::<Vec<_>>().join(" ");
    let host = on_host(text.as_bytes());
    assert_eq!((host.all(), host.different()), (300_000, 100_000));
    for device in devices() {
        let counter = Counter::new(&device.gpu, 4 << 20).unwrap();
        assert_eq!(on_device(&counter, text.as_bytes(), "collisions").difference(&host), None, "{}", device.label);
    }
}

#[test]
fn chunks_split_no_word() {
    let files = [&b"one two"[..], b"", b"three", b"threadbare and  then some"];
    let files: Vec<_> = files.iter().enumerate().map(|(i, text)| file(&format!("piece{i}"), text)).collect();
    let whole = b"one two\n\nthree\nthreadbare and  then some\n";
    for chunk in 1..50 {
        let mut pieces = Pieces::new(files.clone(), chunk);
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        while pieces.next(&mut piece).unwrap() {
            assert!(piece.last().is_some_and(|byte| b" \n".contains(byte)));
            assert!(piece.len() <= chunk.max(22), "{} bytes in chunks of {chunk}", piece.len());
            all.append(&mut piece);
        }
        assert_eq!(all, whole, "chunks of {chunk}");
    }
    files.iter().for_each(|path| fs::remove_file(path).unwrap());
}

#[test]
fn wordcount_prints_the_top_words() {
    if gpu().is_none() {
        return;
    }
    let program = Example("wordcount", cli::run);
    let path = file("cli", b"b a, B. c\n");
    let name = path.to_str().unwrap();
    let (code, out, err) = program.run(&[name, name, "--top", "2", "--check"]);
    let table = "count  share  word\n    4 50.00%  b\n    2 25.00%  a\n\n8 words, 3 different, in 20 B; ";
    assert!(code == 0 && out.starts_with(table), "{out}{err}");
    assert!(out.contains("same counts as on the processor"), "{out}");
    assert!(program.run(&[name, "--top", "0"]).1.starts_with("4 words, 3 different"));
    fs::write(&path, "").unwrap();
    assert!(program.run(&[name, "--check"]).1.starts_with("0 words, 0 different, in 0 B"));

    program.rejects_early(&[
        (&[], "no file named"),
        (&[name, "--top", "-1"], "--top -1"),
        (&[name, "--chunk", "x"], "--chunk x"),
        (&[name, "no such file"], "no such file"),
        (&[name, "."], "is a directory"),
        (&[name, "--check", "--check"], "--check is given twice"),
    ]);
    fs::remove_file(path).unwrap();
}
