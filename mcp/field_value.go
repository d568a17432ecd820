package mcp

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"caisson/sandbox"
)

var (
	wholeForm  = regexp.MustCompile(`^(-?[0-9]+)(\.0+)?$`)
	numberForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func asString(path string, v any, s schema) (string, error) {
	text, ok := v.(string)
	if !ok || s.enum != nil && !slices.Contains(s.enum, text) {
		return "", wrongValue(path, v, s)
	}
	return text, nil
}

func asInteger(path string, v any, s schema) (int64, error) {
	literal, ok := literalOf(v)
	m := wholeForm.FindStringSubmatch(literal)
	if !ok || m == nil {
		return 0, wrongValue(path, v, s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || !inRange(s, float64(n)) {
		return 0, wrongValue(path, v, s)
	}
	return n, nil
}

// literalOf is a number as it was written, in quotes or not.
func literalOf(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	default:
		return "", false
	}
}

func inRange(s schema, n float64) bool {
	return !math.IsInf(n, 0) && (s.min == nil || n >= *s.min) && (s.max == nil || n <= *s.max)
}

func checkName(path, text string) error {
	switch {
	case text == "":
		return sandbox.Invalid(path, "%s is empty: give a value, or leave it out", path)
	case strings.ContainsRune(text, 0):
		return sandbox.Invalid(path, "%s has a NUL byte, which cannot be passed on", path)
	}
	return nil
}

// wrongValue says what a field takes. It shows numbers and enum words that were
// sent, never other text: that may be a secret.
func wrongValue(path string, v any, s schema) error {
	got := jsonKind(v)
	if text, ok := v.(string); ok && (s.enum != nil || s.kind == "integer" || s.kind == "number" || s.kind == "boolean") {
		got = show(text)
	}
	return sandbox.Invalid(path, "%s takes %s, not %s", path, s.takes(), got)
}

// takes describes what a value must be, for messages.
func (s schema) takes() string {
	switch s.kind {
	case "string":
		if s.enum != nil {
			return "one of " + strings.Join(s.enum, ", ")
		}
		return "a string"
	case "integer", "number":
		return s.takesNumber()
	case "boolean":
		return "true or false"
	case "array":
		return "a list, each item " + s.items.takes()
	default:
		if s.values != nil {
			return "an object with string values"
		}
		return "an object with " + strings.Join(propertyNames(s.properties), ", ")
	}
}

func (s schema) takesNumber() string {
	text := "a number"
	if s.kind == "integer" {
		text = "a whole number"
	}
	switch {
	case s.min != nil && s.max != nil:
		return text + " from " + number(*s.min) + " to " + number(*s.max)
	case s.min != nil:
		return text + " from " + number(*s.min) + " up"
	default:
		return text
	}
}

func propertyNames(all []property) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.name
	}
	return names
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
