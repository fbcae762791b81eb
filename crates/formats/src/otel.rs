//! Spans of OpenTelemetry.
