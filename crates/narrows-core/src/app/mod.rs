//! What the application on one host does next. Applications see their own host only.
