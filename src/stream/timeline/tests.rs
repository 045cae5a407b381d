use super::*;

fn times(chunk: usize, submitted: f64, noticed: f64, stamps: Option<[f64; 4]>) -> DeviceTimes {
    DeviceTimes { chunk, submitted, noticed, stamps }
}

#[test]
fn device_times_lie_between_submission_and_notice() {
    let mut builder = Builder::default();
    // The device's clock is 100 ahead. The first chunk begins at once; the end of the second is seen at once.
    builder.device.push(times(0, 1.0, 5.0, Some([101.0, 102.0, 103.0, 104.0])));
    builder.device.push(times(1, 3.0, 6.0, Some([104.0, 105.0, 105.5, 106.0])));
    builder.add(1, Stage::Drain, (6.0, 7.0));
    builder.add(0, Stage::Drain, (5.0, 6.0));
    builder.add(0, Stage::Fill, (0.0, 1.0));
    let timeline = builder.finish(7.0, true);
    assert_eq!((timeline.chunks, timeline.uncertainty, timeline.clock), (2, 0.0, Clock::Device));
    let stages: Vec<_> = timeline.events.iter().filter(|e| e.chunk == 0).map(|e| e.stage).collect();
    assert_eq!(stages, [Stage::Fill, Stage::Device, Stage::Upload, Stage::Kernels, Stage::Download, Stage::Drain]);
    let kernels = timeline.events.iter().find(|e| e.stage == Stage::Kernels).unwrap();
    assert_eq!((kernels.begin, kernels.end), (2.0, 3.0));
    assert_eq!((timeline.busy(Stage::Device), timeline.period()), (5.0, Some(1.0)));
}

#[test]
fn without_timestamps_chunks_follow_one_another() {
    let mut builder = Builder::default();
    builder.device.push(times(0, 1.0, 3.0, None));
    builder.device.push(times(1, 2.0, 4.0, None));
    let timeline = builder.finish(4.0, true);
    let spans: Vec<_> = timeline.events.iter().map(|e| (e.begin, e.end)).collect();
    assert_eq!(spans, [(1.0, 3.0), (3.0, 4.0)]);
    assert_eq!((timeline.clock, timeline.period()), (Clock::Wall, None));
    assert!(timeline.busy(Stage::Fill).is_sign_positive(), "printed, nothing is 0 and not -0");
}
