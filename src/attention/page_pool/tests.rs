use super::*;
use crate::ErrorKind;

fn pool(pages: usize) -> PagePool {
    PagePool::new(Paging { tokens: 16, pages }).unwrap()
}

#[test]
fn sequences_get_pages_as_they_grow() {
    let mut pool = pool(4);
    let (a, b) = (pool.insert(), pool.insert());
    assert!(pool.append(a, 16).unwrap().list().is_empty());
    assert!(pool.append(b, 17).unwrap().list().is_empty());
    assert!(pool.append(a, 1).unwrap().list().is_empty());
    assert_eq!((pool.pages(a).unwrap(), pool.pages(b).unwrap()), (&[0, 3][..], &[1, 2][..]));
    assert_eq!((pool.tokens(a).unwrap(), pool.free_pages()), (17, 0));
    // The last page has room; the next one does not exist, and nothing changes.
    let before = format!("{pool:?}");
    let e = pool.append(a, 16).unwrap_err();
    assert!(e.kind() == ErrorKind::OutOfMemory && e.to_string().contains("1 pages, 0 of 4"), "{e}");
    assert_eq!(format!("{pool:?}"), before);
    assert!(pool.append(a, 15).unwrap().list().is_empty());
    pool.truncate(b, 16).unwrap();
    assert_eq!((pool.tokens(b).unwrap(), pool.free_pages()), (16, 1));
    pool.free(a).unwrap();
    assert_eq!(pool.free_pages(), 3);
    assert_eq!(pool.tokens(a).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(pool.free(a).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(pool.sequences().collect::<Vec<_>>(), [b]);
}

#[test]
fn forks_share_pages_until_they_write() {
    let mut pool = pool(4);
    let a = pool.insert();
    let _ = pool.append(a, 20).unwrap();
    let b = pool.fork(a).unwrap();
    assert_eq!((pool.pages(b).unwrap(), pool.free_pages()), (&[0, 1][..], 2));
    assert_eq!(pool.append(b, 1).unwrap().list(), [[1, 2]]);
    assert_eq!((pool.pages(a).unwrap(), pool.pages(b).unwrap()), (&[0, 1][..], &[0, 2][..]));
    // Page 1 is no longer shared.
    assert!(pool.append(a, 1).unwrap().list().is_empty());
    pool.free(a).unwrap();
    assert_eq!((pool.pages(b).unwrap(), pool.free_pages()), (&[0, 2][..], 2));
}

#[test]
fn defragmented_pages_come_first() {
    let mut pool = pool(6);
    let ids: Vec<_> = (0..3).map(|_| pool.insert()).collect();
    for id in ids.iter().chain(&ids) {
        let tokens = pool.tokens(*id).unwrap();
        let _ = pool.append(*id, 16).unwrap();
        assert_eq!(pool.tokens(*id).unwrap(), tokens + 16);
    }
    pool.free(ids[0]).unwrap();
    let twin = pool.fork(ids[2]).unwrap();
    assert_eq!(pool.pages(twin).unwrap(), [2, 5]);
    let moves = pool.defragment();
    assert_eq!(moves.list(), [[4, 0], [5, 3]]);
    assert_eq!((pool.pages(ids[1]).unwrap(), pool.pages(twin).unwrap()), (&[1, 0][..], &[2, 3][..]));
    assert!(pool.defragment().list().is_empty());
    pool.free(twin).unwrap();
    assert_eq!(pool.free_pages(), 2);
    pool.free(ids[2]).unwrap();
    assert_eq!(pool.free_pages(), 4);
}

#[test]
fn rejects_invalid_arguments() {
    let kind = |tokens, pages| PagePool::new(Paging { tokens, pages }).unwrap_err().kind();
    assert_eq!(kind(8, 4), ErrorKind::InvalidArgument);
    assert_eq!(kind(16, 1 << 32), ErrorKind::TooLarge);
    let mut pool = pool(4);
    let a = pool.insert();
    assert_eq!(pool.append(a, usize::MAX).unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(pool.append(a, 0).unwrap().list().is_empty());
}
