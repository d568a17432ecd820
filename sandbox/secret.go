package sandbox

import "log/slog"

// redacted stands wherever a Secret would be shown.
const redacted = "[redacted]"

// Secret is a value that must not be seen: it prints as redacted with every
// verb of fmt, in slog, JSON and YAML. Reveal is the only way to its content
// (SES-14); the provider calls it where the engine's request is built.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String returns a fixed text.
func (Secret) String() string { return redacted }

// GoString returns a fixed text, for %#v.
func (Secret) GoString() string { return redacted }

// MarshalText gives a fixed text to JSON and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue gives a fixed text to slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
