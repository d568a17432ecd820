package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// schema is the part of JSON Schema that every client of ours understands:
// single types, string enums, no unions and no references (MS-01). Validators
// and providers drop whole tool lists over anything beyond it.
type schema struct {
	kind       string // string, integer, number, boolean, array, object
	about      string
	enum       []string
	fallback   any // the default, for documentation: decoding does not apply it
	min, max   *float64
	items      *schema
	properties []property
	values     *schema // of an object with free names; else only the properties may be there
}

// property is a named part of an object's schema, in the order it is shown.
type property struct {
	name     string
	required bool
	schema   schema
}

// MarshalJSON writes the keywords in a fixed order, so that the tool list is the
// same bytes each time and a snapshot of it can be compared.
func (s schema) MarshalJSON() ([]byte, error) {
	var w objectWriter
	w.put("type", s.kind)
	if s.about != "" {
		w.put("description", s.about)
	}
	if s.enum != nil {
		w.put("enum", s.enum)
	}
	if s.fallback != nil {
		w.put("default", s.fallback)
	}
	if s.min != nil {
		w.put("minimum", *s.min)
	}
	if s.max != nil {
		w.put("maximum", *s.max)
	}
	if s.items != nil {
		w.put("items", *s.items)
	}
	if s.kind == "object" {
		s.marshalObject(&w)
	}
	return w.end()
}

// marshalObject writes what an object has beside its type. The properties are
// always there, even when there are none: some clients refuse an object schema
// without them.
func (s schema) marshalObject(w *objectWriter) {
	var props objectWriter
	required := []string{}
	for _, p := range s.properties {
		props.put(p.name, p.schema)
		if p.required {
			required = append(required, p.name)
		}
	}
	raw, err := props.end()
	w.fail(err)
	w.put("properties", json.RawMessage(raw))
	if len(required) > 0 {
		w.put("required", required)
	}
	if s.values != nil {
		w.put("additionalProperties", *s.values)
	} else {
		w.put("additionalProperties", false)
	}
}

// objectWriter writes a JSON object with its names in the order of put.
type objectWriter struct {
	buf bytes.Buffer
	err error
}

func (w *objectWriter) put(name string, value any) {
	raw, err := json.Marshal(value)
	w.fail(err)
	if w.buf.Len() > 0 {
		w.buf.WriteByte(',')
	}
	key, err := json.Marshal(name)
	w.fail(err)
	w.buf.Write(key)
	w.buf.WriteByte(':')
	w.buf.Write(raw)
}

func (w *objectWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *objectWriter) end() ([]byte, error) {
	return append(append([]byte{'{'}, w.buf.Bytes()...), '}'), w.err
}

// outputOf is the schema of a result type, read from its fields: the json tag
// names a field and says whether it may be missing, about describes it, enum
// lists a string's values. Embedded structs are taken in as JSON does. Result
// types are plain structs, so that what is sent always fits what was declared
// (MS-05).
func outputOf[T any]() schema { return typeSchema(reflect.TypeFor[T]()) }

func typeSchema(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{kind: "string"} // RFC 3339
	case t.Kind() == reflect.Pointer:
		return typeSchema(t.Elem())
	}
	switch t.Kind() {
	case reflect.String:
		return schema{kind: "string"}
	case reflect.Bool:
		return schema{kind: "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{kind: "integer"}
	case reflect.Float64:
		return schema{kind: "number"}
	case reflect.Slice:
		items := typeSchema(t.Elem())
		return schema{kind: "array", items: &items}
	case reflect.Map:
		values := typeSchema(t.Elem())
		return schema{kind: "object", values: &values}
	case reflect.Struct:
		return schema{kind: "object", properties: structProperties(t)}
	default:
		panic("mcp: a result cannot hold a " + t.String()) // found by the first test that lists tools
	}
}

func structProperties(t reflect.Type) []property {
	var all []property
	for f := range t.Fields() {
		if f.Anonymous {
			all = append(all, structProperties(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := typeSchema(f.Type)
		s.about = f.Tag.Get("about")
		if enum := f.Tag.Get("enum"); enum != "" {
			s.enum = strings.Split(enum, ",")
		}
		all = append(all, property{name: name, required: options == "", schema: s})
	}
	return all
}
