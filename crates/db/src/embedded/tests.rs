use std::collections::HashMap;
use std::sync::MutexGuard;

use super::*;
use crate::database::ConditionalResult;
use crate::error::ErrorClass;

type All = HashMap<Vec<u8>, Vec<u8>>;

/// Transactions work on a copy. What is wrong with it besides, the tests say.
#[derive(Clone, Default)]
struct Toy {
    all: Arc<Mutex<(u64, All)>>,
    panics: bool,
}

struct Copied {
    toy: Toy,
    version: u64,
    copy: All,
}

impl Store for Toy {
    type Transaction = Copied;

    fn begin(&self, _: Access) -> Result<Copied, DbError> {
        let (version, copy) = self.all.lock().unwrap().clone();
        Ok(Copied { toy: self.clone(), version, copy })
    }
}

impl Transaction for Copied {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        assert!(!self.toy.panics, "out of order");
        Ok(self.copy.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.copy.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.copy.remove(key);
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        assert!(!self.toy.panics, "out of order");
        let mut current = self.toy.all.lock().unwrap();
        if current.0 != self.version {
            return Err(DbError::retryable("somebody else committed"));
        }
        *current = (self.version + 1, self.copy);
        Ok(())
    }
}

/// One transaction at a time, which holds the lock: it borrows, and stays on its thread.
#[derive(Default)]
struct Locked(Mutex<All>);

struct Holding<'s> {
    all: MutexGuard<'s, All>,
    before: All,
}

impl LocalStore for Locked {
    type Transaction<'s> = Holding<'s>;

    fn begin(&self, _: Access) -> Result<Holding<'_>, DbError> {
        let all = self.0.lock().unwrap();
        Ok(Holding { before: all.clone(), all })
    }
}

impl Transaction for Holding<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.all.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.all.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        Ok(())
    }

    fn rollback(mut self) -> Result<(), DbError> {
        *self.all = std::mem::take(&mut self.before);
        Ok(())
    }
}

fn session(database: &EmbeddedDatabase) -> Box<dyn Connection> {
    database.connect().unwrap()
}

fn each() -> [EmbeddedDatabase; 3] {
    [
        EmbeddedDatabase::new("toy", Toy::default()),
        EmbeddedDatabase::watched("watched", Toy::default()),
        EmbeddedDatabase::local("locked", Locked::default()),
    ]
}

#[test]
fn registers_lists_and_conditions_are_gets_and_puts() {
    for database in each() {
        database.prepare(&Layout::new(Kind::Mini, 10).with_value_size(20)).unwrap();
        let mut client = session(&database);
        client.begin(Access::Write).unwrap();
        assert_eq!(client.read(1), Ok(None));
        client.write(1, 5).unwrap();
        assert_eq!(client.read(1), Ok(Some(5)));
        client.append(2, 7).unwrap();
        client.append(2, 6).unwrap();
        client.commit().unwrap();
        client.begin(Access::Write).unwrap();
        let mut list = Vec::new();
        client.read_list(2, &mut list).unwrap();
        assert_eq!(list, [7, 6]);
        let failed = ConditionalResult::Failed { seen: Some(Some(5)) };
        assert_eq!(client.insert_if_absent(1, 8), Ok(failed));
        assert_eq!(client.compare_and_set(1, Some(5), 8), Ok(ConditionalResult::Applied));
        client.rollback().unwrap();
        client.begin(Access::Read).unwrap();
        assert_eq!(client.read(1), Ok(Some(5)), "{}", database.name());
    }
}

#[test]
fn a_store_can_be_run_again() {
    for database in each() {
        for _ in 0..2 {
            database.prepare(&Layout::new(Kind::Mini, 10)).unwrap();
            let mut client = session(&database);
            client.begin(Access::Write).unwrap();
            assert_eq!(client.read(1), Ok(None));
            client.write(1, 5).unwrap();
            client.commit().unwrap();
        }
    }
}

#[test]
fn conflicts_keep_their_class_and_the_session_goes_on() {
    let database = EmbeddedDatabase::new("toy", Toy::default());
    let (mut one, mut two) = (session(&database), session(&database));
    for (client, value) in [(&mut one, 5), (&mut two, 6)] {
        client.begin(Access::Write).unwrap();
        client.write(1, value).unwrap();
    }
    one.commit().unwrap();
    assert_eq!(two.commit().unwrap_err().class, ErrorClass::Retryable);
    two.rollback().unwrap();
    two.begin(Access::Write).unwrap();
    assert_eq!(two.read(1), Ok(Some(5)));
    two.delete(1).unwrap();
    assert_eq!(two.read(1), Ok(None));
}

#[test]
fn a_panic_is_an_error() {
    let database = EmbeddedDatabase::new("toy", Toy { panics: true, ..Toy::default() });
    let mut client = session(&database);
    client.begin(Access::Write).unwrap();
    let error = client.read(1).unwrap_err();
    assert_eq!(
        (error.class, error.message.as_str()),
        (ErrorClass::Fatal, "it panicked: out of order")
    );
    client.begin(Access::Write).unwrap();
    assert_eq!(client.commit().unwrap_err().class, ErrorClass::Unknown);
}

#[test]
fn who_does_not_answer_is_given_up() {
    let patience = Duration::from_millis(300);
    let database = EmbeddedDatabase::local("locked", Locked::default()).timeout(patience);
    let (mut one, mut two) = (session(&database), session(&database));
    one.begin(Access::Write).unwrap();
    let error = two.begin(Access::Write).unwrap_err();
    assert!(error.disconnected);
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Retryable, Some("timeout")));
    assert!(two.rollback().is_err());
    one.commit().unwrap();
    session(&database).begin(Access::Write).unwrap();
}

#[test]
fn claims_are_the_authors() {
    let database = each().map(|database| database.claiming([Level::StrictSerializable]));
    assert_eq!(database[0].claim(Kind::Mini, 1).levels, [Level::StrictSerializable]);
    assert_eq!(database[0].claim(Kind::Lwt, 1).levels, [Level::Linearizable]);
    assert!(EmbeddedDatabase::new("toy", Toy::default()).claim(Kind::Mini, 1).levels.is_empty());
}

#[test]
fn a_temporary_directory_goes_with_its_database() {
    let directory = Directory::of(&DbUrl::parse("toy:").unwrap()).unwrap();
    let path = directory.path().to_owned();
    let database = EmbeddedDatabase::new("toy", Toy::default()).stored_in(directory);
    assert!(path.is_dir());
    drop(database);
    assert!(!path.exists());
    let given = Directory::of(&DbUrl::parse("toy:some/where").unwrap()).unwrap();
    assert_eq!(given.path(), Path::new("some/where"));
    assert!(Directory::of(&DbUrl::parse("toy:x?y=z").unwrap()).is_err());
}
