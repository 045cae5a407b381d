//! One-line forms: allocate, plan, record, submit.
