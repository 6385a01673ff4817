//! An auction site after RUBiS, with every row a register.

use super::schema::{Rows, Table, key};
use super::{Past, RING, Steps, popular};
use crate::rng::Rng;

const USER: usize = 0;
const ITEM: usize = 1;
const BID: usize = 2;
const COMMENT: usize = 3;
const CATEGORY: usize = 4;

/// Per unit of scale.
const USERS: u64 = 100;
const CATEGORIES: u64 = 20;
/// How far back an offer is looked for.
const RECENT: u64 = 200;
/// How many offers a page has.
const PAGE: usize = 5;

/// Those of a page of a category.
pub(super) const MAX_OPS: u32 = 2 + 2 * PAGE as u32;

pub(super) const TABLES: [Table; 5] = [
    Table::new("users", Rows::Scaled, &[key("user_id", USERS)], &["rating", "balance"]),
    Table::new(
        "items",
        Rows::Inserted,
        &[key("item_id", RING)],
        &["quantity", "initial_price", "max_bid", "nb_of_bids"],
    ),
    Table::new("bids", Rows::Inserted, &[key("bid_id", RING)], &["quantity", "bid", "max_bid"]),
    Table::new("comments", Rows::Inserted, &[key("comment_id", RING)], &["rating", "written"]),
    Table::new("categories", Rows::Standing, &[key("category_id", CATEGORIES)], &["nb_of_items"]),
];

/// What a transaction is about.
enum Deed {
    Browse,
    View,
    Bid,
    Buy,
    Sell,
    Comment,
}

/// About the shares of RUBiS's bidding mix, in which 15% of the requests write; more do here, since
/// those that do not touch the database are left out.
fn deed(rng: &mut Rng) -> Deed {
    match rng.below(100) {
        0..30 => Deed::Browse,
        30..50 => Deed::View,
        50..75 => Deed::Bid,
        75..80 => Deed::Buy,
        80..93 => Deed::Sell,
        _ => Deed::Comment,
    }
}

/// Something that is sold. It has the number of the transaction that offered it.
#[derive(Clone, Copy)]
struct Offer {
    number: u64,
    seller: u64,
    category: u64,
}

impl Offer {
    /// What a transaction offers, if it sells.
    fn of(past: &Past, number: u64) -> Option<Offer> {
        let mut rng = past.rng(number);
        let Deed::Sell = deed(&mut rng) else { return None };
        let seller = popular(&mut rng, USERS * past.scale);
        Some(Offer { number, seller, category: rng.below(CATEGORIES) })
    }

    /// What was offered of late, the newest first.
    fn recent(past: &Past, number: u64) -> impl Iterator<Item = Offer> {
        past.before(number, RECENT).filter_map(|number| Offer::of(past, number))
    }
}

pub(super) fn plan(past: &Past, number: u64, steps: &mut Steps<'_>) {
    let mut rng = past.rng(number);
    let deed = deed(&mut rng);
    let user = popular(&mut rng, USERS * past.scale);
    // The newer an offer, the more people look at it.
    let nth = popular(&mut rng, 10) as usize;
    let offer = Offer::recent(past, number).nth(nth);
    match (deed, offer) {
        (Deed::Browse, _) => {
            let category = rng.below(CATEGORIES);
            steps.read(CATEGORY, category);
            let of_category = |offer: &Offer| offer.category == category;
            for offer in Offer::recent(past, number).filter(of_category).take(PAGE) {
                steps.read(ITEM, offer.number);
                steps.read(USER, offer.seller);
            }
        }
        (Deed::Sell, _) => {
            if let Some(offer) = Offer::of(past, number) {
                steps.update(USER, offer.seller);
                steps.write(ITEM, number);
                steps.update(CATEGORY, offer.category);
            }
        }
        (Deed::View, Some(offer)) => {
            steps.read(ITEM, offer.number);
            steps.read(USER, offer.seller);
        }
        (Deed::Bid, Some(offer)) => {
            steps.read(USER, user);
            steps.update(ITEM, offer.number);
            steps.write(BID, number);
        }
        (Deed::Buy, Some(offer)) => {
            steps.update(USER, user);
            steps.update(ITEM, offer.number);
        }
        (Deed::Comment, Some(offer)) => {
            steps.read(ITEM, offer.number);
            steps.write(COMMENT, number);
            steps.update(USER, offer.seller);
        }
        // Nothing is on sale yet.
        (_, None) => steps.read(USER, user),
    }
}
