package settings_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"caisson/settings"
)

var update = flag.Bool("update", false, "rewrite the generated part of the documentation")

const (
	page  = "../docs/settings.md"
	begin = "<!-- generated from the settings package: make generate -->\n"
	end   = "<!-- end of the generated part -->\n"
)

func TestCFG15_TheDocumentedTableIsTheCodes(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost its markers", page)
	}
	want := head + begin + "\n" + table() + "\n" + end + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is stale; make generate rewrites it", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table() string {
	var b strings.Builder
	for _, prefix := range []string{settings.DockerPrefix, settings.MCPPrefix} {
		fmt.Fprintf(&b, "### `%s…`\n\n| %s… | default | meaning |\n| --- | --- | --- |\n", prefix, prefix)
		for _, row := range settings.Table() {
			if name, ok := strings.CutPrefix(row.Name, prefix); ok {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, cell(row.Default), row.Meaning)
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cell shows a value as code and words as words.
func cell(value string) string {
	if value == "" {
		return "empty"
	}
	if strings.Contains(value, " ") {
		return value
	}
	return "`" + value + "`"
}

func TestCFG15_EveryRowSaysWhatItMeansAndItsDefaultIsInRange(t *testing.T) {
	environ := []string{}
	for _, row := range settings.Table() {
		if row.Meaning == "" || !strings.HasSuffix(row.Meaning, ".") || strings.Contains(row.Meaning, "|") {
			t.Errorf("%s means %q", row.Name, row.Meaning)
		}
		if row.Default != "" && !strings.Contains(row.Default, " ") {
			environ = append(environ, row.Name+"="+row.Default)
		}
	}
	// Naming every default is the same as naming none.
	s := load(t, environ...)
	if s.Docker.DefaultTTL != load(t).Docker.DefaultTTL {
		t.Error("defaults are not what they say")
	}
}

func TestEntriesSayWhereAValueCameFrom(t *testing.T) {
	s := load(t, "SANDBOX_DOCKER_MAX_SESSIONS=3")
	if e := entry(t, s, "SANDBOX_DOCKER_MAX_SESSIONS"); e.Value != "3" || e.Source != "environment" || e.Default != "64" {
		t.Errorf("entry %+v", e)
	}
	if e := entry(t, s, "SANDBOX_DOCKER_DEFAULT_CPU"); e.Value != "1" || e.Source != "default" {
		t.Errorf("entry %+v", e)
	}
}
