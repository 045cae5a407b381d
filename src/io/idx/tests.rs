use super::*;
use crate::ErrorKind;
use std::fs;
use std::io::Write;

fn file(magic: [u8; 4], shape: &[u32], data: &[u8]) -> Vec<u8> {
    let extents: Vec<u8> = shape.iter().flat_map(|e| e.to_be_bytes()).collect();
    [&magic[..], &extents, data].concat()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn reads_plain_and_compressed_arrays() {
    let bytes = file([0, 0, 8, 2], &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let want = Idx { shape: vec![2, 3], data: vec![1, 2, 3, 4, 5, 6] };
    assert_eq!(read(bytes.as_slice()).unwrap(), want);
    assert_eq!(read(packed(&bytes).as_slice()).unwrap(), want);
    assert!(read(file([0, 0, 8, 1], &[0], &[]).as_slice()).unwrap().data.is_empty());
}

#[test]
fn malformed_files_name_the_reason() {
    let refused = |bytes: &[u8], kind: ErrorKind, text: &str| {
        let e = read(bytes).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(text), "{e}");
    };
    let whole = file([0, 0, 8, 1], &[3], &[1, 2, 3]);
    refused(&whole[..3], ErrorKind::Malformed, "within the magic number");
    refused(&whole[..7], ErrorKind::Malformed, "within extent 0");
    refused(&whole[..10], ErrorKind::Malformed, "[3] mean 3 elements; the file has 2");
    refused(&[&whole[..], &[9]].concat(), ErrorKind::Malformed, "the file has more");
    refused(b"\x89PNG\r\n", ErrorKind::Malformed, "starts with 137 80 78 71");
    refused(&[1, 8, 0, 0, 3, 0, 0, 0, 1, 2, 3], ErrorKind::Malformed, "little-endian");
    refused(&file([0, 0, 13, 1], &[1], &[0; 4]), ErrorKind::Unsupported, "f32");
    refused(&file([0, 0, 7, 1], &[1], &[0]), ErrorKind::Malformed, "type 7");
    refused(&[0, 0, 8, 0], ErrorKind::Malformed, "no axes");
    refused(&file([0, 0, 8, 3], &[u32::MAX; 3], &[]), ErrorKind::TooLarge, "shape");
    // 2^64 - 1 elements: one more would overflow to 0.
    refused(&file([0, 0, 8, 3], &[u32::MAX, 641, 6_700_417], &[7]), ErrorKind::TooLarge, "shape");
    let compressed = packed(&whole);
    refused(&compressed[..compressed.len() - 9], ErrorKind::Malformed, "compressed");
    refused(&[], ErrorKind::Malformed, "magic");
    // Declared sizes allocate nothing.
    refused(&file([0, 0, 8, 2], &[1 << 31, 1 << 12], &[7]), ErrorKind::Malformed, "the file has 1");
}

#[test]
fn images_and_labels_must_be_as_many() {
    let folder = std::env::temp_dir().join(format!("tilework-idx-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let images = folder.join("train-images-idx3-ubyte");
    let labels = folder.join("train-labels-idx1-ubyte.gz");
    fs::write(&images, file([0, 0, 8, 3], &[2, 1, 2], &[1, 2, 3, 4])).unwrap();
    let e = read_labelled(&folder, "train").unwrap_err();
    assert!(e.kind() == ErrorKind::Io && e.to_string().contains("train-labels"), "{e}");
    fs::write(&labels, packed(&file([0, 0, 8, 1], &[2], &[7, 8]))).unwrap();
    let both = Labelled { shape: [2, 1, 2], images: vec![1, 2, 3, 4], labels: vec![7, 8] };
    assert_eq!(read_labelled(&folder, "train").unwrap(), both);
    fs::write(&labels, file([0, 0, 8, 1], &[3], &[7, 8, 9])).unwrap();
    let e = read_labelled(&folder, "train").unwrap_err();
    assert!(e.kind() == ErrorKind::Malformed && e.to_string().contains("2 images"), "{e}");
    fs::write(&images, file([0, 0, 8, 1], &[2], &[1, 2])).unwrap();
    let e = read_labelled(&folder, "train").unwrap_err();
    assert!(e.kind() == ErrorKind::Malformed && e.to_string().contains("1 axes"), "{e}");
    fs::remove_dir_all(folder).unwrap();
}
