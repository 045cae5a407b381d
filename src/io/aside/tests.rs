use super::*;

#[test]
fn files_are_put_in_place_or_removed() {
    let folder = std::env::temp_dir().join(format!("tilework-put-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let files = || fs::read_dir(&folder).unwrap().count();
    let target = folder.join("a");
    // Unnamed if possible, and with a hidden name.
    let named = || {
        let held = AsideFile::Named(beside().tempfile_in(&folder).unwrap());
        Aside { folder: folder.clone(), held }
    };
    for (aside, dropped) in [(named(), named()), (Aside::new(&folder).unwrap(), named())] {
        let mut aside = aside;
        aside.write_all(b"all").unwrap();
        drop(dropped);
        aside.put(&target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"all");
    }
    drop(Aside::new(&folder).unwrap());
    assert_eq!(files(), 1);
    fs::remove_dir_all(folder).unwrap();
}
