use super::*;

#[test]
fn forgets_unused_labels_but_counts_all_bytes() {
    let meter = Arc::new(Meter::default());
    let kept = meter.charge("kept", 7, 0);
    for i in 0..5000 {
        let charge = meter.charge("buffer", 3, 1);
        charge.label(&format!("frame {i}"));
        charge.pooled();
    }
    let seen = || {
        let ledger = lock(&meter.ledger);
        (ledger.labels.len(), ledger.all, ledger.labels.get("kept").copied())
    };
    let (labels, all, of_kept) = seen();
    assert!((MAX_LABELS / 2..=MAX_LABELS + 2).contains(&labels), "{labels} labels");
    assert_eq!((all, of_kept), (7, Some((7, 7))));
    // Labels in use are always listed.
    let many: Vec<_> = (0..3000).map(|i| meter.charge(&format!("weights {i}"), 1, 2)).collect();
    assert!(seen().0 >= 3000);
    drop((many, kept));
    let (labels, all, _) = seen();
    assert!(all == 0 && labels <= MAX_LABELS + 2, "{all} bytes, {labels} labels");
}
