package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The bounds of a schema that a toolkit's server gives.
const (
	mostSchema      = 64 << 10 // as it came and as it is passed on, in bytes
	mostSchemas     = 1 << 20  // those of one toolkit, as they are passed on
	mostSchemaNodes = 4000     // with its references put in their places
	mostSchemaDepth = 24
	mostSchemaText  = 1 << 10 // one description in it, in bytes
	mostSaid        = 500     // of what had to be left out, in the tool's description
)

// propertyForm is what clients and models take as the name of an argument.
var propertyForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// anything is the schema that a tool gets whose own cannot be passed on.
const anything = `{"additionalProperties":true,"properties":{},"type":"object"}`

// form is a schema as clients and models accept it, ready to check arguments. It is
// read-only once made.
type form struct {
	schema  json.RawMessage
	checker checker
	said    string // what was left out, for the tool's description; empty: nothing was
}

// acceptable brings a schema into the form that clients and models accept: an
// object with properties at the root, without combinators or references there;
// references to the schema's own definitions are put in their places. Whatever
// cannot be is left out, never made stricter: the server itself still checks.
func acceptable(raw json.RawMessage) form {
	f, err := formOf(raw)
	if err == nil {
		return f
	}
	text := "Its arguments cannot be described: " + err.Error() + "."
	if len(raw) <= mostSchema {
		text += " It begins: " + cutAt(compact(raw), mostSaid)
	}
	return undescribed(text)
}

// undescribed is the form of a schema that cannot be passed on.
func undescribed(said string) form {
	schema, _ := compile([]byte(anything)) // it is one
	return form{schema: json.RawMessage(anything), checker: checker{schema: schema, width: 1}, said: said}
}

// formOf is acceptable, but for a schema that cannot be passed on at all. The error
// says why, as half a sentence about the arguments.
func formOf(raw json.RawMessage) (form, error) {
	root, err := decodeSchema(raw)
	if err != nil {
		return form{}, err
	}
	tooLarge := fmt.Errorf("their schema is too large or nests too deep: with its references put in their places it may have %d bytes and %d parts, %d deep", mostSchema, mostSchemaNodes, mostSchemaDepth)
	w := schemaWalk{root: root, room: mostSchema}
	flat, ok := w.schema(root, nil, 0).(map[string]any)
	if !ok || w.over() {
		return form{}, tooLarge
	}
	said := rooted(flat)
	text, err := json.Marshal(flat)
	if err != nil {
		return form{}, errors.New("their schema is none")
	}
	if len(text) > mostSchema {
		return form{}, tooLarge
	}
	schema, err := compile(text)
	if err != nil {
		return form{}, errors.New("their schema is none")
	}
	return form{schema: text, checker: checker{schema: schema, width: width(flat)}, said: said}, nil
}

func decodeSchema(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{"type": "object"}, nil
	}
	if len(raw) > mostSchema {
		return nil, fmt.Errorf("their schema has %d bytes, and at most %d are taken", len(raw), mostSchema)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil || root == nil {
		return nil, errors.New("their schema is no object")
	}
	return root, nil
}

// combinators are what no client takes at the root.
func combinators() []string {
	return []string{"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "unevaluatedProperties", "patternProperties", "propertyNames"}
}

// rooted makes the root of a schema one that clients accept, and returns what it
// had to leave out.
func rooted(root map[string]any) (said string) {
	left := map[string]any{}
	for _, word := range combinators() {
		if value, ok := root[word]; ok {
			left[word] = value
			delete(root, word)
		}
	}
	root["type"] = "object"
	properties, ok := root["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
	}
	required := requiredOf(root)
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		branches, _ := left[word].([]any)
		for _, branch := range branches {
			adopt(properties, branch)
			if b, ok := branch.(map[string]any); ok && word == "allOf" {
				required = append(required, requiredOf(b)...)
			}
		}
	}
	if len(left) > 0 {
		delete(root, "additionalProperties") // a branch may have had others
	}
	var dropped []string
	for name := range properties {
		if !propertyForm.MatchString(name) {
			dropped = append(dropped, name)
			delete(properties, name)
			delete(root, "additionalProperties")
		}
	}
	slices.Sort(required)
	required = slices.DeleteFunc(slices.Compact(required), func(name string) bool { return properties[name] == nil })
	root["properties"] = properties
	delete(root, "required")
	if len(required) > 0 {
		root["required"] = required
	}
	var parts []string
	if len(left) > 0 {
		text, _ := json.Marshal(left) // it came from JSON
		parts = append(parts, "Its arguments also have to match: "+cutAt(string(text), mostSaid))
	}
	if len(dropped) > 0 {
		slices.Sort(dropped)
		for i := range dropped {
			dropped[i] = shown(clean(dropped[i]))
		}
		parts = append(parts, "It also takes arguments that cannot be described here: "+cutAt(strings.Join(dropped, ", "), mostSaid))
	}
	return strings.Join(parts, "\n")
}

// adopt takes the properties of a branch into those of the root, so that a model
// sees that they are there; one that branches describe in different ways may be
// anything.
func adopt(properties map[string]any, branch any) {
	b, _ := branch.(map[string]any)
	more, _ := b["properties"].(map[string]any)
	for name, schema := range more {
		mine, ok := properties[name]
		switch {
		case !ok:
			properties[name] = schema
		case !equalJSON(mine, schema):
			properties[name] = map[string]any{}
		}
	}
}

func requiredOf(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func equalJSON(a, b any) bool {
	left, err1 := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return clean(b.String())
}
