package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\nof this software, to deal in the Software without\nrestriction"
	bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
	gpl = "GNU GENERAL PUBLIC LICENSE\nVersion 3\nRedistribution and use in source and binary forms"
)

// tree makes a module's directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a directory")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAttackT76_OnlyPermissiveLicencesAreTaken(t *testing.T) {
	for what, c := range map[string]struct {
		files map[string]string
		want  string // "" is refused
	}{
		"MIT":                         {map[string]string{"LICENSE": mit}, "MIT"},
		"a licence of another name":   {map[string]string{"LICENCE.txt": mit}, "MIT"},
		"BSD with two clauses":        {map[string]string{"COPYING": bsd}, "BSD-2-Clause"},
		"BSD with three":              {map[string]string{"LICENSE": bsd + "\nNeither the name of X may be used"}, "BSD-3-Clause"},
		"code, and documentation":     {map[string]string{"LICENSE": mit, "LICENSE.docs": "Creative Commons Attribution-ShareAlike"}, "MIT"},
		"the documentation's alone":   {map[string]string{"LICENSE.docs": mit}, ""},
		"none":                        {map[string]string{"README.md": mit}, ""},
		"one that asks for something": {map[string]string{"LICENSE": gpl}, ""},
		"one that nobody knows":       {map[string]string{"LICENSE": "Ask me first."}, ""},
	} {
		var out strings.Builder
		err := run([]string{"list"}, strings.NewReader(fmt.Sprintf("example.com/m v1.0.0 %s\n", tree(t, c.files))), &out)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "example.com/m")):
			t.Errorf("%s is taken: %v, %s", what, err, out.String())
		case c.want != "" && (err != nil || out.String() != fmt.Sprintf("{\"example.com/m\":%q}\n", c.want)):
			t.Errorf("%s: %v, %s", what, err, out.String())
		}
	}
}

func TestAttackT76_TheNoticeHoldsEveryLicence(t *testing.T) {
	in := fmt.Sprintf("example.com/m v1.0.0 %s\nstd go1.26 %s\n", tree(t, map[string]string{"LICENSE": mit, "NOTICE": "m was made by somebody"}), tree(t, map[string]string{"LICENSE": bsd}))
	var out strings.Builder
	if err := run([]string{"notice"}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/m v1.0.0 (MIT)", mit, "m was made by somebody", "The Go standard library go1.26 (BSD-2-Clause)", bsd} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the notice lacks %q:\n%s", want, out.String())
		}
	}
	for _, wrong := range []string{"", "example.com/m v1.0.0\n", "example.com/m v1.0.0 /nonexistent\n"} {
		if err := run([]string{"notice"}, strings.NewReader(wrong), &out); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
