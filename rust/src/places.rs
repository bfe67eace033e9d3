//! The cells of a column of text as places in a list of texts: which places occur, and the codes of levels for them.

use crate::error::{Error, Result};
use crate::memory;
use crate::table::MISSING_LEVEL;

/// The place of a cell's text.
pub trait Place: Copy {
    /// None where the cell is missing.
    fn get(self) -> Option<usize>;
}

impl Place for u32 {
    fn get(self) -> Option<usize> {
        Some(self as usize)
    }
}

impl Place for i64 {
    fn get(self) -> Option<usize> {
        usize::try_from(self).ok()
    }
}

/// The places that occur, ascending, and the first row of each. O(n), and 4 bytes for each place up to the largest.
pub fn first_rows<P: Place>(places: &[P]) -> (Vec<i64>, Vec<i64>) {
    const NONE: u32 = u32::MAX;
    let mut first: Vec<u32> = vec![];
    for (row, place) in (0..).zip(places) {
        let Some(place) = place.get() else { continue };
        match first.get_mut(place) {
            Some(found) if *found != NONE => {}
            Some(found) => *found = row,
            None => {
                let more = place + 1 - first.len();
                memory::reserve(&mut first, more, "the places of texts");
                first.resize(place, NONE);
                first.push(row);
            }
        }
    }
    let occurring = (0..).zip(first).filter(|(_, row)| *row != NONE);
    occurring.map(|(place, row)| (place, i64::from(row))).unzip()
}

/// The code of each cell: that of its place in `codes`, [`MISSING_LEVEL`] where it is missing. O(n).
///
/// # Errors
/// [`Error::Value`] if a place is outside of `codes`.
pub fn codes_of<P: Place>(places: &[P], codes: &[u8]) -> Result<Vec<u8>> {
    let mut outside = None;
    let code = |place: &P| {
        let Some(place) = place.get() else { return MISSING_LEVEL };
        codes.get(place).copied().unwrap_or_else(|| {
            outside = Some(place);
            MISSING_LEVEL
        })
    };
    let found = memory::collected(places.iter().map(code), "the codes of a column");
    match outside {
        None => Ok(found),
        Some(place) => {
            Err(Error::Value(format!("Place {place} is not in the range [0, {}).", codes.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_with_their_first_rows_and_take_their_codes() {
        let places = [5i64, -1, 2, 5, 0, -1, 2];
        assert_eq!(first_rows(&places), (vec![0, 2, 5], vec![4, 2, 0]));
        let codes = [7, 9, 1, 9, 9, 0];
        assert_eq!(codes_of(&places, &codes), Ok(vec![0, 255, 1, 0, 7, 255, 1]));
        assert!(codes_of(&places, &codes[..5]).is_err());
        assert_eq!(first_rows(&[3u32, 1, 3]), (vec![1, 3], vec![1, 0]));
        assert_eq!(codes_of(&[3u32, 1], &codes), Ok(vec![9, 9]));
        for none in [&[][..], &[-1i64, -1]] {
            assert_eq!(first_rows(none), (vec![], vec![]));
        }
    }
}
