use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn many_threads_make_a_value_once() {
    let (once, made) = (Once::default(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let got = once.get_or_make(|| {
                    thread::sleep(std::time::Duration::from_millis(20));
                    Ok::<_, ()>(made.fetch_add(1, Ordering::SeqCst))
                });
                assert_eq!(got, Ok(0));
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}

#[test]
fn the_maker_may_ask_for_the_value() {
    let once = Once::default();
    let got = once.get_or_make(|| {
        let inner = once.get_or_make(|| Ok::<_, ()>("inner"));
        assert_eq!(inner, Ok("inner"));
        Ok::<_, ()>("outer")
    });
    assert_eq!(got, Ok("inner"));
    assert_eq!(once.get_or_make(|| Err(())), Ok("inner"));
}

#[test]
fn the_next_thread_retries_after_a_failure_or_panic() {
    let once = Once::default();
    assert_eq!(once.get_or_make(|| Err::<u8, _>("no")), Err("no"));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        once.get_or_make(|| -> Result<u8, ()> { std::panic::resume_unwind(Box::new(0)) })
    }));
    assert!(panicked.is_err());
    assert_eq!(once.get_or_make(|| Ok::<_, ()>(7)), Ok(7));
}

#[test]
fn a_thread_of_its_own_acts_for_its_caller() {
    let once = Once::default();
    let caller = thread::current().id();
    let got = once.get(|| {
        in_own_thread(|| {
            assert_ne!(thread::current().id(), caller);
            let inner = thread::current().id();
            // Neither waits for the caller, which waits for this thread.
            assert_eq!(once.get(|| in_own_thread(|| thread::current().id())), inner);
            inner
        })
    });
    assert_ne!(got, caller);
    assert_eq!(once.get(|| caller), got);
    let panicked = catch_unwind(|| in_own_thread(|| -> u8 { std::panic::resume_unwind(Box::new(3)) }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&3));
}

#[test]
fn the_thread_has_ended_when_its_work_returns() {
    struct AtEnd(Cell<Option<Arc<AtomicUsize>>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            thread::sleep(std::time::Duration::from_millis(20));
            self.0.take().unwrap().store(1, Ordering::SeqCst);
        }
    }
    thread_local!(static AT_END: AtEnd = const { AtEnd(Cell::new(None)) });
    let ended = Arc::new(AtomicUsize::new(0));
    in_own_thread(|| AT_END.with(|at_end| at_end.0.set(Some(ended.clone()))));
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}
