package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// members reads one JSON object strictly, which encoding/json does not: names in
// their exact spelling, each once, none but the known ones, nothing behind the
// object, UTF-8 throughout. What comes from a container could otherwise say one
// thing to us and another to who reads it next.
func members(text []byte, known []string) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if !json.Valid(text) {
		return nil, errors.New("it is no JSON value")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	all := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // a valid object has no other
		if known != nil && !slices.Contains(known, name) {
			return nil, fmt.Errorf("it has no field %s", shown(name))
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("the field %s is there twice", shown(name))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

// object reads a JSON object of any names, each once; null is an empty one.
func object(text json.RawMessage) (map[string]json.RawMessage, error) {
	if isNull(text) {
		return map[string]json.RawMessage{}, nil
	}
	return members(text, nil)
}

func isNull(text json.RawMessage) bool {
	return len(text) == 0 || string(bytes.TrimSpace(text)) == "null"
}

// fields decodes fields of an object to where each belongs, those that are there.
func fields(all map[string]json.RawMessage, into map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if isNull(all[name]) {
			continue
		}
		if err := json.Unmarshal(all[name], into[name]); err != nil {
			return fmt.Errorf("the field %s has the wrong type", name)
		}
	}
	return nil
}
