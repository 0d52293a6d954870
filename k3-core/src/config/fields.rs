//! Checked access to the fields of one JSON object. Faults are collected, so that all of them are told at once.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Display;

use super::json::{Json, Object};

/// One object of the config. Every accessor returns `None` after it has noted a fault.
pub(super) struct Fields<'a> {
    object: &'a Object,
    /// The object around this one, where the same field may be repeated but not contradicted.
    outer: Option<&'a Object>,
    /// What comes before a field's name in messages.
    path: String,
    faults: &'a RefCell<Vec<String>>,
}

impl<'a> Fields<'a> {
    /// The fields of an object at the top level, or at `path`, which ends in a point.
    pub(super) fn new(object: &'a Object, path: &str, faults: &'a RefCell<Vec<String>>) -> Self {
        Self { object, outer: None, path: path.into(), faults }
    }

    /// The fields of the object that is the field `name` of this one.
    pub(super) fn inside(&self, name: &str, object: &'a Object) -> Self {
        Self { object, outer: None, path: format!("{}{name}.", self.path), faults: self.faults }
    }

    /// The same fields, each of which `outer` may repeat but not contradict.
    pub(super) fn within(self, outer: &'a Object) -> Self {
        Self { outer: Some(outer), ..self }
    }

    /// Notes what is wrong with the field `name`.
    pub(super) fn fault(&self, name: &str, reason: impl Display) {
        self.faults.borrow_mut().push(format!("{}{name}: {reason}", self.path));
    }

    /// The value in this object alone, if the key exists at all.
    pub(super) fn own(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name)
    }

    /// The value at the outer level and in this object, where given, each with the fields of its level.
    pub(super) fn levels(&self, name: &str) -> Vec<(Self, &'a Json)> {
        let outer = self.outer.map(|outer| Self::new(outer, "", self.faults));
        let own = Self { object: self.object, outer: None, path: self.path.clone(), faults: self.faults };
        outer.into_iter().chain([own]).filter_map(|level| level.own(name).map(|value| (level, value))).collect()
    }

    /// The value, if the key exists at all.
    pub(super) fn find(&self, name: &str) -> Option<&'a Json> {
        let value = self.own(name);
        if let (Some(value), Some(repeated)) = (value, self.outer.and_then(|outer| outer.get(name)))
            && value != repeated
        {
            self.fault(name, "differs from the field of the same name at the top level");
        }
        value
    }

    /// The value of a key that must exist.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json> {
        let value = self.find(name);
        if value.is_none() {
            self.fault(name, "missing");
        }
        value
    }

    fn mistyped<T>(&self, name: &str, value: &Json, wanted: &str) -> Option<T> {
        self.fault(name, format_args!("is {}, not {wanted}", value.kind()));
        None
    }

    /// A whole number from `least` to `limit`.
    pub(super) fn integer(&self, name: &str, least: u32, limit: u32) -> Option<u32> {
        match self.get(name)? {
            Json::Integer(value) if *value < least.into() => {
                self.fault(name, format_args!("{value} is below {least}"));
                None
            }
            Json::Integer(value) if *value > limit.into() => {
                self.fault(name, format_args!("{value} is above {limit}, the most that is believed"));
                None
            }
            Json::Integer(value) => u32::try_from(*value).ok(),
            other => self.mistyped(name, other, "a whole number"),
        }
    }

    /// A whole number from 1 to `limit`.
    pub(super) fn size(&self, name: &str, limit: u32) -> Option<usize> {
        self.integer(name, 1, limit).map(|value| value as usize)
    }

    /// A number that is finite in single precision, and not zero.
    fn single(&self, name: &str, value: &Json) -> Option<f32> {
        let number = match value {
            #[allow(
                clippy::cast_precision_loss,
                reason = "a number that is not exact in a double is rounded like any other"
            )]
            Json::Integer(value) => *value as f64,
            Json::Float(value) => *value,
            other => return self.mistyped(name, other, "a number"),
        };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "rounding to the nearest single is what is wanted; checked below"
        )]
        let single = number as f32;
        if single.is_finite() && single != 0.0 {
            return Some(single);
        }
        self.fault(name, format_args!("{number:e} is zero or not finite in single precision"));
        None
    }

    /// A number above zero.
    pub(super) fn positive(&self, name: &str) -> Option<f32> {
        self.signed(name, self.get(name)?, 1.0)
    }

    /// A number above zero; `Some(None)` where the field is absent or null.
    pub(super) fn optional_positive(&self, name: &str) -> Option<Option<f32>> {
        self.optional_signed(name, 1.0)
    }

    /// A number below zero; `Some(None)` where the field is absent or null.
    pub(super) fn optional_negative(&self, name: &str) -> Option<Option<f32>> {
        self.optional_signed(name, -1.0)
    }

    fn optional_signed(&self, name: &str, sign: f32) -> Option<Option<f32>> {
        match self.find(name) {
            None | Some(Json::Null) => Some(None),
            Some(value) => self.signed(name, value, sign).map(Some),
        }
    }

    fn signed(&self, name: &str, value: &Json, sign: f32) -> Option<f32> {
        let number = self.single(name, value)?;
        if number * sign > 0.0 {
            return Some(number);
        }
        let side = if sign > 0.0 { "above" } else { "below" };
        self.fault(name, format_args!("{number} is not {side} zero"));
        None
    }

    /// `true` or `false`.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Json::Bool(value) => Some(*value),
            other => self.mistyped(name, other, "a switch"),
        }
    }

    /// A list.
    pub(super) fn list(&self, name: &str) -> Option<&'a [Json]> {
        match self.get(name)? {
            Json::Array(items) => Some(items),
            other => self.mistyped(name, other, "a list"),
        }
    }

    /// The fields of an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        match self.get(name)? {
            Json::Object(object) => Some(self.inside(name, object)),
            other => self.mistyped(name, other, "an object"),
        }
    }

    /// A field that must have the one value that is implemented.
    pub(super) fn only(&self, name: &str, supported: &Json) {
        if let Some(value) = self.get(name) {
            self.require(name, value, supported);
        }
    }

    /// A field that may be absent or null, and otherwise must have the one value that is implemented.
    pub(super) fn only_if_given(&self, name: &str, supported: &Json) {
        if let Some(value) = self.find(name).filter(|value| **value != Json::Null) {
            self.require(name, value, supported);
        }
    }

    fn require(&self, name: &str, value: &Json, supported: &Json) {
        if value != supported {
            self.fault(name, format_args!("{value} is not supported, only {supported}"));
        }
    }
}
