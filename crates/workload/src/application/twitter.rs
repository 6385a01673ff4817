//! A Twitter clone, with every row a register.

use super::schema::{Rows, Table, key};
use super::{Past, RING, Steps, popular};
use crate::rng::Rng;

const USER: usize = 0;
const TWEET: usize = 1;
/// Which of a user's tweets is the last.
const LAST_TWEET: usize = 2;
/// Whom a user follows.
const FOLLOWING: usize = 3;
/// By whom a user is followed.
const FOLLOWERS: usize = 4;

/// Per unit of scale.
const USERS: u64 = 100;
/// How far back a tweet is looked for.
const RECENT: u64 = 200;
/// How many tweets a page has, and how many users a timeline is of.
const PAGE: usize = 5;

/// Those of a timeline.
pub(super) const MAX_OPS: u32 = 1 + 2 * PAGE as u32;

pub(super) const TABLES: [Table; 5] = [
    Table::new("users", Rows::Scaled, &[key("user_id", USERS)], &["joined", "verified"]),
    Table::new("tweets", Rows::Inserted, &[key("tweet_id", RING)], &["written", "length", "likes"]),
    Table::new("last_tweets", Rows::Scaled, &[key("user_id", USERS)], &["tweet_id"]),
    Table::new("following", Rows::Scaled, &[key("user_id", USERS)], &["latest_id", "total"]),
    Table::new("followers", Rows::Scaled, &[key("user_id", USERS)], &["latest_id", "total"]),
];

/// What a transaction is about.
enum Deed {
    Tweet,
    Follow,
    Timeline,
    Profile,
}

fn deed(rng: &mut Rng) -> Deed {
    match rng.below(100) {
        0..25 => Deed::Tweet,
        25..40 => Deed::Follow,
        40..80 => Deed::Timeline,
        _ => Deed::Profile,
    }
}

/// Who tweets in a transaction, if somebody does. The tweet has its number.
fn author(past: &Past, number: u64) -> Option<u64> {
    let mut rng = past.rng(number);
    let Deed::Tweet = deed(&mut rng) else { return None };
    Some(popular(&mut rng, USERS * past.scale))
}

/// The last tweets, each with its author, the newest first.
fn recent(past: &Past, number: u64) -> impl Iterator<Item = (u64, u64)> {
    past.before(number, RECENT).filter_map(|number| Some((number, author(past, number)?)))
}

pub(super) fn plan(past: &Past, number: u64, steps: &mut Steps<'_>) {
    let mut rng = past.rng(number);
    let deed = deed(&mut rng);
    let users = USERS * past.scale;
    let user = popular(&mut rng, users);
    match deed {
        Deed::Tweet => {
            steps.read(USER, user);
            steps.write(TWEET, number);
            steps.update(LAST_TWEET, user);
        }
        Deed::Follow => {
            steps.update(FOLLOWING, user);
            steps.update(FOLLOWERS, popular(&mut rng, users));
        }
        Deed::Timeline => {
            steps.read(FOLLOWING, user);
            for (tweet, author) in recent(past, number).take(PAGE) {
                steps.read(LAST_TWEET, author);
                steps.read(TWEET, tweet);
            }
        }
        Deed::Profile => {
            steps.read(USER, user);
            steps.read(LAST_TWEET, user);
            steps.read(FOLLOWERS, user);
            let his = recent(past, number).filter(|(_, author)| *author == user);
            his.take(PAGE).for_each(|(tweet, _)| steps.read(TWEET, tweet));
        }
    }
}
