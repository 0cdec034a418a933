//! The recognizer against the definition, and how often segments are looked at.
