//! `Iamin` against the reference.

super::iamax::position_tests!(Iamin, iamin);
