//! TPC-C, revision 5.11: its five transactions, with every row a register.

use super::schema::{Rows, Table, key};
use super::{Past, RING, Steps};
use crate::rng::Rng;

const WAREHOUSE: usize = 0;
const DISTRICT: usize = 1;
const CUSTOMER: usize = 2;
const HISTORY: usize = 3;
const NEW_ORDER: usize = 4;
const ORDER: usize = 5;
const ORDER_LINE: usize = 6;
const ITEM: usize = 7;
const STOCK: usize = 8;

/// Of a warehouse.
const DISTRICTS: u64 = 10;
/// Of a district.
const CUSTOMERS: u64 = 30;
/// Of a warehouse.
const ITEMS: u64 = 1000;
/// More than an order has.
const LINES: u64 = 16;
/// How far back an order is looked for.
const RECENT: u64 = 400;
/// How many orders the level of stock is taken over.
const LAST_ORDERS: usize = 5;

/// Those of a check of the stock.
pub(super) const MAX_OPS: u32 = 1 + LAST_ORDERS as u32 * (LINES as u32 - 1) * 2;

/// With the columns of the standard (clause 1.3) that its transactions change or look up. An order has the
/// number of the transaction that placed it, so that its place is a column of no interest here.
pub(super) const TABLES: [Table; 9] = [
    Table::new("warehouse", Rows::Scaled, &[key("w_id", 1)], &["w_tax", "w_ytd"]),
    Table::new(
        "district",
        Rows::Scaled,
        &[key("d_w_id", 1), key("d_id", DISTRICTS)],
        &["d_tax", "d_ytd", "d_next_o_id"],
    ),
    Table::new(
        "customer",
        Rows::Scaled,
        &[key("c_w_id", 1), key("c_d_id", DISTRICTS), key("c_id", CUSTOMERS)],
        &["c_balance", "c_ytd_payment", "c_payment_cnt", "c_delivery_cnt"],
    ),
    Table::new("history", Rows::Inserted, &[key("h_id", RING)], &["h_c_id", "h_date", "h_amount"]),
    Table::new("new_order", Rows::Inserted, &[key("no_o_id", RING)], &["no_d_id"]),
    Table::new(
        "orders",
        Rows::Inserted,
        &[key("o_id", RING)],
        &["o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt"],
    ),
    Table::new(
        "order_line",
        Rows::Inserted,
        &[key("ol_o_id", RING), key("ol_number", LINES)],
        &["ol_i_id", "ol_delivery_d", "ol_quantity", "ol_amount"],
    ),
    Table::new("item", Rows::Standing, &[key("i_id", ITEMS)], &["i_im_id", "i_price"]),
    Table::new(
        "stock",
        Rows::Scaled,
        &[key("s_w_id", 1), key("s_i_id", ITEMS)],
        &["s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt"],
    ),
];

/// What a transaction is about.
enum Deed {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// The shares of the standard's minimum mix (clause 5.2.3), with the rest for new orders.
fn deed(rng: &mut Rng) -> Deed {
    match rng.below(100) {
        0..45 => Deed::NewOrder,
        45..88 => Deed::Payment,
        88..92 => Deed::OrderStatus,
        92..96 => Deed::Delivery,
        _ => Deed::StockLevel,
    }
}

/// A customer's place, or a transaction's: the rows of its warehouse, district and customer.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Home {
    warehouse: u64,
    district: u64,
    customer: u64,
}

impl Home {
    fn choose(rng: &mut Rng, warehouses: u64) -> Home {
        let warehouse = rng.below(warehouses);
        let district = warehouse * DISTRICTS + rng.below(DISTRICTS);
        let customer = district * CUSTOMERS + not_uniform(rng, 7, CUSTOMERS);
        Home { warehouse, district, customer }
    }
}

/// One of so many, some of them more often than others (clause 2.1.6).
fn not_uniform(rng: &mut Rng, mask: u64, count: u64) -> u64 {
    (rng.below(mask + 1) | rng.below(count)) % count
}

/// An order, which has the number of the transaction that placed it.
struct Order {
    number: u64,
    home: Home,
    lines: u64,
    rng: Rng,
}

impl Order {
    /// What a transaction orders, if it orders.
    fn placed_by(past: &Past, number: u64) -> Option<Order> {
        let mut rng = past.rng(number);
        let Deed::NewOrder = deed(&mut rng) else { return None };
        let home = Home::choose(&mut rng, past.scale);
        let lines = 5 + rng.below(LINES - 5);
        Some(Order { number, home, lines, rng })
    }

    /// The rows of its lines, each with the row of what is ordered in stock.
    fn lines(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (first, stock) = (self.number * LINES, self.home.warehouse * ITEMS);
        let mut rng = self.rng.clone();
        (0..self.lines).map(move |line| (first + line, stock + not_uniform(&mut rng, 63, ITEMS)))
    }
}

pub(super) fn plan(past: &Past, number: u64, steps: &mut Steps<'_>) {
    let mut rng = past.rng(number);
    let deed = deed(&mut rng);
    let home = Home::choose(&mut rng, past.scale);
    let recent = || past.before(number, RECENT).filter_map(|number| Order::placed_by(past, number));
    match deed {
        Deed::NewOrder => {
            if let Some(order) = Order::placed_by(past, number) {
                new_order(&order, steps);
            }
        }
        Deed::Payment => {
            steps.update(WAREHOUSE, home.warehouse);
            steps.update(DISTRICT, home.district);
            steps.update(CUSTOMER, home.customer);
            steps.write(HISTORY, number);
        }
        Deed::OrderStatus => {
            steps.read(CUSTOMER, home.customer);
            if let Some(order) = recent().find(|order| order.home.customer == home.customer) {
                steps.read(ORDER, order.number);
                order.lines().for_each(|(line, _)| steps.read(ORDER_LINE, line));
            }
        }
        Deed::Delivery => {
            steps.read(DISTRICT, home.district);
            // The oldest that has not been delivered, as far as one can tell without asking.
            if let Some(order) =
                recent().filter(|order| order.home.district == home.district).last()
            {
                deliver(&order, steps);
            }
        }
        Deed::StockLevel => {
            steps.read(DISTRICT, home.district);
            let of_district = recent().filter(|order| order.home.district == home.district);
            for (line, stock) in of_district.take(LAST_ORDERS).flat_map(|order| order.lines()) {
                steps.read(ORDER_LINE, line);
                steps.read(STOCK, stock);
            }
        }
    }
}

fn new_order(order: &Order, steps: &mut Steps<'_>) {
    let Home { warehouse, district, customer } = order.home;
    steps.read(WAREHOUSE, warehouse);
    steps.update(DISTRICT, district);
    steps.read(CUSTOMER, customer);
    steps.write(ORDER, order.number);
    steps.write(NEW_ORDER, order.number);
    for (line, stock) in order.lines() {
        steps.read(ITEM, stock % ITEMS);
        steps.update(STOCK, stock);
        steps.write(ORDER_LINE, line);
    }
}

fn deliver(order: &Order, steps: &mut Steps<'_>) {
    steps.update(NEW_ORDER, order.number);
    steps.update(ORDER, order.number);
    order.lines().for_each(|(line, _)| steps.update(ORDER_LINE, line));
    steps.update(CUSTOMER, order.home.customer);
}
