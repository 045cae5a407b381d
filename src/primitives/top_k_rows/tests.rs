use super::*;

#[test]
fn filter_holds_twice_k_and_long_rows_are_sorted_where_loops_end() {
    let variant =
        |n, k, profile: &DeviceProfile| TopKRows::new([4, n], k).lower_as(DType::F32, profile).unwrap().variant();
    let (h100, web, mesa) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults(), DeviceProfile::mesa());
    assert_eq!([512, 513].map(|k| variant(50_257, k, &web)), ["filter", "sort"]);
    assert_eq!([2048, 2049].map(|k| variant(50_257, k, &h100)), ["filter", "sort"]);
    assert_eq!([50_257, 1_000_000].map(|n| variant(n, 50, &mesa)), ["filter", "sort"]);
}
