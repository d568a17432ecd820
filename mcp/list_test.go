package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

var update = flag.Bool("update", false, "rewrite the snapshot of the tool list and docs/tools.md")

// golden compares text with a file, or writes it under -update.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s is stale: go test ./mcp -update writes it; names, arguments and fields in it are public, so look at the diff", path)
	}
}

// The list that a client gets is public: any change of it shows here.
func TestToolListIsAsPublished(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		list, err := newRig(t).dial("inprocess", version).c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(list.Tools, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/tools.json", string(text)+"\n")
	}
}

func TestBugMS01_ToolListSuitsEveryClient(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	list, err := c.c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list.Tools); n != 16 {
		t.Errorf("%d tools", n)
	}
	size, read := 0, 0
	for _, tool := range list.Tools {
		raw := mustJSON(t, tool)
		size += len(raw)
		if !regexp.MustCompile(`^[a-z0-9_]{1,35}$`).MatchString(tool.Name) {
			t.Errorf("name %q", tool.Name)
		}
		if n := len(tool.Description); n == 0 || n >= 2048 {
			t.Errorf("%s: description of %d bytes", tool.Name, n)
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "$ref", "null", "if"} {
			if strings.Contains(raw, `"`+word+`"`) {
				t.Errorf("%s: schema has %s", tool.Name, word)
			}
		}
		a := tool.Annotations
		if a.ReadOnlyHint == nil || a.DestructiveHint == nil || a.IdempotentHint == nil || a.OpenWorldHint == nil || *a.ReadOnlyHint && *a.DestructiveHint {
			t.Errorf("%s: annotations %s", tool.Name, mustJSON(t, a))
		}
		var parts struct{ InputSchema, OutputSchema map[string]any }
		if err := json.Unmarshal([]byte(raw), &parts); err != nil {
			t.Fatal(err)
		}
		read += len(tool.Description) + len(mustJSON(t, parts.InputSchema))
		checkSchema(t, tool.Name+" input", parts.InputSchema)
		checkSchema(t, tool.Name+" output", parts.OutputSchema)
	}
	if size > 50_000 || read > 22_000 {
		t.Errorf("the list has %d bytes, %d of them what a model reads before it does anything", size, read)
	}
}

// checkSchema walks a schema: objects with properties, arrays with items,
// string enums, and descriptions on everything that is named.
func checkSchema(t *testing.T, where string, s map[string]any) {
	t.Helper()
	switch s["type"] {
	case "object":
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			t.Errorf("%s: object without properties", where)
		}
		for name, p := range properties {
			sub := p.(map[string]any)
			if sub["description"] == nil || sub["description"] == "" {
				t.Errorf("%s.%s has no description", where, name)
			}
			checkSchema(t, where+"."+name, sub)
		}
		if values, ok := s["additionalProperties"].(map[string]any); ok {
			checkSchema(t, where+".*", values)
		} else if s["additionalProperties"] != false {
			t.Errorf("%s: additionalProperties %v", where, s["additionalProperties"])
		}
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Fatalf("%s: array without items", where)
		}
		checkSchema(t, where+"[]", items)
	case "string", "integer", "number", "boolean":
	default:
		t.Errorf("%s: type %v", where, s["type"])
	}
	if enum, ok := s["enum"].([]any); ok && (s["type"] != "string" || len(enum) < 2) {
		t.Errorf("%s: enum %v of a %v", where, enum, s["type"])
	}
}

func TestServerIntroducesItself(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	init, err := c.c.Initialize(t.Context(), mcpgo.InitializeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(init.Instructions); n < 200 || n >= 2048 {
		t.Errorf("instructions of %d bytes", n)
	}
	if init.ServerInfo.Name != "caisson" || init.ServerInfo.Version != "test" {
		t.Errorf("%+v", init.ServerInfo)
	}
	if init.Capabilities.Tasks != nil {
		t.Error("tasks are advertised: clients would use them, and mcp-go cancels them at once (MT-02)")
	}
	for _, tool := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(init.Instructions, -1) {
		known := []string{"cd", "session_id", "cwd", "env", "workspace_key", "exit_code", "running", "wait_seconds", "exec_id", "omitted", "grep", "session_lost", "busy"}
		if c.server.MCP().GetTool(tool[1]) == nil && !slices.Contains(known, tool[1]) {
			t.Errorf("the instructions name %q, which is nothing", tool[1])
		}
	}
}

// The page that documents the tools is made from what clients are told.
func TestDocsToolsPageIsCurrent(t *testing.T) {
	list, err := newRig(t).dial("inprocess", legacy).c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("# Tools\n\nMade from the code by `go test ./mcp -update`; a test says when it is stale.\n\n" + toolTable(list.Tools, ""))
	for _, tool := range list.Tools {
		var parts struct{ InputSchema, OutputSchema schemaDoc }
		if err := json.Unmarshal([]byte(mustJSON(t, tool)), &parts); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", tool.Name, tool.Description)
		parts.InputSchema.table(&b, "argument")
		parts.OutputSchema.table(&b, "result")
	}
	golden(t, "../docs/tools.md", b.String())
}

// The README shows the same table.
func TestDocsReadmeTableIsCurrent(t *testing.T) {
	list, err := newRig(t).dial("inprocess", legacy).c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), readmeBegin)
	_, tail, ends := strings.Cut(rest, readmeEnd)
	if !begins || !ends {
		t.Fatalf("README.md has lost the marks %q and %q", readmeBegin, readmeEnd)
	}
	golden(t, "../README.md", head+readmeBegin+toolTable(list.Tools, "docs/tools.md")+readmeEnd+tail)
}

const (
	readmeBegin = "<!-- tools:begin (generated; make generate) -->\n"
	readmeEnd   = "<!-- tools:end -->\n"
)

// toolTable has one line a tool, linked to its part of the tools page.
func toolTable(tools []mcpgo.Tool, page string) string {
	var b strings.Builder
	b.WriteString("| tool | what it does | changes | |\n| --- | --- | --- | --- |\n")
	for _, tool := range tools {
		first, _, _ := strings.Cut(tool.Description, ". ")
		fmt.Fprintf(&b, "| [`%s`](%s#%s) | %s | %s |\n", tool.Name, page, tool.Name, strings.TrimSuffix(first, "."), hints(tool.Annotations))
	}
	return b.String()
}

func hints(a mcpgo.ToolAnnotation) string {
	changes, more := "yes", ""
	if *a.ReadOnlyHint {
		changes = "no"
	}
	if *a.DestructiveHint {
		changes = "yes, may destroy"
	}
	if *a.IdempotentHint {
		more = "may be repeated"
	}
	return changes + " | " + more
}

// schemaDoc reads a schema in the order in which it was written.
type schemaDoc struct {
	Type, Description string
	Enum              []string
	Default           any
	Minimum, Maximum  *float64
	Items             *schemaDoc
	Properties        orderedDocs
	Required          []string
}

type orderedDocs []namedDoc

type namedDoc struct {
	name string
	doc  schemaDoc
}

func (o *orderedDocs) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		n := namedDoc{name: name.(string)}
		if err := d.Decode(&n.doc); err != nil {
			return err
		}
		*o = append(*o, n)
	}
	return nil
}

func (s *schemaDoc) table(b *bytes.Buffer, what string) {
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "No %ss.\n\n", what)
		return
	}
	fmt.Fprintf(b, "| %s | type | |\n| --- | --- | --- |\n", what)
	s.rows(b, "", what)
	b.WriteString("\n")
}

func (s *schemaDoc) rows(b *bytes.Buffer, prefix, what string) {
	for _, p := range s.Properties {
		name := prefix + p.name
		kind := p.doc.Type
		if p.doc.Items != nil {
			kind = "list of " + p.doc.Items.Type + "s"
		}
		about := strings.ReplaceAll(p.doc.Description, "|", "\\|")
		if p.doc.Enum != nil {
			about += " One of `" + strings.Join(p.doc.Enum, "`, `") + "`."
		}
		if p.doc.Maximum != nil {
			about += fmt.Sprintf(" From %.0f to %.0f.", *p.doc.Minimum, *p.doc.Maximum)
		}
		if p.doc.Default != nil {
			about += fmt.Sprintf(" Default: `%v`.", p.doc.Default)
		}
		required := slices.Contains(s.Required, p.name)
		if required && what == "argument" {
			about += " Required."
		} else if !required && what == "result" {
			about += " Not always there."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, kind, about)
		if p.doc.Items != nil {
			p.doc.Items.rows(b, name+"[].", what)
		}
		p.doc.rows(b, name+".", what)
	}
}
