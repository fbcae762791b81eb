use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use proptest::prelude::*;
use twox_hash::XxHash3_128;

use knowledgepulse_trace::label::MAX_LABEL_BYTES;

use super::*;
use crate::{options::ModelIdentity, shared::SharedMemory, vectors::VectorCache};

mod traces;

/// The wall clock of the tests.
fn clock(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000) + Duration::from_millis(ms)
}

fn options(max_elements: usize, dimensions: usize, ttl_ms: Option<u64>) -> MemoryOptions {
    MemoryOptions {
        max_elements,
        dimensions,
        time_to_live: ttl_ms.map(Duration::from_millis),
    }
}

fn written(memory: &mut impl SharedMemory, now: Instant, clock: SystemTime) -> Vec<u8> {
    let mut bytes = Vec::new();
    memory.snapshot(now, clock).write(&mut bytes).unwrap();
    bytes
}

fn read<M: SharedMemory>(
    bytes: &[u8],
    now: Instant,
    clock: SystemTime,
) -> std::result::Result<M, Unreadable> {
    M::read(bytes, None, now, clock)
}

fn load(path: &Path) -> Result<VectorCache> {
    VectorCache::load(path, None)
}

fn reason(result: std::result::Result<VectorCache, Unreadable>) -> String {
    match result.unwrap_err() {
        Unreadable::Damaged(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// All that a cache holds: the bits of each vector, its label, and its age.
fn contents(cache: &VectorCache, now: Instant) -> Vec<(Vec<u32>, Option<Label>, Duration)> {
    let entries = cache.rows.iter();
    let bits = |group: &knowledgepulse_encoder::Group| group.0.map(f32::to_bits);
    entries
        .map(|entry| {
            let components = entry.components.iter().flat_map(bits).collect();
            (components, entry.label.cloned(), entry.added.age(Moment::at(now)))
        })
        .collect()
}

/// A cache with labelled and unlabelled vectors of several ages, a model and a method.
fn example(now: Instant) -> VectorCache {
    let mut cache = VectorCache::new(options(3, 2, Some(60_000)));
    for (vector, label) in [
        ([9.0, 9.0], None),
        ([1.0, 2.0], Some("a".into())),
        ([0.0, 0.0], None),
        ([-3.0, 1e-9], Some("\u{e9}\u{1f980}".into())),
    ] {
        cache.add(&vector, label, now).unwrap();
    }
    cache.origin = Origin {
        model: Some(ModelIdentity {
            model: "a \"model\"".into(),
            dtype: "fp32".into(),
            sha256: Some("0".repeat(64)),
        }),
        method: Some("full".into()),
    };
    cache
}

/// Replaces the checksum by the right one.
pub(super) fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len().saturating_sub(CHECKSUM_BYTES);
    let checksum = XxHash3_128::oneshot(&bytes[..end]).to_be_bytes();
    let places = bytes[end..].iter_mut();
    places.zip(checksum).for_each(|(place, byte)| *place = byte);
    bytes
}

fn component() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1.0f64..1.0,
        1 => Just(0.0),
        1 => Just(-0.0),
        1 => prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
        1 => (prop::sample::select(vec![-1.0, 1.0]), prop::sample::select(vec![-40, 40]), -2i32..3).prop_map(
            |(sign, exponent, steps)| sign * f64::from_bits(2.0f64.powi(exponent).to_bits().saturating_add_signed(i64::from(steps)))
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 }))]

    #[test]
    fn what_is_read_is_what_was_written(
        dimensions in prop_oneof![1usize..5, Just(64), Just(65), Just(384)],
        max_elements in 0usize..200,
        ttl_ms in prop::option::of(0u64..3000),
        seeds in prop::collection::vec((prop::collection::vec(component(), 1..8), any::<bool>(), prop::option::of(".{0,9}"), 0u64..50), 0..300),
        model in prop::option::of((".{0,9}", ".{0,9}", prop::option::of("[0-9a-f]{4}"))),
        method in prop::option::of(".{0,9}"),
        pause in 0u64..1000,
    ) {
        let start = Instant::now();
        let mut elapsed = 0;
        let mut cache = VectorCache::new(options(max_elements, dimensions, ttl_ms));
        for (components, single, label, pause) in seeds {
            elapsed += pause;
            let now = start + Duration::from_millis(elapsed);
            let vector: Vec<f64> = components.into_iter().cycle().take(dimensions).collect();
            let singles: Vec<f32> = vector.iter().map(|&x| x as f32).collect();
            let label = label.map(Label::from);
            if single && singles.iter().all(|x| x.is_finite()) {
                cache.add(&singles, label, now).unwrap();
            } else {
                cache.add(&vector, label, now).unwrap();
            }
        }
        let model = model.map(|(model, dtype, sha256)| ModelIdentity { model, dtype, sha256 });
        cache.origin = Origin { model, method };
        let now = start + Duration::from_millis(elapsed);
        let bytes = written(&mut cache, now, clock(elapsed));
        // What follows the header is aligned.
        prop_assert_eq!(bytes[0] % 8, 0);

        // Another process loads it later, where the monotonic clock began at another time.
        let later = Instant::now();
        let mut copy = read::<VectorCache>(&bytes, later, clock(elapsed + pause)).unwrap();
        prop_assert_eq!(copy.options(), cache.options());
        prop_assert_eq!(&copy.origin, &cache.origin);
        let aged: Vec<_> = contents(&cache, now + Duration::from_millis(pause));
        prop_assert_eq!(contents(&copy, later), aged);
        let after = now + Duration::from_millis(pause);
        prop_assert_eq!(copy.len(later), cache.len(after));
        let query: Vec<f64> = (0..dimensions).map(|index| (index as f64).sin()).collect();
        prop_assert_eq!(copy.nearest(&query, 9, later).unwrap(), cache.nearest(&query, 9, after).unwrap());

        // A cache that is loaded can be written and read again.
        let again = written(&mut copy, later, clock(elapsed + pause));
        let copy_of_copy = read::<VectorCache>(&again, later, clock(elapsed + pause)).unwrap();
        prop_assert_eq!(contents(&copy_of_copy, later), contents(&copy, later));
    }

    #[test]
    fn hostile_bytes_are_an_error_or_a_cache(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        numbers in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec!["0", "1", "9", "-", "e", "99999999999999999999"])), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let now = Instant::now();
        let mut bytes = written(&mut example(now), now, clock(0));
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        for (index, digits) in numbers {
            let places: Vec<_> = bytes.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).map(|(place, _)| place).collect();
            if !places.is_empty() {
                let place = places[index.index(places.len())];
                bytes.splice(place..=place, digits.bytes());
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match read::<VectorCache>(&with_checksum(bytes), now, clock(0)) {
            Err(Unreadable::Damaged(reason)) => prop_assert!(!reason.is_empty()),
            Err(other) => prop_assert!(false, "{:?}", other),
            Ok(mut cache) => {
                // An empty cache may claim any number of dimensions.
                let query = vec![1.0; cache.options().dimensions.min(1 << 20)];
                prop_assume!(query.len() == cache.options().dimensions);
                prop_assert!(cache.nearest(&query, 9, now).unwrap().len() <= 3);
            }
        }
    }
}

#[test]
fn a_changed_or_missing_byte_is_noticed() {
    let now = Instant::now();
    let bytes = written(&mut example(now), now, clock(0));
    let read = |bytes: &[u8]| read::<VectorCache>(bytes, now, clock(0));
    assert!(read(&bytes).is_ok());
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1 << (index % 8);
        // The fields of the header have any order, so the bit may be that which makes another kind of memory of it.
        let other_kind = changed.windows(13).any(|part| part == br#""version":"5""#);
        match read(&changed) {
            Err(Unreadable::Damaged(_)) => {}
            Err(Unreadable::OtherKind { .. }) if other_kind => {}
            other => panic!("{index}: {:?}", other.map(|_| ())),
        }
        assert!(
            matches!(read(&bytes[..index]), Err(Unreadable::Damaged(_))),
            "{index}"
        );
    }
    let longer = [&bytes[..], b" "].concat();
    assert!(reason(read(&longer)).contains("bytes, not the"));
}

#[test]
fn impossible_contents_are_named() {
    let now = Instant::now();
    let bytes = written(&mut example(now), now, clock(0));
    let read = |bytes: &[u8]| read::<VectorCache>(&with_checksum(bytes.to_vec()), now, clock(0));
    // The header has no fixed length, but what follows has: 3 times (8 + 8 + 2 * 4 + 1), the labels, the checksum.
    let data = bytes.len() - CHECKSUM_BYTES - "a\u{e9}\u{1f980}".len() - 3 * 25;
    let changed = |place: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[data + place..][..value.len()].copy_from_slice(value);
        reason(read(&changed))
    };
    assert_eq!(
        changed(24, &u64::MAX.to_le_bytes()),
        "label_ends[1] is less than the one before"
    );
    assert_eq!(
        changed(40, &u64::MAX.to_le_bytes()),
        "the label of vector 2 is not a short text"
    );
    assert_eq!(
        changed(48 + 4, &f32::NAN.to_le_bytes()),
        "vectors[0][1] is not finite"
    );
    assert_eq!(
        changed(48 + 24, &[0]),
        "the label of vector 0 is not a short text"
    );
    assert_eq!(
        changed(48 + 24, &[2]),
        "the label of vector 0 is not a short text"
    );
    assert_eq!(
        changed(48 + 24 + 3, &[0xff]),
        "the label of vector 0 is not a short text"
    );

    let replaced = |old: &str, new: &str| {
        let end = data - LENGTH_BYTES;
        let header = std::str::from_utf8(&bytes[LENGTH_BYTES..data]).unwrap();
        let mut header = header.replace(old, new);
        assert_ne!(header.trim_end().len(), 0);
        header = format!("{:<end$}", header.trim_end());
        reason(read(
            &[&bytes[..LENGTH_BYTES], header.as_bytes(), &bytes[data..]].concat(),
        ))
    };
    assert_eq!(replaced(FORMAT, "something"), "it holds no cache");
    assert_eq!(
        replaced("\"version\":\"4\"", "\"version\":\"6\""),
        "its format has version 6, not 4"
    );
    assert_eq!(
        replaced("\"max_elements\":\"3\"", "\"max_elements\":\"-\""),
        "the bounds in its header are not numbers in range"
    );
    assert_eq!(
        replaced("\"ttl_ms\":\"60000\"", "\"ttl_ms\":\"NaN\""),
        "the bounds in its header are not numbers in range"
    );
    assert_eq!(
        replaced("\"labels\":", "\"Labels\":"),
        "the label of vector 0 is not a short text"
    );
    assert_eq!(
        replaced("\"added\":", "\"Added\":"),
        "its tensors are not those of a cache"
    );
    for shape in ["[2,3]", "[6,1]", "[1,6]"] {
        assert_eq!(replaced("[3,2]", shape), "its tensors are not those of a cache");
    }
    assert_eq!(reason(read(&[0; 20])), "it has only 20 bytes");
    assert_eq!(
        reason(read(&[255; 40])),
        "it does not begin as a safetensors file does"
    );
    assert!(reason(read(&[0; 40])).starts_with("its header is not that of a safetensors file"));
}

#[test]
fn lengths_that_contradict_a_file_are_damage() {
    let now = Instant::now();
    let begun = |length: u64, bytes: usize| {
        let mut file = vec![b' '; bytes];
        let end = bytes.min(LENGTH_BYTES);
        file[..end].copy_from_slice(&length.to_le_bytes()[..end]);
        reason(read::<VectorCache>(&file, now, clock(0)))
    };
    for (length, bytes, expected) in [
        (0, 0, "it has only 0 bytes"),
        (0, 23, "it has only 23 bytes"),
        (0, 24, "its header is not that of a safetensors file"),
        (16, 40, "its header is not that of a safetensors file"),
        (17, 40, "it does not begin as a safetensors file does"),
        (65_536, 70_000, "its header is not that of a safetensors file"),
        (65_537, 70_000, "it does not begin as a safetensors file does"),
    ] {
        let found = begun(length, bytes);
        assert!(found.starts_with(expected), "{length} {bytes}: {found}");
    }
}

#[test]
fn vectors_without_dimensions_or_with_too_many_are_damage() {
    let now = Instant::now();
    let bytes = written(&mut VectorCache::new(options(1, 1, None)), now, clock(0));
    for dimensions in ["0", "9007199254740993"] {
        // Of an empty cache, there is a checksum behind the header, which may have a bracket.
        let header = str::from_utf8(&bytes[LENGTH_BYTES..bytes.len() - CHECKSUM_BYTES]).unwrap();
        let header = header.replace("[0,1]", &format!("[0,{dimensions}]"));
        assert!(header.contains(dimensions));
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.bytes().chain([0; CHECKSUM_BYTES]));
        let refused = reason(read::<VectorCache>(&with_checksum(file), now, clock(0)));
        assert_eq!(refused, "its tensors are not those of a cache", "{dimensions}");
    }
}

#[test]
fn labels_too_long_for_a_cache_are_damage() {
    let now = Instant::now();
    let mut cache = VectorCache::new(options(1, 1, None));
    let label = |length: usize| Some(Label::from("x".repeat(length)));
    cache.add(&[1.0], label(MAX_LABEL_BYTES), now).unwrap();
    let bytes = written(&mut cache, now, clock(0));
    assert!(read::<VectorCache>(&bytes, now, clock(0)).is_ok());
    cache.rows.pop_front();
    let mut scaled = Scaled::default();
    scaled.set(&[1.0], "vector").unwrap();
    cache.rows.reserve().unwrap();
    cache
        .rows
        .push_back(&scaled, label(MAX_LABEL_BYTES + 1), Moment::at(now));
    let bytes = written(&mut cache, now, clock(0));
    let refused = reason(read::<VectorCache>(&bytes, now, clock(0)));
    assert_eq!(refused, "the label of vector 0 is not a short text");
}

#[test]
fn a_smaller_cache_keeps_the_newest() {
    /// Of these, 1,024 make a block.
    const DIMENSIONS: usize = 64;
    const COUNT: u16 = 2500;
    let now = Instant::now();
    let add = |cache: &mut VectorCache, numbers: Range<u16>| {
        for number in numbers {
            let label = Some(number.to_string().into());
            cache.add(&[f64::from(number); DIMENSIONS], label, now).unwrap();
        }
    };
    let mut cache = VectorCache::new(options(COUNT.into(), DIMENSIONS, None));
    add(&mut cache, 0..COUNT);
    let bytes = written(&mut cache, now, clock(0));
    for max_elements in [0, 1, 1023, 1024, 1025, 2499, 2500, 2501, usize::MAX] {
        let mut copy = VectorCache::read(&bytes, Some(max_elements), now, clock(0)).unwrap();
        assert_eq!(copy.options().max_elements, max_elements);
        let all = contents(&cache, now);
        assert_eq!(contents(&copy, now), all[2500 - max_elements.min(2500)..]);

        // From here on it behaves as a cache that was never in a file.
        let mut plain = VectorCache::new(options(max_elements, DIMENSIONS, None));
        for cache in [&mut copy, &mut plain] {
            add(cache, 0..COUNT);
        }
        let plain = contents(&plain, now);
        let copy = contents(&copy, now);
        assert_eq!(copy[copy.len() - plain.len()..], plain);
    }
}

#[test]
fn vectors_age_while_they_lie_in_a_file() {
    let now = Instant::now();
    let mut cache = VectorCache::new(options(9, 1, Some(100)));
    cache.add(&[1.0], None, now).unwrap();
    cache.add(&[2.0], None, now + Duration::from_millis(50)).unwrap();
    let bytes = written(&mut cache, now + Duration::from_millis(50), clock(50));
    let living = |at| read::<VectorCache>(&bytes, now, clock(at)).unwrap().len(now);
    assert_eq!([50, 99, 100, 149, 150].map(living), [2, 2, 1, 1, 0]);
    // Saved before 1970, by a clock that was never set.
    let before = |ms| UNIX_EPOCH - Duration::from_millis(ms);
    let early = written(&mut cache, now + Duration::from_millis(50), before(40));
    let at = |clock| read::<VectorCache>(&early, now, clock).unwrap().len(now);
    assert_eq!(
        [before(0), UNIX_EPOCH + Duration::from_millis(60)].map(at),
        [2, 0]
    );
    // The clock was set back: everything was added just now.
    let mut young = read::<VectorCache>(&bytes, now, clock(0) - Duration::from_secs(3600)).unwrap();
    assert_eq!(young.len(now + Duration::from_millis(99)), 2);
    assert_eq!(young.len(now + Duration::from_millis(100)), 0);
}

#[test]
fn the_order_of_age_holds_whatever_the_clock_does() {
    let start = Instant::now();
    let now = |ms| start + Duration::from_millis(ms);
    let mut cache = VectorCache::new(options(9, 1, Some(100)));
    // Two threads that each read the clock before they waited for the lock.
    for ms in [0, 20, 10, 30] {
        cache.add(&[1.0], None, now(ms)).unwrap();
    }
    let bytes = written(&mut cache, now(30), clock(30));
    let ages = |cache: &VectorCache, now| contents(cache, now).into_iter().map(|entry| entry.2);
    let expected = [30, 10, 10, 0].map(Duration::from_millis);
    assert!(ages(&cache, now(30)).eq(expected));
    let copy = read::<VectorCache>(&bytes, start, clock(30)).unwrap();
    assert!(ages(&copy, start).eq(expected));

    // A file that another program wrote.
    let data = bytes.len() - CHECKSUM_BYTES - 4 * (8 + 8 + 4 + 1);
    let mut descending = bytes.clone();
    descending[data..][..8].copy_from_slice(&microseconds(clock(20)).to_le_bytes());
    descending[data + 8..][..8].copy_from_slice(&microseconds(clock(0)).to_le_bytes());
    let copy = read::<VectorCache>(&with_checksum(descending), start, clock(30)).unwrap();
    assert!(ages(&copy, start).eq([10, 10, 10, 0].map(Duration::from_millis)));
}

#[test]
fn times_to_live_are_the_same_in_milliseconds() {
    for nanoseconds in [0, 1, 100_000, 999_999_999, 60_000_500_000, 1_234_567_890_123_457] {
        let duration = Duration::from_nanos(nanoseconds);
        assert_eq!(time_to_live(milliseconds(duration)), Some(duration));
    }
    assert_eq!(time_to_live(f64::INFINITY), None);
    assert_eq!(time_to_live(1e300), None);
}

#[cfg_attr(miri, ignore = "about the file system")]
#[test]
fn a_file_is_replaced_and_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.safetensors");
    let now = Instant::now();
    let missing = load(&path).unwrap_err();
    assert_eq!(missing.code(), "ERR_MEMORY_NOT_FOUND");
    let mut cache = example(now);
    for _ in 0..2 {
        cache.snapshot(now, SystemTime::now()).save(&path).unwrap();
        let mut copy = load(&path).unwrap();
        assert_eq!(copy.len(Instant::now()), cache.len(now));
        assert_eq!(copy.origin, cache.origin);
        cache.add(&[1.0, 1.0], None, now).unwrap();
    }
    let longer = [&fs::read(&path).unwrap()[..], b" "].concat();
    fs::write(&path, &longer).unwrap();
    let error = load(&path).unwrap_err();
    let expected = format!("it has {} bytes, not the", longer.len());
    assert!(error.to_string().contains(&expected), "{error}");
    fs::write(&path, "vectors").unwrap();
    let error = load(&path).unwrap_err();
    assert_eq!(error.code(), "ERR_MEMORY_DAMAGED");
    assert!(
        error.to_string().starts_with(&path.display().to_string()),
        "{error}"
    );
    let names: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["memory.safetensors"]);
}

#[cfg_attr(miri, ignore = "about the file system")]
#[test]
fn save_and_load_refuse_paths_of_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let snapshot = example(now).snapshot(now, SystemTime::now());
    let nowhere = directory.path().join("missing").join("file");
    for path in [directory.path(), &nowhere, Path::new("")] {
        let error = snapshot.save(path).unwrap_err();
        assert_eq!(error.code(), "ERR_IO");
        let error = load(path).unwrap_err();
        assert!(["ERR_IO", "ERR_MEMORY_NOT_FOUND"].contains(&error.code()));
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    #[cfg(unix)]
    {
        use std::os::unix::{fs::FileTypeExt, net::UnixListener};
        // Not a device of the system: a wrong save by root would replace that for all programs.
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(snapshot.save(&socket).unwrap_err().code(), "ERR_IO");
        assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
        let error = load(&socket).unwrap_err();
        assert_eq!(error.code(), "ERR_IO");
    }
}

#[cfg(unix)]
#[cfg_attr(miri, ignore = "about the file system")]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    fs::create_dir(place("folder")).unwrap();
    symlink("folder/file", place("link")).unwrap();
    symlink("link", place("link to link")).unwrap();
    symlink("loop", place("loop")).unwrap();
    let now = Instant::now();
    let snapshot = example(now).snapshot(now, SystemTime::now());
    for _ in 0..2 {
        snapshot.save(&place("link to link")).unwrap();
        assert!(fs::symlink_metadata(place("link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(place("folder/file")).unwrap().is_file());
        assert!(load(&place("link")).is_ok());
        fs::set_permissions(place("folder/file"), fs::Permissions::from_mode(0o640)).unwrap();
    }
    snapshot.save(&place("folder/file")).unwrap();
    let mode = |name| fs::metadata(place(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("folder/file"), 0o640);
    // A new file is like any that this process makes.
    File::create(place("other")).unwrap();
    snapshot.save(&place("new")).unwrap();
    assert_eq!(mode("new"), mode("other"));
    assert_eq!(snapshot.save(&place("loop")).unwrap_err().code(), "ERR_IO");
}

/// Two threads save and one adds; each load meanwhile gives one complete state.
#[cfg_attr(miri, ignore = "about the file system")]
#[test]
fn concurrent_saves_and_loads_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let cache = Arc::new(std::sync::Mutex::new(VectorCache::new(options(500, 384, None))));
    let done = AtomicBool::new(false);
    let save = || {
        let snapshot = cache.lock().unwrap().snapshot(Instant::now(), SystemTime::now());
        snapshot.save(&path).unwrap();
    };
    save();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20).for_each(|_| save()));
        }
        let adding = scope.spawn(|| {
            for number in 0..5000u16 {
                let label = Some(number.to_string().into());
                let vector = [f32::from(number); 384];
                cache.lock().unwrap().add(&vector, label, Instant::now()).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let loaded = load(&path).unwrap();
            let numbers: Vec<f32> = contents(&loaded, Instant::now())
                .iter()
                .map(|(bits, label, _)| {
                    assert_eq!(label.as_ref().unwrap().parse(), Ok(f32::from_bits(bits[0])));
                    f32::from_bits(bits[0])
                })
                .collect();
            assert!(
                numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0),
                "{numbers:?}"
            );
        }
        adding.join().unwrap();
    });
}

#[test]
fn loaded_vectors_are_not_scaled_again() {
    let mut once = Scaled::default();
    let mut twice = Scaled::default();
    for exponent in -400..400 {
        for digits in [1.0, 1.000_000_01, 1.999_999_99] {
            let vector = [digits * 2.0_f64.powi(exponent), 0.3];
            once.set(&vector, "vector").unwrap();
            twice.set(&once.components[0].0, "vector").unwrap();
            assert_eq!(once.components, twice.components);
            assert_eq!(once.inverse_norm.to_bits(), twice.inverse_norm.to_bits());
        }
    }
}
