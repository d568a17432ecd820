package executor

import (
	"encoding/json"
	"slices"
	"strings"
)

// schemaWalk copies a schema that a third party wrote: references to its own
// definitions in their places, texts cleaned and cut, nothing that nobody would
// see. What stands behind a reference is written again at each, so that what is
// written is counted, and not what was read alone.
type schemaWalk struct {
	root  map[string]any
	nodes int // copied; past the bound nothing more is
	room  int // bytes that may still be written
}

// over says whether a bound is passed. The copy is worth nothing then.
func (w *schemaWalk) over() bool { return w.nodes > mostSchemaNodes || w.room < 0 }

// spend takes bytes from the room, with what JSON puts around them, and says whether
// there was as much.
func (w *schemaWalk) spend(bytes int) bool {
	w.room -= bytes + len(`"":,`)
	return !w.over()
}

// Words of a schema by what stands behind them.
func (schemaWalk) ofSchema() []string { // one schema
	return []string{"additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"}
}

func (schemaWalk) ofSchemas() []string { // a list of schemas
	return []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"}
}

func (schemaWalk) ofNamed() []string { // schemas by name
	return []string{"properties", "patternProperties", "dependentSchemas"}
}

func (schemaWalk) leftOut() []string { // what a copy without references has no use for
	return []string{"$ref", "$defs", "definitions", "$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$comment", "$vocabulary"}
}

// schema copies one. On the way to it, the references in way were followed.
func (w *schemaWalk) schema(value any, way []string, depth int) any {
	w.nodes++
	given, ok := value.(map[string]any)
	if depth > mostSchemaDepth {
		w.room = -1
	}
	switch {
	case w.over():
		return map[string]any{}
	case !ok:
		if flag, isBool := value.(bool); isBool {
			return flag
		}
		return map[string]any{}
	}
	given, way = w.follow(given, way)
	copied := map[string]any{}
	for word, part := range given {
		if slices.Contains(w.leftOut(), word) {
			continue
		}
		if !w.spend(len(word)) {
			return copied
		}
		switch list, isList := part.([]any); {
		case slices.Contains(w.ofNamed(), word):
			copied[word] = w.named(part, way, depth)
		case isList && slices.Contains(w.ofSchemas(), word):
			all := make([]any, len(list))
			for i, item := range list {
				all[i] = w.schema(item, way, depth+1)
			}
			copied[word] = all
		case slices.Contains(w.ofSchema(), word):
			copied[word] = w.schema(part, way, depth+1)
		case word == "description" || word == "title":
			if text, isText := part.(string); isText {
				text = cutAt(clean(text), mostSchemaText)
				copied[word] = text
				w.spend(len(text))
			}
		case w.spend(size(part, depth)) && !hides(word) && !hides(part): // an enum that hides something is left out whole
			copied[word] = part
		}
	}
	return copied
}

// named copies schemas by name; names that hide something are left out.
func (w *schemaWalk) named(value any, way []string, depth int) any {
	copied := map[string]any{}
	all, _ := value.(map[string]any)
	for name, part := range all {
		if w.spend(len(name)) && !hides(name) {
			copied[name] = w.schema(part, way, depth+1)
		}
	}
	return copied
}

// follow puts what a schema refers to in its place, beside what it says itself. A
// reference that leads into itself, or out of the schema, or nowhere, leaves
// anything allowed there.
func (w *schemaWalk) follow(given map[string]any, way []string) (map[string]any, []string) {
	for range mostSchemaDepth {
		ref, ok := given["$ref"].(string)
		if !ok {
			return given, way
		}
		target, found := w.definition(ref)
		if !found || slices.Contains(way, ref) {
			target = map[string]any{"description": "Any value: " + shown(ref) + " cannot be shown here."}
		}
		way = append(slices.Clone(way), ref)
		merged := map[string]any{}
		for word, part := range target {
			merged[word] = part
		}
		for word, part := range given {
			if word != "$ref" {
				merged[word] = part
			}
		}
		given = merged
	}
	return map[string]any{}, way
}

// definition finds what a reference inside the schema leads to.
func (w *schemaWalk) definition(ref string) (map[string]any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	var at any = w.root
	for step := range strings.SplitSeq(pointer, "/") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	found, ok := at.(map[string]any)
	return found, ok
}

// size is about how many bytes a value has as JSON; one that nests too deep has more
// than any schema may.
func size(value any, depth int) int {
	if depth > mostSchemaDepth {
		return mostSchema
	}
	n := len("null,")
	switch v := value.(type) {
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	case []any:
		for _, item := range v {
			n += size(item, depth+1)
		}
	case map[string]any:
		for name, part := range v {
			n += len(name) + size(part, depth+1)
		}
	}
	return n
}

// hides says whether a value has a text in it that nobody would see whole.
func hides(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.ContainsFunc(v, hidden)
	case []any:
		return slices.ContainsFunc(v, hides)
	case map[string]any:
		for name, part := range v {
			if hides(name) || hides(part) {
				return true
			}
		}
	}
	return false
}
