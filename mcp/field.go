package mcp

import (
	"strconv"
	"strings"

	"caisson/sandbox"
)

// field is one argument of a tool. The one description drives both what clients
// read in the schema and what is accepted from them.
type field struct {
	name     string
	required bool
	schema   schema
	put      func(path string, value any, s schema) error
}

// inputOf is the schema of a tool whose arguments are fields.
func inputOf(fields []field) schema {
	s := schema{kind: "object"}
	for _, f := range fields {
		s.properties = append(s.properties, property{f.name, f.required, f.schema})
	}
	return s
}

// must makes a field required.
func (f field) must() field { f.required = true; return f }

// oneOf limits a string to the values.
func (f field) oneOf(values ...string) field { f.schema.enum = values; return f }

// orElse tells clients what an absent argument means. The tool applies it.
func (f field) orElse(value any) field { f.schema.fallback = value; return f }

// within limits a number, both ends included.
func (f field) within(lowest, highest float64) field {
	f.schema.min, f.schema.max = &lowest, &highest
	return f
}

// atLeast limits a number from below.
func (f field) atLeast(lowest float64) field { f.schema.min = &lowest; return f }

// textField takes a string, any that JSON can carry.
func textField(name string, dst **string, about string) field {
	return field{name: name, schema: schema{kind: "string", about: about}, put: func(path string, v any, s schema) error {
		text, err := asString(path, v, s)
		*dst = &text
		return err
	}}
}

// nameField takes a string that stands for something: a handle, a path, a key.
// An empty one or one with a NUL byte cannot, and never means the default.
func nameField(name string, dst **string, about string) field {
	f := textField(name, dst, about)
	put := f.put
	f.put = func(path string, v any, s schema) error {
		if err := put(path, v, s); err != nil {
			return err
		}
		return checkName(path, **dst)
	}
	return f
}

// intField takes a whole number, in any of the forms 5, "5", 5.0 and "5.0"
// (MS-02).
func intField(name string, dst **int64, about string) field {
	return field{name: name, schema: schema{kind: "integer", about: about}, put: func(path string, v any, s schema) error {
		n, err := asInteger(path, v, s)
		*dst = &n
		return err
	}}
}

// numberField takes a number, also one in quotes.
func numberField(name string, dst **float64, about string) field {
	return field{name: name, schema: schema{kind: "number", about: about}, put: func(path string, v any, s schema) error {
		literal, ok := literalOf(v)
		n, err := strconv.ParseFloat(literal, 64)
		if !ok || !numberForm.MatchString(literal) || err != nil || !inRange(s, n) {
			return wrongValue(path, v, s)
		}
		*dst = &n
		return nil
	}}
}

// boolField takes true or false, also in quotes.
func boolField(name string, dst *bool, about string) field {
	return field{name: name, schema: schema{kind: "boolean", about: about}, put: func(path string, v any, s schema) error {
		switch v {
		case true, "true":
			*dst = true
		case false, "false":
			*dst = false
		default:
			return wrongValue(path, v, s)
		}
		return nil
	}}
}

// wordsField takes a list of strings without NUL bytes.
func wordsField(name string, dst *[]string, about string) field {
	return field{name: name, schema: schema{kind: "array", about: about, items: &schema{kind: "string"}}, put: func(path string, v any, s schema) error {
		list, ok := v.([]any)
		if !ok {
			return wrongValue(path, v, s)
		}
		*dst = make([]string, len(list))
		for i, item := range list {
			at := path + "[" + strconv.Itoa(i) + "]"
			text, err := asString(at, item, *s.items)
			if err != nil {
				return err
			}
			if strings.ContainsRune(text, 0) {
				return sandbox.Invalid(at, "%s has a NUL byte, which cannot be passed on", at)
			}
			(*dst)[i] = text
		}
		return nil
	}}
}

// mapField takes an object whose values are strings. Its values may be secret:
// no message repeats one.
func mapField(name string, dst *map[string]string, about string) field {
	return field{name: name, schema: schema{kind: "object", about: about, values: &schema{kind: "string"}}, put: func(path string, v any, s schema) error {
		o, ok := v.(*object)
		if !ok {
			return wrongValue(path, v, s)
		}
		*dst = make(map[string]string, len(o.names))
		for _, name := range o.names {
			text, err := asString(path+"."+show(name), o.values[name], *s.values)
			if err != nil {
				return err
			}
			(*dst)[name] = text
		}
		return nil
	}}
}

// listField takes a list of objects, each with the arguments that fields names.
func listField[T any](name string, dst *[]T, about string, fields func(*T) []field) field {
	items := inputOf(fields(new(T)))
	return field{name: name, schema: schema{kind: "array", about: about, items: &items}, put: func(path string, v any, s schema) error {
		list, ok := v.([]any)
		if !ok {
			return wrongValue(path, v, s)
		}
		*dst = make([]T, len(list))
		for i, item := range list {
			at := path + "[" + strconv.Itoa(i) + "]"
			o, ok := item.(*object)
			if !ok {
				return wrongValue(at, item, *s.items)
			}
			if err := fillFields(at+".", o, fields(&(*dst)[i])); err != nil {
				return err
			}
		}
		return nil
	}}
}

// or is a given argument's value, or the default of an absent one.
func or[T any](given *T, fallback T) T {
	if given == nil {
		return fallback
	}
	return *given
}
