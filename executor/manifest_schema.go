package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"caisson/internal/strictyaml"
)

// noLoader refuses every reference out of a schema: reading one would open files
// and addresses of the server's host.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s lies outside the schema", url)
}

// schema reads the JSON schema of a tool's arguments.
func (r *manifestReader) schema(n node) json.RawMessage {
	if n.Kind != strictyaml.KindMap {
		r.Add(n.At, "input_schema is a mapping, not %s", n.Kind)
		return nil
	}
	if kind, ok := n.Get("type"); !ok || kind.Text != "object" {
		r.Add(n.At, "input_schema has type: object, since arguments are an object")
		return nil
	}
	var text bytes.Buffer
	if !r.json(&text, n) {
		return nil
	}
	if _, err := compile(text.Bytes()); err != nil {
		r.Add(n.At, "input_schema is no JSON schema: %s", err)
		return nil
	}
	if _, err := formOf(text.Bytes()); err != nil { // its tool would take anything
		r.Add(n.At, "input_schema cannot be given to clients: %s", err)
		return nil
	}
	return text.Bytes()
}

// compile makes a schema that arguments can be held against. It opens nothing.
func compile(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := checkNumbers(doc); err != nil { // the compiler fails on some
		return nil, errors.New(textOf(err))
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "mem:///input_schema"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(name)
	if err != nil {
		// The library's text has a line for each cause.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return nil, errors.New(strings.TrimLeft(lines[len(lines)-1], "- "))
	}
	return schema, nil
}

// json writes a node, keys in the order of the file.
func (r *reader) json(b *bytes.Buffer, n node) bool {
	switch n.Kind {
	case strictyaml.KindNull:
		b.WriteString("null")
	case strictyaml.KindInt, strictyaml.KindBool:
		b.WriteString(n.Text)
	case strictyaml.KindFloat:
		if !json.Valid([]byte(n.Text)) {
			r.Add(n.At, "%s is no number of JSON", shown(n.Text))
			return false
		}
		b.WriteString(n.Text)
	case strictyaml.KindString:
		writeJSONString(b, n.Text)
	case strictyaml.KindList:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			if !r.json(b, item) {
				return false
			}
		}
		b.WriteByte(']')
	case strictyaml.KindMap:
		b.WriteByte('{')
		for i, p := range n.Pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, p.Key)
			b.WriteByte(':')
			if !r.json(b, p.Value) {
				return false
			}
		}
		b.WriteByte('}')
	}
	return true
}

func writeJSONString(b *bytes.Buffer, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		quoted = []byte(`""`) // a string always has a form
	}
	b.Write(quoted)
}
