//! Every refusal as people see it.
