package executor

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// What is changed in a tool's JSON so that every client reads it, and in the same way.
const (
	plainNumber    = "numbers that no float64 holds are texts"
	plainTwice     = "of members with the same name the last is kept"
	plainSurrogate = "halves of characters are U+FFFD"
)

// plain gives a valid JSON value in a form that all readers take, and take for the
// same: JSON allows what they fail on or read differently, and a tool's result must
// not mean one thing to us and another to a client. Numbers keep all their digits.
// What was changed is added to said.
func plain(text json.RawMessage, said map[string]bool) json.RawMessage {
	found := oddities(text)
	if len(found) == 0 {
		return text
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return text // it is no JSON: who reads it says so
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(numbersAsTexts(value)) != nil {
		return text
	}
	maps.Copy(said, found)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// plainResult does so with all JSON of a result, and says it in its metadata.
func plainResult(r Result) Result {
	said := map[string]bool{}
	r.Result, r.DisplayData = plain(r.Result, said), plain(r.DisplayData, said)
	metadata := make(map[string]json.RawMessage, len(r.Metadata)+1)
	for name, value := range r.Metadata {
		metadata[name] = plain(value, said)
	}
	delete(metadata, "json_changed") // ours alone
	if len(said) > 0 {
		if text, err := json.Marshal(slices.Sorted(maps.Keys(said))); err == nil {
			metadata["json_changed"] = text
		}
	}
	r.Metadata = metadata
	return r
}

// oddities finds what plain has to change in a valid JSON text; nil: nothing.
func oddities(text []byte) (found map[string]bool) {
	find := func(what string) {
		if found == nil {
			found = map[string]bool{}
		}
		found[what] = true
	}
	var open []map[string]bool // the names in each open object; nil for a list
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '{':
			open = append(open, map[string]bool{})
			i++
		case c == '[':
			open = append(open, nil)
			i++
		case c == '}' || c == ']':
			open = open[:max(0, len(open)-1)]
			i++
		case c == '"':
			literal := literalAt(text[i:])
			i += len(literal)
			if halved(literal) {
				find(plainSurrogate)
			}
			if after := bytes.TrimLeft(text[i:], " \t\r\n"); len(after) > 0 && after[0] == ':' && len(open) > 0 && open[len(open)-1] != nil {
				if names, name := open[len(open)-1], nameOf(literal); names[name] {
					find(plainTwice)
				} else {
					names[name] = true
				}
			}
		case c == '-' || '0' <= c && c <= '9':
			end := numberEnd(text, i)
			if overflows(string(text[i:end])) {
				find(plainNumber)
			}
			i = end
		default:
			i++
		}
	}
	return found
}

// numberEnd is where the number ends that begins at an offset.
func numberEnd(text []byte, begin int) int {
	end := begin + 1
	for end < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[end]) >= 0 {
		end++
	}
	return end
}

// literalAt is the string that a text begins with, quotes included.
func literalAt(text []byte) []byte {
	for end := 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return text[:end+1]
		}
	}
	return text
}

// nameOf is what a literal means.
func nameOf(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var name string
	_ = json.Unmarshal(literal, &name) // a valid one has a meaning
	return name
}

// halved says whether a literal has one half of a pair of surrogates without the
// other.
func halved(literal []byte) bool {
	high := false
	for i := 1; i < len(literal)-1; i++ {
		var unit uint64
		if literal[i] == '\\' {
			if literal[i+1] == 'u' && i+6 <= len(literal) {
				unit, _ = strconv.ParseUint(string(literal[i+2:i+6]), 16, 16)
				i += 5
			} else {
				i++
			}
		}
		low := 0xdc00 <= unit && unit <= 0xdfff
		if high != low {
			return true
		}
		high = 0xd800 <= unit && unit <= 0xdbff
	}
	return high
}

// overflows says whether a number of JSON is beyond the range of a float64.
func overflows(number string) bool {
	if len(number) < 300 && !bytes.ContainsAny([]byte(number), "eE") {
		return false
	}
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// numbersAsTexts puts texts in the places of numbers that overflow.
func numbersAsTexts(value any) any {
	switch v := value.(type) {
	case json.Number:
		if overflows(string(v)) {
			return string(v)
		}
	case []any:
		for i := range v {
			v[i] = numbersAsTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbersAsTexts(v[name])
		}
	}
	return value
}
