//! Command lines whose keys may not repeat.

use lexopt::{Arg, Error, Parser, ValueExt};
use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A [`Parser`] that rejects repeated keys.
#[derive(Debug)]
pub(crate) struct Args {
    parser: Parser,
    /// Keys that may repeat, without their dashes.
    lists: &'static [&'static str],
    seen: Vec<String>,
    /// The last key, with its dashes.
    last: String,
}

impl Args {
    /// Makes a parser. Only the keys of `lists` may repeat.
    pub(crate) fn new(parser: Parser, lists: &'static [&'static str]) -> Self {
        Self { parser, lists, seen: Vec::new(), last: String::new() }
    }

    /// Returns the next argument.
    pub(crate) fn next(&mut self) -> Result<Option<Arg<'_>>, Error> {
        let arg = self.parser.next()?;
        let key = match &arg {
            Some(Arg::Long(name)) => format!("--{name}"),
            Some(Arg::Short(letter)) => format!("-{letter}"),
            _ => return Ok(arg),
        };
        if self.seen.contains(&key) {
            return Err(format!("{key} is given twice").into());
        }
        if !self.lists.contains(&key.trim_start_matches('-')) {
            self.seen.push(key.clone());
        }
        self.last = key;
        Ok(arg)
    }

    /// Returns the value of the last key.
    pub(crate) fn value(&mut self) -> Result<OsString, Error> {
        self.parser.value()
    }

    /// Rejects what follows the last key, which takes no value, if it is neither a key nor a file.
    pub(crate) fn no_value(&mut self) -> Result<(), Error> {
        let next = self.parser.try_raw_args().and_then(|args| args.peek().map(OsString::from));
        let Some(next) = next else { return Ok(()) };
        let text = next.to_string_lossy();
        if text.starts_with('-') || std::path::Path::new(&next).exists() {
            return Ok(());
        }
        Err(format!("{} takes no value, and there is no file {text}", self.last).into())
    }

    /// Returns the value of the last key as a whole number in `range`.
    pub(crate) fn number<T>(&mut self, range: RangeInclusive<T>) -> Result<T, Error>
    where
        T: FromStr + PartialOrd + Display,
    {
        let text = self.value()?.string()?;
        text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
            let (key, least, most) = (&self.last, range.start(), range.end());
            format!("{key} {text}: must be a whole number from {least} to {most}").into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a line in which every key but `--flag` and `-f` has a value.
    fn read(line: &str) -> Result<usize, String> {
        let mut args = Args::new(Parser::from_iter(["program"].into_iter().chain(line.split(' '))), &["list", "o"]);
        let mut count = 0;
        while let Some(arg) = args.next().map_err(|e| e.to_string())? {
            let takes_value = !matches!(arg, Arg::Long("flag") | Arg::Short('f') | Arg::Value(_));
            if takes_value {
                args.value().map_err(|e| e.to_string())?;
            }
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn args_refuse_a_key_given_twice() {
        assert_eq!(read("--key 1 --other 1 file file -o a -o b --list 1 --list 2 --flag"), Ok(9));
        for (line, key) in [
            ("--key 1 file --key 1", "--key"),
            ("--key=1 --key=2", "--key"),
            ("--flag --flag", "--flag"),
            ("-k1 -k 2", "-k"),
            ("-ff", "-f"),
        ] {
            assert_eq!(read(line), Err(format!("{key} is given twice")), "{line}");
        }
        // A value may look like a key, and nothing after two dashes is a key.
        assert_eq!(read("--key --key -- --key"), Ok(2));
    }

    #[test]
    fn args_refuse_values_of_keys_that_take_none() {
        let follow = |line: &str| {
            let mut args = Args::new(Parser::from_iter(["program"].into_iter().chain(line.split(' '))), &[]);
            args.next().unwrap();
            args.no_value().map_err(|e| e.to_string())
        };
        for line in ["--flag --other", "--flag -o", "--flag Cargo.toml", "--flag"] {
            assert_eq!(follow(line), Ok(()), "{line}");
        }
        assert_eq!(follow("--flag 2"), Err("--flag takes no value, and there is no file 2".to_owned()));
    }

    #[test]
    fn args_refuse_numbers_out_of_range() {
        let number = |text: &str| {
            let mut args = Args::new(Parser::from_iter(["program", "--size", text]), &[]);
            assert!(args.next().unwrap().is_some());
            args.number(2..=64usize).map_err(|e| e.to_string())
        };
        assert_eq!((number("2"), number("64")), (Ok(2), Ok(64)));
        for text in ["1", "65", "-3", "", "1e1", "0x10", "99999999999999999999"] {
            let wanted = format!("--size {text}: must be a whole number from 2 to 64");
            assert_eq!(number(text), Err(wanted));
        }
    }
}
