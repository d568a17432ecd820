package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"caisson/executor"
	"caisson/sandbox"
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

// What stands behind a reference is small, and becomes large where it is put.
func TestAttackT54_ASchemaThatGrowsIsNotPassedOn(t *testing.T) {
	many := func(name, part string) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, `%q:%s,`, fmt.Sprint(name, i), part)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	grows := func(word, value string) string {
		return `{"$defs":{"a":{` + word + `:` + value + `},"b":{"properties":{` + many("x", `{"$ref":"#/$defs/a"}`) + `}}},"properties":{` + many("y", `{"$ref":"#/$defs/b"}`) + `}}`
	}
	long := `"` + strings.Repeat("x", 50<<10) + `"`
	for what, schema := range map[string]string{
		"enum":        grows(`"enum"`, "["+long+"]"),
		"default":     grows(`"default"`, `{"a":[`+long+"]}"),
		"unknown":     grows(`"x-of-ours"`, long),
		"long word":   grows(long, `1`),
		"description": grows(`"description"`, long), // is cut, and yet there a thousand times
		"nested":      `{"properties":{"a":{"default":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}}`,
	} {
		r := startRig(t)
		r.play("Kit", serves(object{"name": "t", "description": "D.", "inputSchema": raw(schema)}))
		r.open(kit)
		r.Listed(t.Context())
		d := r.definition("k_t")
		if string(d.InputSchema) != `{"additionalProperties":true,"properties":{},"type":"object"}` || !strings.Contains(d.Description, "too large") {
			t.Errorf("%s: %d bytes, %.300s", what, len(d.InputSchema), d.Description)
		}
		r.call("k_t", `{"anything":1}`)
	}
}

// Numbers that the schema compiler fails on, or computes with for minutes.
func TestAttackT54_ANumberInASchemaIsBounded(t *testing.T) {
	for _, number := range []string{"1e-2000000", "1e999999", "1" + strings.Repeat("0", 50000)} {
		for _, word := range []string{"minimum", "multipleOf", "maxLength"} {
			r := startRig(t)
			r.play("Kit", serves(object{"name": "t", "inputSchema": raw(`{"properties":{"a":{"` + word + `":` + number + `}}}`)}))
			r.open(kit)
			r.Listed(t.Context())
			if d := r.definition("k_t"); !strings.Contains(d.Description, "their schema is none") {
				t.Errorf("%s %.20s: %.300s", word, number, d.Description)
			}
		}
	}
}

func TestAttackT54_TheSchemasOfOneToolkitAreBoundedTogether(t *testing.T) {
	r := startRig(t)
	var all []object
	for i := range 100 {
		all = append(all, object{"name": fmt.Sprintf("t%03d", i), "description": "D.", "inputSchema": object{"properties": object{"a": object{"default": strings.Repeat("x", 60<<10)}}}})
	}
	r.play("Kit", serves(all...))
	r.open("toolkits: [{name: Kit, tool_prefix: k, command: [serve], include: ['t09?']}]\n")
	r.Listed(t.Context())
	for _, d := range r.Definitions() { // what is left out takes nobody's room
		if len(d.InputSchema) < 60<<10 {
			t.Errorf("%s: %s", d.Name, d.InputSchema)
		}
	}
	r.Reload(parse(t, kit, wide())) // lets all through
	r.Listed(t.Context())
	size, whole := 0, 0
	for _, d := range r.Definitions() {
		size += len(d.InputSchema)
		if d.Description == "D." {
			whole++
		} else if !strings.Contains(d.Description, "the schemas of this toolkit have more than 1048576 bytes together") {
			t.Errorf("%s: %s", d.Name, d.Description)
		}
	}
	if len(r.Definitions()) != 100 || size > 1200<<10 || whole < 15 {
		t.Errorf("%d bytes, %d with their own", size, whole)
	}
	r.call("k_t099", `{"anything":1}`)
}

func TestTX02_AnOperatorsSchemaThatCannotBeGivenToClientsIsAFault(t *testing.T) {
	schema := "{type: object, properties: {a: {default: " + strings.Repeat("x", 70<<10) + "}}}"
	_, err := executor.Parse("m.yaml", []byte("tools: [{name: t, description: x, command: [x], input_schema: "+schema+"}]\n"), wide())
	if err == nil || !strings.Contains(err.Error(), "input_schema cannot be given to clients") {
		t.Errorf("%.300v", err)
	}
}

// The check of arguments cannot be stopped: what it costs is bounded before.
func TestAttackT54_ArgumentsThatCostTooMuchToCheckAreRefused(t *testing.T) {
	r := startRig(t)
	var branches, required []string
	for i := range 1000 {
		branches = append(branches, fmt.Sprintf(`{"const":%d}`, i))
		required = append(required, fmt.Sprintf(`"r%d"`, i))
	}
	r.play("Kit", serves(
		object{"name": "wide", "inputSchema": raw(`{"properties":{"a":{"type":"array","items":{"anyOf":[` + strings.Join(branches, ",") + `]}}}}`)},
		object{"name": "wants", "inputSchema": raw(`{"properties":{"a":{"type":"array","items":{"required":[` + strings.Join(required, ",") + `]}}}}`)},
	))
	r.open(kit + `
tools:
  - name: t
    description: x
    command: [x]
    input_schema:
      type: object
      properties:
        paths: {type: array, items: {type: string}}
        n: {type: array, items: {type: integer, minimum: 1, multipleOf: 2}}
        x: {}
  - {name: py, description: x, repl: python}
`)
	r.Listed(t.Context())
	many := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for _, c := range [][4]string{
		{"t", `{"x":1,"paths":` + many("0", 1<<20) + `}`, "paths", "more than 100000 values"},
		{"t", `{"paths":` + many("[[]]", 60000) + `}`, "paths", "more than 100000 values"},
		{"t", `{"x":{"y":` + many(`{"z":1}`, 100000) + `}}`, "x", "hand large data over in a file"},
		{"t", `{"n":[4,1e-999999]}`, "n[1]", "exponent is -400 to 400"},
		{"t", `{"n":[4,1E+999999999999999999999]}`, "n[1]", "exponent is -400 to 400"},
		{"t", `{"x":{"deep":[{"y":` + strings.Repeat("9", 1001) + `}]}}`, "x.deep[0].y", "at most 1000 characters"},
		{"t", `{"n":` + many("1e-390", 1001) + `}`, "n[1000]", "at most 1000 numbers have more than 40 characters"},
		{"t", `{"n":` + many(strings.Repeat("7", 50), 1001) + `}`, "n[1000]", "give more of them as texts"},
		{"py", `{"code":"1","timeout_seconds":1e-2000000}`, "timeout_seconds", "exponent"},
		{"k_wide", `{"a":` + many("-1", 5000) + `}`, "a", "more than"},
		{"k_wants", `{"a":` + many("{}", 50000) + `}`, "a", "more than"},
	} {
		e := r.refusal(caller("alice"), c[0], c[1])
		if e.Kind != sandbox.KindInvalid || e.Field != c[2] || !strings.Contains(e.Text, c[3]) {
			t.Errorf("%s %.40s: %v, %q", c[0], c[1], e, e.Field)
		}
	}
	for _, c := range [][2]string{
		{"t", `{"paths":` + many(`"a,b[c{"`, 90000) + `}`},
		{"t", `{"n":[4,1e300,2E2],"x":[1e-300,` + strings.Repeat("9", 900) + `]}`},
		{"k_wide", `{"a":` + many("7", 100) + `}`},
	} {
		if result := r.call(c[0], c[1]); !result.Success {
			t.Errorf("%s %.40s: %s", c[0], c[1], result.Error)
		}
	}
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
