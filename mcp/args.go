package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"caisson/internal/nearest"
	"caisson/sandbox"
)

// object is a decoded JSON object whose names are kept in the order they came.
type object struct {
	names  []string
	values map[string]any
}

// decodeArguments reads a call's arguments into the fields. It is the one place
// where arguments are decoded and the only form of them that anything later
// sees (R28): names are matched exactly, a name given twice, an unknown one and
// a wrong type are errors, and nothing is dropped in silence.
//
// Absent, null and {} are the same. A null argument is an absent one. _meta,
// which some clients put among the arguments, is ignored.
func decodeArguments(raw json.RawMessage, fields []field) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("null")
	}
	if !utf8.Valid(raw) || loneSurrogate(raw) {
		// Decoding would put U+FFFD in its place, and a file would be written
		// that is not what was sent.
		return sandbox.Invalid("arguments", "the arguments hold text that is not valid Unicode; send bytes as base64")
	}
	value, err := parseJSON(raw)
	if err != nil {
		return err
	}
	if value == nil {
		value = &object{}
	}
	args, ok := value.(*object)
	if !ok {
		return sandbox.Invalid("arguments", "arguments takes an object with named arguments, not %s", jsonKind(value))
	}
	return fillFields("", args, fields)
}

// fillFields gives each field its value from args. path is what stands before a
// name in messages.
func fillFields(path string, args *object, fields []field) error {
	known := make(map[string]bool, len(fields))
	for _, f := range fields {
		known[f.name] = true
	}
	for _, name := range args.names {
		if !known[name] && name != "_meta" {
			return unknownArgument(path, name, fields)
		}
	}
	for _, f := range fields {
		value := args.values[f.name]
		if value == nil {
			if f.required {
				return sandbox.Invalid(path+f.name, "%s is required: it takes %s", path+f.name, f.schema.takes())
			}
			continue
		}
		if err := f.put(path+f.name, value, f.schema); err != nil {
			return err
		}
	}
	return nil
}

func unknownArgument(path, name string, fields []field) error {
	if len(fields) == 0 {
		return sandbox.Invalid(path+name, "unknown argument %s: this tool takes none", show(name))
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return sandbox.Invalid(path+name, "unknown argument %s: did you mean %s?", show(path+name), path+meant(name, names))
}

// meant is the argument that was most likely meant: one that the name given
// shortens (cmd, timeout), else the one that is spelled most alike.
func meant(name string, names []string) string {
	for _, candidate := range names {
		if shortens(bareLetters(name), bareLetters(candidate)) {
			return candidate
		}
	}
	return nearest.Of(name, names)
}

// shortens says whether name is left when letters, but not the first, are taken
// out of full.
func shortens(name, full string) bool {
	if len(name) < 3 || name[0] != full[0] {
		return false
	}
	for i := 0; i < len(full) && name != ""; i++ {
		if full[i] == name[0] {
			name = name[1:]
		}
	}
	return name == ""
}

func bareLetters(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// parseJSON reads one JSON value into nil, bool, json.Number, string, []any and
// *object. encoding/json's own maps would keep the last of two equal names and
// say nothing.
func parseJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	value, err := parseValue(d)
	if err == nil {
		_, end := d.Token()
		if errors.Is(end, io.EOF) {
			return value, nil
		}
		err = errors.New("trailing data")
	}
	var twice *sandbox.Error
	if errors.As(err, &twice) {
		return nil, twice
	}
	return nil, sandbox.Invalid("arguments", "the arguments are not valid JSON")
}

func parseValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return parseObject(d)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := d.Token()
		return list, err
	default:
		return token, nil
	}
}

func parseObject(d *json.Decoder) (any, error) {
	o := &object{values: map[string]any{}}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a name is not a string")
		}
		if _, twice := o.values[name]; twice {
			return nil, sandbox.Invalid(name, "%s is given twice", show(name))
		}
		value, err := parseValue(d)
		if err != nil {
			return nil, err
		}
		o.names = append(o.names, name)
		o.values[name] = value
	}
	_, err := d.Token()
	return o, err
}

// loneSurrogate finds an escape of half a surrogate pair in JSON text.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the escaped byte, which is no escape itself
		if raw[i] != 'u' || !surrogate(raw[i:], 'd', "89ab") {
			if raw[i] == 'u' && surrogate(raw[i:], 'd', "cdef") {
				return true
			}
			continue
		}
		if i+6 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u' || !surrogate(raw[i+6:], 'd', "cdef") {
			return true
		}
		i += 10
	}
	return false
}

// surrogate says whether u, which begins with the u of an escape, is one of the
// code units whose first hex digits are first and one of second.
func surrogate(u []byte, first byte, second string) bool {
	return len(u) >= 5 && lower(u[1]) == first && bytes.IndexByte([]byte(second), lower(u[2])) >= 0
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func jsonKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "the number " + show(v.String())
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
