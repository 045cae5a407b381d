use super::*;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

type Numbers = CompiledCache<u32, Counted>;

/// Counts the values that exist.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

struct Fixture {
    cache: Arc<Numbers>,
    living: Arc<AtomicUsize>,
    made: AtomicUsize,
}

impl Fixture {
    fn new(max_unused: usize) -> Self {
        let cache = Arc::new(Numbers::new("numbers", max_unused));
        Self { cache, living: Arc::default(), made: AtomicUsize::new(0) }
    }

    fn get(&self, key: u32) -> InUse<u32, Counted> {
        let Ok(got) = self.cache.get_or_make::<Infallible>(&key, || {
            self.made.fetch_add(1, SeqCst);
            self.living.fetch_add(1, SeqCst);
            Ok(Counted(self.living.clone()))
        });
        got
    }

    /// Number of values made so far, and of those that exist.
    fn counts(&self) -> (usize, usize) {
        assert_eq!(self.cache.counts().0, self.living.load(SeqCst) as u64);
        assert_eq!(self.cache.counts().1 as usize, self.made.load(SeqCst) - self.living.load(SeqCst));
        (self.made.load(SeqCst), self.living.load(SeqCst))
    }
}

#[test]
fn unused_values_stay_within_the_bound() {
    for max in [0, 1, 7] {
        let f = Fixture::new(max);
        let held: Vec<_> = (1000..1010).map(|key| f.get(key)).collect();
        for key in 0..3 * max as u32 + 3 {
            drop((f.get(key), f.get(key)));
            assert_eq!(f.counts(), (key as usize + 11, max.min(key as usize + 1) + 10));
        }
        // Values in use are found, however long ago they were made.
        drop((1000..1010).map(|key| f.get(key)).collect::<Vec<_>>());
        assert_eq!(f.counts().0, 3 * max + 13);
        drop(held);
        assert_eq!(f.counts(), (3 * max + 13, max));
    }
}

#[test]
fn the_least_recently_used_value_goes_first() {
    let f = Fixture::new(3);
    for key in [0, 1, 2, 0, 3, 4] {
        drop(f.get(key));
    }
    // 1 and 2 are gone; 0 was used again.
    assert_eq!(f.counts(), (5, 3));
    for key in [0, 3, 4] {
        drop(f.get(key));
    }
    assert_eq!(f.counts(), (5, 3));
    drop(f.get(1));
    assert_eq!(f.counts(), (6, 3));
    // What counts is when the last user left.
    let (a, b) = (f.get(5), f.get(5));
    drop((f.get(6), f.get(7), a, b, f.get(6)));
    let made = f.counts().0;
    drop((f.get(5), f.get(7)));
    assert_eq!(f.counts().0, made);
}

#[test]
fn trim_drops_what_nothing_uses() {
    let f = Fixture::new(usize::MAX);
    let held = f.get(0);
    (1..50).for_each(|key| drop(f.get(key)));
    assert_eq!(f.counts(), (50, 50));
    f.cache.trim();
    f.cache.trim();
    assert_eq!(f.counts(), (50, 1));
    drop((f.get(0), held));
    assert_eq!(f.counts(), (50, 1));
    drop(f.get(1));
    assert_eq!(f.counts(), (51, 2));
    f.cache.trim();
    assert_eq!(f.counts(), (51, 0));
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let f = Fixture::new(2);
    let fail = |key: u32| f.cache.get_or_make(&key, || Err::<Counted, _>("no")).map(drop);
    assert_eq!(fail(1), Err("no"));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        f.cache.get_or_make::<()>(&2, || std::panic::resume_unwind(Box::new(0))).map(drop)
    }));
    assert!(panicked.is_err());
    assert_eq!(f.cache.counts(), (1, 0), "the place of the panic waits for the next try");
    f.cache.trim();
    assert_eq!(f.counts(), (0, 0));
    drop((f.get(1), f.get(2)));
    assert_eq!((fail(1), f.counts()), (Ok(()), (2, 2)));
}

#[test]
fn threads_make_a_value_once_while_others_drop_it() {
    const KEYS: u32 = 3;
    for max in [0, 1] {
        let f = Fixture::new(max);
        let users: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let work = |t: u32| {
                for round in 0..2000 {
                    let key = (round + t) % KEYS;
                    let mine = f.cache.get_or_make::<Infallible>(&key, || {
                        assert_eq!(users[key as usize].load(SeqCst), 0, "made although in use");
                        f.made.fetch_add(1, SeqCst);
                        f.living.fetch_add(1, SeqCst);
                        if round % 64 == 0 {
                            thread::sleep(Duration::from_micros(50));
                        }
                        Ok(Counted(f.living.clone()))
                    });
                    users[key as usize].fetch_add(1, SeqCst);
                    thread::yield_now();
                    users[key as usize].fetch_sub(1, SeqCst);
                    drop(mine);
                }
            };
            let workers: Vec<_> = (0..4).map(|t| scope.spawn(move || work(t))).collect();
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    f.cache.trim();
                }
            });
            let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            stop.store(true, SeqCst);
            assert!(results.iter().all(Result::is_ok));
        });
        assert!(f.counts().1 <= max);
        assert!(f.counts().0 > 2 * KEYS as usize, "nothing was made again");
    }
}

#[test]
fn threads_that_wait_share_one_value() {
    let f = Fixture::new(0);
    let all: Vec<_> = thread::scope(|scope| {
        let get = || {
            f.cache.get_or_make::<Infallible>(&1, || {
                thread::sleep(Duration::from_millis(20));
                f.made.fetch_add(1, SeqCst);
                f.living.fetch_add(1, SeqCst);
                Ok(Counted(f.living.clone()))
            })
        };
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(f.counts(), (1, 1));
    drop(all);
    assert_eq!(f.counts(), (1, 0));
}

/// A value whose end plans again, as a logger may.
struct Planner(std::sync::Weak<CompiledCache<u32, Planner>>, u32);

impl Drop for Planner {
    fn drop(&mut self) {
        if let (Some(cache), Some(next)) = (self.0.upgrade(), self.1.checked_sub(1)) {
            let Ok(_) = cache.get_or_make::<Infallible>(&next, || Ok(Planner(self.0.clone(), next)));
            cache.trim();
        }
    }
}

#[test]
fn dropping_a_value_may_use_the_cache() {
    let cache = Arc::new(CompiledCache::new("planners", 0));
    let first = Planner(Arc::downgrade(&cache), 5);
    drop(cache.get_or_make::<Infallible>(&5, || Ok(first)));
    assert_eq!(cache.counts(), (0, 6));
}
