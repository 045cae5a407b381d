use super::*;
use crate::ErrorKind;
use futures_intrusive::channel::shared::oneshot_channel;

fn error(description: &str) -> wgpu::Error {
    wgpu::Error::Validation { source: description.into(), description: description.into() }
}

#[test]
fn the_first_error_is_reported_once() {
    let deferred = Deferred::default();
    deferred.add("one", async { None });
    deferred.add("two", async { Some(error("bad")) });
    deferred.add("three", async { Some(error("worse")) });
    let first = pollster::block_on(deferred.settled()).unwrap_err();
    assert_eq!(first.kind(), ErrorKind::Validation);
    assert!(first.to_string().starts_with("two: ") && first.to_string().contains("bad"), "{first}");
    assert_eq!(pollster::block_on(deferred.settled()), Ok(()));
}

#[test]
fn waits_for_late_answers_and_keeps_no_early_ones() {
    let deferred = Deferred::default();
    let (sender, receiver) = oneshot_channel();
    deferred.add("late", async move { receiver.receive().await.flatten() });
    for _ in 0..100 {
        deferred.add("early", async { None });
    }
    assert_eq!(lock(&deferred.state).pending.len(), 101);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(sender.send(Some(error("late"))).is_ok());
        });
        assert!(pollster::block_on(deferred.settled()).is_err());
    });
    for _ in 0..100 {
        deferred.add("early", async { None });
    }
    assert_eq!(lock(&deferred.state).pending.len(), 1);
}
