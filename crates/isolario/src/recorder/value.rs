//! What can be a key or a value of a recorded operation.

use std::borrow::Cow;

use isolario_model::{Value, ValueRef};

/// Whatever can be a key or a value: numbers, truth values, strings, bytes; [`None`] is nothing.
///
/// Numbers and strings are recorded without a copy in between.
pub trait AsValue {
    /// Hands the value over.
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R;

    /// Copies the value.
    fn to_value(&self) -> Value {
        self.with_value(owned)
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    value.to_owned()
}

macro_rules! from_numbers {
    ($wide:ty: $($number:ty),+) => {$(
        impl AsValue for $number {
            #[inline]
            fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
                take(ValueRef::from(*self as $wide))
            }
        }
    )+};
}

from_numbers!(i64: i8, i16, i32, i64, isize);
from_numbers!(u64: u8, u16, u32, u64, usize);

impl AsValue for bool {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(ValueRef::Bool(*self))
    }
}

impl AsValue for str {
    #[inline]
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(ValueRef::Text(self))
    }
}

impl AsValue for String {
    #[inline]
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(ValueRef::Text(self))
    }
}

/// Text where the bytes are UTF-8, and SQL's `x'…'` otherwise.
impl AsValue for [u8] {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        match str::from_utf8(self) {
            Ok(text) => take(ValueRef::Text(text)),
            Err(_) => {
                let digits: String = self.iter().map(|byte| format!("{byte:02x}")).collect();
                take(ValueRef::Other(&format!("x'{digits}'")))
            }
        }
    }
}

impl<const N: usize> AsValue for [u8; N] {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        self.as_slice().with_value(take)
    }
}

impl AsValue for Vec<u8> {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        self.as_slice().with_value(take)
    }
}

impl AsValue for Cow<'_, str> {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(ValueRef::Text(self))
    }
}

impl AsValue for ValueRef<'_> {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(*self)
    }
}

impl AsValue for Value {
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        take(self.as_ref())
    }
}

/// Nothing there, or the value.
impl<V: AsValue> AsValue for Option<V> {
    #[inline]
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        match self {
            Some(value) => value.with_value(take),
            None => take(ValueRef::Nil),
        }
    }
}

impl<V: AsValue + ?Sized> AsValue for &V {
    #[inline]
    fn with_value<R>(&self, take: impl FnOnce(ValueRef<'_>) -> R) -> R {
        (**self).with_value(take)
    }
}
