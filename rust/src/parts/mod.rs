//! A fit without rows: the tree of ExKMC grown by questions that every part of the rows answers.
//!
//! A [`PartsFit`] holds the tree and never sees a row. It asks a [`Question`]; each part of the rows gives an
//! [`Answer`], which depends on its rows and the question alone (`Gathering`); answers add up in any order, and the fit is
//! told the sum. Sums are exact ([`crate::exact`]), so the tree has the same bits as that of [`crate::fit`] with all rows
//! in memory, however they are shared out.
//!
//! | questions | what is known then |
//! |---|---|
//! | a sample of the rows, by their place | what the columns hold: kinds, levels, missing cells; their bins; whether parts stay the same |
//! | 1,001 rows at fixed places; without a reference 100,000 of all rows too | origins of the columns |
//! | weights in bins, and in smaller bins where quartiles lie, if units go by these | units of the columns |
//! | two sums of moments, if columns are standardised | units of the columns |
//! | sums over the rows of each label, if rows bring labels; or over clusters, if those of a sample are not those of all rows | their centers |
//! | with IMM's base the same of the rows that are with their center, and where the centers lie among them; at last the leaves' regrets | the base |
//! | bins of nodes, and smaller bins where a cut may hide, about twice the tree's depth | the tree |
//! | weights in bins, and in smaller bins where medians lie, for k-medians | the clusters' medians |
//! | sums over its leaves | labels, costs and means |
//!
//! Levels have the same codes in all parts from the second question on. Missing cells have a bin of their own, on either
//! side of every cut, and add nothing to costs and means. The caller says what levels cost about centers, and finds
//! clusters among a sample of the rows, between questions.
//!
//! **Bytes.** An answer takes d bins (k sums) numbers for each node that it fills, whatever the number of rows; a sum
//! takes about 10 bytes. Of an opened bin only the sums of labels are asked for that a side of a better cut inside it may
//! have (`side_labels.rs`), often two. **Time** of a question: O(n d k) for the costs of the rows that it asks about.

mod answer;
mod base;
mod base_ask;
mod base_cut;
mod bins;
mod bytes;
mod checkpoint;
mod classes;
mod columns;
mod cuts;
mod fit;
mod gathering;
mod growth;
mod label_means;
mod label_medians;
mod opening;
mod quantiles;
mod question;
mod reference;
mod reopening;
mod result;
mod routing;
mod side_labels;

pub use answer::{Answer, PartRows};
pub use base_ask::{BaseAsk, SidesAsk};
pub use classes::{BatchLabels, Classes, LabelRule};
pub use columns::{FoundColumn, PartColumn};
pub use fit::{PartsFit, PartsSettings, ReferenceRule, ScaleRule};
pub use gathering::Gathering;
pub use label_means::{LabelCenters, MeansAsk};
pub use question::{
    Ask, ColumnBins, Geometry, GrowAsk, LeavesAsk, Open, Question, RanksAsk, RowGroups,
};
pub use reference::{FoundReference, ReferenceRows};
pub use result::{Clusters, PartsResult};
pub use routing::TestNode;
