//! The name of a plan's results: a stable hash of all that a run depends on.
//!
//! The plan, without its labels (`experiment`, `arm`, `axes`, `declared`), is written as canonical JSON: keys sorted by
//! bytes, no blanks, numbers in their shortest form. The hash is the 128-bit FNV-1a of those bytes, in lower-case
//! hexadecimal. It is not meant to withstand an adversary: results are trusted as far as the folder they lie in.

use serde_json::Value;

use crate::Plan;

/// The labels: what a plan is called, not what it is.
const LABELS: &[&str] = &["experiment", "arm", "axes", "declared"];

impl Plan {
    /// 32 hexadecimal digits, the same for equal plans whatever they are called, on every machine and in every version
    /// whose plans have the same fields.
    pub fn hash(&self) -> String {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { unreachable!("a plan is a JSON object") };
        fields.retain(|key, _| !LABELS.contains(&key.as_str()));
        format!("{:032x}", of_json(&Value::Object(fields)))
    }
}

/// The hash of a JSON value in its canonical form.
pub fn of_json(value: &Value) -> u128 {
    let mut text = String::new();
    write_canonical(value, &mut text);
    fnv1a_128(text.as_bytes())
}

/// JSON with sorted keys and no blanks.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            text.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(&fields[key], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The 128-bit FNV-1a hash.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_bytes_is_the_published_fnv1a() {
        assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1a_128(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn keys_are_sorted_whatever_their_order() {
        let text = |json: &str| {
            let mut text = String::new();
            write_canonical(&serde_json::from_str(json).unwrap(), &mut text);
            text
        };
        assert_eq!(
            text(r#"{"b": [1, 0.15, null], "a": {"d": true, "c": "x\"y"}}"#),
            r#"{"a":{"c":"x\"y","d":true},"b":[1,0.15,null]}"#
        );
    }
}
