package executor

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/policy.md")

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocsTableOfOptionsIsTheCodes(t *testing.T) {
	const (
		begin = "<!-- options:begin (generated from the executor package; make generate) -->\n"
		end   = "<!-- options:end -->\n"
	)
	text := page(t, "policy.md")
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/policy.md has lost its markers")
	}
	var b strings.Builder
	b.WriteString("| option | takes | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, o := range OptionTable() {
		def := o.Default
		if strings.HasPrefix(def, "SANDBOX_") {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, o.Takes, def, o.Meaning)
	}
	want := head + begin + b.String() + end + tail
	if want == text {
		return
	}
	if !*update {
		t.Fatal("docs/policy.md is stale; make generate rewrites it")
	}
	if err := os.WriteFile("../docs/policy.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

var keyCell = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// keysUnder are the first cells of the table under a heading.
func keysUnder(t *testing.T, text, heading string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	section := rest
	if i := strings.Index(rest, "\n#"); i >= 0 {
		section = rest[:i]
	}
	var keys []string
	for _, m := range keyCell.FindAllStringSubmatch(section, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

func TestDocsListEveryKeyAndNoOther(t *testing.T) {
	text := page(t, "manifest.md")
	for heading, want := range map[string][]string{"### Top level": manifestKeys(), "### Tools": toolKeys(), "### Toolkits": toolkitKeys(), "### Agents": agentKeys()} {
		if got := keysUnder(t, text, heading); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, the code knows %q", heading, got, want)
		}
	}
	got := keysUnder(t, page(t, "policy.md"), "## What a rule says")
	if got = slices.DeleteFunc(got, func(key string) bool { return slices.Contains(builtinExecutors(), key) }); !slices.Equal(got, specKeys()) {
		t.Errorf("a rule's keys are listed as %q, the code knows %q", got, specKeys())
	}
	for _, name := range builtinExecutors() {
		if !strings.Contains(page(t, "policy.md"), "`"+name+"`") {
			t.Errorf("docs/policy.md does not tell of the executor %s", name)
		}
	}
}

// The defaults that the table shows are those that a rule gets.
func TestDocsShowTheDefaultsInForce(t *testing.T) {
	for _, o := range (Server{}).defaults().Values() {
		i := slices.IndexFunc(OptionTable(), func(row OptionRow) bool { return row.Name == o.Name })
		if row := OptionTable()[i]; !strings.HasPrefix(row.Default, "SANDBOX_") && row.Default != o.Value {
			t.Errorf("%s: shown as %q, is %q", o.Name, row.Default, o.Value)
		}
	}
}
