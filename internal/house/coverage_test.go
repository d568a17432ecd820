package house_test

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite the coverage table")

// row is one requirement.
type row struct{ id, text string }

// group is the rows under one heading.
type group struct {
	name string
	rows []row
}

// rows reads docs/rows.yml in its order.
func rows(t *testing.T) []group {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/rows.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.MapSlice // refuses a key that comes twice
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var groups []group
	for _, item := range doc {
		g := group{name: fmt.Sprint(item.Key)}
		members, ok := item.Value.(yaml.MapSlice)
		if !ok {
			t.Fatalf("%s is no mapping", g.name)
		}
		for _, member := range members {
			g.rows = append(g.rows, row{fmt.Sprint(member.Key), fmt.Sprint(member.Value)})
		}
		groups = append(groups, g)
	}
	return groups
}

// key brings the spellings of an id together: EXW-7, EXW07 and exw07 are one.
func key(id string) string {
	m := idForm.FindStringSubmatch(strings.ToUpper(strings.Replace(id, "-", "", 1)))
	if m == nil {
		return id
	}
	n, _ := strconv.Atoi(m[2]) // digits only, by the form
	return m[1] + strconv.Itoa(n)
}

var (
	idForm = regexp.MustCompile(`^([A-Z]+?)(\d+)$`)
	// A part of a name that is an id: letters, two digits, perhaps with the
	// word for the kind of row in front.
	idPart     = regexp.MustCompile(`^(?:Bug|Attack)?([A-Z]{1,3}\d{2})$`)
	scriptPart = regexp.MustCompile(`^(?:bug|attack)?([a-z]{1,3}\d{2})$`)
)

// ids reads the ids that a test's or script's name begins with.
func ids(name string, form *regexp.Regexp) []string {
	var found []string
	for part := range strings.SplitSeq(name, "_") {
		m := form.FindStringSubmatch(part)
		if m == nil {
			break
		}
		found = append(found, key(m[1]))
	}
	return found
}

// shown maps each row to the tests that carry its id.
func shown(t *testing.T) map[string][]string {
	t.Helper()
	by := map[string][]string{}
	add := func(where, name string, found []string) {
		for _, id := range found {
			by[id] = append(by[id], where+" "+name)
		}
	}
	for _, s := range sources(t) {
		if !s.test && s.pkg != "sandbox/sandboxtest" {
			continue
		}
		for _, decl := range s.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, prefix := range []string{"Test", "Fuzz", "test"} {
				if rest, ok := strings.CutPrefix(fn.Name.Name, prefix); ok {
					add(s.pkg, fn.Name.Name, ids(rest, idPart))
					break
				}
			}
		}
	}
	for _, name := range files(t, isScript) {
		base := path.Base(name)
		add(path.Dir(name), base, ids(strings.TrimSuffix(base, path.Ext(base)), scriptPart))
	}
	return by
}

func isScript(name string) bool {
	return strings.HasPrefix(name, "e2e/") && slices.Contains([]string{".mjs", ".sh"}, path.Ext(name)) || path.Ext(name) == ".txtar"
}

func TestCoverageTableIsCurrent(t *testing.T) {
	groups, by := rows(t), shown(t)
	known := map[string]bool{}
	for _, g := range groups {
		for _, r := range g.rows {
			if known[key(r.id)] {
				t.Errorf("row %s is there twice", r.id)
			}
			known[key(r.id)] = true
			if words := len(strings.Fields(r.text)); words > 20 || !strings.HasSuffix(r.text, ".") {
				t.Errorf("row %s: one sentence of at most 20 words, not %q", r.id, r.text)
			}
		}
	}
	for id, tests := range by {
		if !known[id] {
			t.Errorf("%s names row %s, which is not in docs/rows.yml", tests[0], id)
		}
	}
	want := render(groups, by)
	name := filepath.Join(root, "docs/coverage.md")
	have, err := os.ReadFile(name)
	if string(have) == want {
		return
	}
	if !*update {
		t.Fatalf("docs/coverage.md is stale (%v); make generate rewrites it", err)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// render makes the page: figures first, then one line a row.
func render(groups []group, by map[string][]string) string {
	var body strings.Builder
	total, done := 0, 0
	for _, g := range groups {
		fmt.Fprintf(&body, "\n## %s\n\n| row | must hold | shown by |\n| --- | --- | --- |\n", g.name)
		for _, r := range g.rows {
			total++
			cell := "not yet"
			if tests := by[key(r.id)]; len(tests) > 0 {
				done++
				slices.Sort(tests)
				cell = "`" + strings.Join(slices.Compact(tests), "`<br>`") + "`"
			}
			fmt.Fprintf(&body, "| %s | %s | %s |\n", r.id, r.text, cell)
		}
	}
	return "# Which test shows what\n\nMade from `docs/rows.yml` and the names of the tests by `make generate`; do not edit.\n\n" +
		fmt.Sprintf("%d of %d rows carry a test.\n", done, total) + body.String()
}

// A row that a decision has overruled is tested, and so is the decision in its place.
func TestD00_OverruledRowsAndTheirDecisionsAreBothTested(t *testing.T) {
	by := shown(t)
	for row, decision := range map[string]string{
		"PRB-2": "D1", "PRB-3": "D1", "PRB-16": "D1", "PRB-10": "D21", "TX-14": "CFG-2", "TX-15": "CFG-2", "DUR-4": "D11", "DUR-9": "D7",
		"NET-3": "D22", "SES-13": "D8", "EXW-1": "D19", "POL-6": "D9", "POL-11": "D26", "T20": "D4", "T01": "D31", "T02": "D31",
	} {
		if len(by[key(row)]) == 0 || len(by[key(decision)]) == 0 {
			t.Errorf("%s: tests %v; %s in its place: %v", row, by[key(row)], decision, by[key(decision)])
		}
	}
}

func TestIDsAreReadFromNames(t *testing.T) {
	for name, want := range map[string]string{
		"EXW07_RunsNothing":      "EXW7",
		"SES04_SES05_TTL09_Hard": "SES4 SES5 TTL9",
		"BugEX03_Returns":        "EX3",
		"AttackT07_T08_Refused":  "T7 T8",
		"D20_Profile":            "D20",
		"HTTP2_Stream":           "",
		"SHA256_Matches":         "",
		"Plain":                  "",
	} {
		if got := strings.Join(ids(name, idPart), " "); got != want {
			t.Errorf("%s reads as %q, want %q", name, got, want)
		}
	}
	if got := strings.Join(ids("cfg02_bugmt03_starts", scriptPart), " "); got != "CFG2 MT3" {
		t.Errorf("a script reads as %q", got)
	}
	if key("EXW-7") != key("EXW07") || key("EX-03") == key("EXW-3") || key("T07") == key("TX-7") {
		t.Error("spellings do not meet")
	}
}
