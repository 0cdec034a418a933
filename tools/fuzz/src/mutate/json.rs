//! Changes of a JSON document that leave it one.

use serde_json::{Value, json};

use crate::Rng;

/// `None` where the bytes are no JSON.
pub(super) fn mutate(data: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(data).ok()?;
    let count = count(&document);
    let donor = nth(&mut document, &mut rng.below(count))?.clone();
    let mut at = rng.below(count);
    change(nth(&mut document, &mut at)?, donor, rng);
    serde_json::to_vec(&document).ok()
}

/// Values in the document, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at this position in depth-first order; counts `left` down.
fn nth<'v>(value: &'v mut Value, left: &mut usize) -> Option<&'v mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, left)),
        _ => None,
    }
}

fn change(value: &mut Value, donor: Value, rng: &mut Rng) {
    match value {
        Value::Number(number) => {
            *value = match rng.below(8) {
                0 => json!(-1),
                1 => json!(0.5),
                2 => json!(number.as_u64().unwrap_or(0).saturating_sub(1)),
                3 => json!(number.as_u64().unwrap_or(0).saturating_add(1)),
                _ => json!(rng.number()),
            }
        }
        Value::Array(items) if !items.is_empty() && rng.below(8) > 0 => {
            let (at, to) = (rng.below(items.len()), rng.below(items.len()));
            match rng.below(5) {
                0 => drop(items.remove(at)),
                1 => items.insert(to, items[at].clone()),
                2 => items.swap(at, to),
                3 => items.push(donor),
                _ => items[at] = donor,
            }
        }
        Value::Object(members) if !members.is_empty() && rng.below(8) > 0 => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = keys[rng.below(keys.len())].clone();
            match rng.below(3) {
                0 => drop(members.remove(&key)),
                1 => drop(members.insert(format!("{key}_"), donor)),
                _ => drop(members.insert(key, donor)),
            }
        }
        Value::Bool(flag) if rng.below(4) > 0 => *flag = !*flag,
        _ => *value = donor,
    }
}
