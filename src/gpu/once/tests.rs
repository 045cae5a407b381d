use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
