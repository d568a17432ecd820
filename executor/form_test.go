package executor_test

import (
	"strings"
	"testing"
)

// Each schema as a server gives it, as clients get it, and a word of what is said
// in the tool's description.
func TestAttackT54_SchemasArePassedInAFormThatClientsAccept(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 40) + `{}` + strings.Repeat(`}}`, 40)
	for _, c := range [][3]string{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{`null`, `{"properties":{},"type":"object"}`},
		{`{}`, `{"properties":{},"type":"object"}`},
		{`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","$id":"x"}`, `{"properties":{},"type":"object"}`},
		{
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"},"b":{"type":"array","items":{"$ref":"#/definitions/B"}}},"$defs":{"A":{"type":"string","description":"its"}},"definitions":{"B":{"$ref":"#/$defs/A"}}}`,
			`{"properties":{"a":{"description":"mine","type":"string"},"b":{"items":{"description":"its","type":"string"},"type":"array"}},"type":"object"}`,
		},
		{`{"$ref":"#/$defs/Root","$defs":{"Root":{"type":"object","properties":{"a":{"type":"integer"}}}}}`, `{"properties":{"a":{"type":"integer"}},"type":"object"}`},
		{
			`{"type":"object","properties":{"next":{"$ref":"#"},"node":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/N"}}}}}}`,
			`{"properties":{"next":{"description":"Any value: \"#\" cannot be shown here."},"node":{"properties":{"kids":{"items":{"description":"Any value: \"#/$defs/N\" cannot be shown here."},"type":"array"}},"type":"object"}},"type":"object"}`,
		},
		{`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, `{"properties":{"a":{"description":"Any value: \"file:///etc/passwd\" cannot be shown here."}},"type":"object"}`},
		{
			`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false,"oneOf":[{"properties":{"b":{"type":"string"}}},{"properties":{"b":{"type":"number"},"c":{"type":"boolean"}}}]}`,
			`{"properties":{"a":{},"b":{},"c":{"type":"boolean"}},"required":["a"],"type":"object"}`, `also have to match: {"oneOf":[`,
		},
		{`{"allOf":[{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"properties":{"b":{"type":"string"}},"required":["b"],"type":"object"}`, "also have to match"},
		{`{"type":["object","null"],"properties":{"a b":{},"ok":{}},"required":["a b","ok","gone"]}`, `{"properties":{"ok":{}},"required":["ok"],"type":"object"}`, `cannot be described here: "a b"`},
		{`[1]`, `{"additionalProperties":true,"properties":{},"type":"object"}`, "their schema is no object"},
		{`{"properties":{"a":{"type":"nonsense"}}}`, `{"additionalProperties":true,"properties":{},"type":"object"}`, "their schema is none"},
		{`{"properties":{"a":{"pattern":"(?<=x)y"}}}`, `{"additionalProperties":true,"properties":{},"type":"object"}`, "their schema is none"},
		{deep, `{"additionalProperties":true,"properties":{},"type":"object"}`, "nests too deep"},
		{`{"properties":{"a":{"description":"` + strings.Repeat("x", 70<<10) + `"}}}`, `{"additionalProperties":true,"properties":{},"type":"object"}`, "at most 65536 are taken"},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{` + doubling() + `}}`, `{"additionalProperties":true,"properties":{},"type":"object"}`, "too large"},
	} {
		r := startRig(t)
		r.play("Kit", serves(object{"name": "t", "description": "D.", "inputSchema": raw(c[0])}))
		r.open(kit)
		r.Listed(t.Context())
		d := r.definition("k_t")
		if string(d.InputSchema) != c[1] || !strings.Contains(d.Description, c[2]) || c[2] == "" && d.Description != "D." {
			t.Errorf("%.300s\ngot  %.300s %.300s\nwant %s %s", c[0], d.InputSchema, d.Description, c[1], c[2])
		}
	}
}

// doubling are definitions that are a thousand million when they are put in the
// places of their references.
func doubling() string {
	var b strings.Builder
	for c := 'a'; c < 'z'; c++ {
		next := `{"$ref":"#/$defs/` + string(c+1) + `"}`
		b.WriteString(`"` + string(c) + `":{"anyOf":[` + next + "," + next + `]},`)
	}
	return b.String() + `"z":{}`
}

func TestTX02_ArgumentsAreCheckedBeforeTheEngineIsAsked(t *testing.T) {
	r := newRig(t, `
tools:
  - {name: py, description: x, repl: python}
  - name: t
    description: x
    command: [x]
    input_schema:
      type: object
      additionalProperties: false
      required: [path]
      properties:
        path: {type: string, pattern: "^/"}
        depth: {type: integer, minimum: 1, maximum: 9}
        kind: {type: string, enum: [file, dir]}
        filters: {type: array, items: {type: object, properties: {size: {type: integer}}, required: [size]}}
        either: {anyOf: [{type: string}, {type: integer}]}
agents: [{name: reviewer, agent_ref: r, description: x}]
`)
	for _, c := range [][4]string{
		{"t", `{}`, "path", "path is required"},
		{"t", `[]`, "arguments", "the arguments are an object"},
		{"t", `{"path":1}`, "path", "path is wrong: got number, want string"},
		{"t", `{"path":"x"}`, "path", "path is wrong"},
		{"t", `{"path":"/","depth":10}`, "depth", "depth is wrong: maximum: got 10, want 9"},
		{"t", `{"path":"/","kind":"link"}`, "kind", "kind is wrong: value must be one of 'file', 'dir'"},
		{"t", `{"path":"/","dept":1}`, "dept", `there is no argument "dept"; did you mean depth?`},
		{"t", `{"path":"/","filters":[{"size":1},{}]}`, "filters[1].size", "filters[1].size is required"},
		{"t", `{"path":"/","filters":[{"size":"x"}]}`, "filters[0].size", "got string, want integer"},
		{"t", `{"path":"/","either":{}}`, "either", "either"},
		{"t", `{"path":`, "arguments", "no JSON object"},
		{"py", `{}`, "code", "code is required"},
		{"py", `{"code":"1","timeout_seconds":0}`, "timeout_seconds", "timeout_seconds is wrong"},
		{"reviewer", `{"query":"?"}`, "", ""},
		{"reviewer", `{"question":"?","include_previous_results":"yes"}`, "include_previous_results", "want boolean"},
	} {
		e := r.refusal(caller("alice"), c[0], c[1])
		if e.Kind.String() != "invalid" || c[2] != "" && e.Field != c[2] || !strings.Contains(e.Text, c[3]) {
			t.Errorf("%s %s: %v, %q", c[0], c[1], e, e.Field)
		}
	}
	for name, arguments := range map[string]string{"t": `{"path":"/","depth":9,"either":"x"}`, "py": `{"code":"1","timeout_seconds":2.5}`, "reviewer": `{"question":"?","include_previous_results":true}`} {
		if result := r.call(name, arguments); !result.Success {
			t.Errorf("%s: %s", name, result.Error)
		}
	}
}
