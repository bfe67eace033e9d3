//! Prints the cluster of every row: `score model.json < rows`, each row a JSON array on a line.
use serde_json::{Value, from_str};

/// What the tests compare of a column; NaN where it is missing or an unknown level.
fn cell(tree: &Value, feature: usize, row: &Value) -> f64 {
    let (value, levels) = (&row[feature], tree["levels"][feature].as_array());
    let text = value.as_bool().map(|flag| flag.to_string()).or(value.as_str().map(String::from));
    let code = levels.map(|all| all.iter().position(|level| level.as_str() == text.as_deref()));
    code.map_or(value.as_f64(), |code| Some(code? as f64)).unwrap_or(f64::NAN)
}

fn goes_left(tree: &Value, node: usize, row: &Value) -> bool {
    let number = |name: &str, place: usize| tree[name][place].as_f64().unwrap_or(f64::NAN);
    let entries = |name: &str| number(name, node) as usize..number(name, node + 1) as usize;
    if tree["kind"][node] == 3 {
        return entries("oblique_indptr").fold(number("oblique_bias", node), |score, term| {
            let x = cell(tree, number("oblique_indices", term) as usize, row);
            assert!(!x.is_nan(), "the tree takes no missing cells");
            score + number("oblique_weights", term) * x
        }) < 0.0;
    }
    let x = cell(tree, number("feature", node) as usize, row);
    match number("kind", node) as usize {
        _ if x.is_nan() => tree["missing_go_to_left"][node].as_bool().expect("a direction"),
        1 => x <= number("threshold", node),
        2 => number("lower", node) <= x && x <= number("upper", node),
        4 => entries("levels_indptr").any(|place| number("levels_codes", place) == x),
        _ => false,
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of a model file");
    let tree = &from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap()["tree"];
    let n_leaves = tree["kind"].as_array().unwrap().len() / 2 + 1;
    let name = if tree["n_base_leaves"] == n_leaves { "base_cluster" } else { "cluster" };
    for line in std::io::stdin().lines() {
        let (row, mut node): (Value, usize) = (from_str(&line.unwrap()).unwrap(), 0);
        while tree["kind"][node] != 0 {
            let side = ["children_right", "children_left"][goes_left(tree, node, &row) as usize];
            node = tree[side][node].as_u64().unwrap() as usize;
        }
        println!("{}", tree["classes"][tree[name][node].as_u64().unwrap() as usize]);
    }
}
