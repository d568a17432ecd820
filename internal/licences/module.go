package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one module and the terms that it comes with.
type module struct {
	path, version string
	licence       string // SPDX identifier
	texts         []text
}

type text struct{ name, content string }

// Files that hold terms: LICENSE, LICENCE.txt, COPYING, NOTICE, PATENTS and such. A
// licence of the documentation alone, as LICENSE.docs, says nothing of the code.
var (
	termFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-](txt|md|mit|bsd|apache|code))*$`)
	noLetter = regexp.MustCompile(`[^a-z0-9]+`)
)

// permissive are the licences that a release may hold, each by sentences that it
// alone has; the first that fits counts.
func permissive() []struct {
	id      string
	phrases []string
} {
	return []struct {
		id      string
		phrases []string
	}{
		{"Apache-2.0", []string{"apache license", "version 2 0", "terms and conditions for use reproduction and distribution"}},
		{"MIT", []string{"permission is hereby granted free of charge to any person obtaining a copy", "without restriction"}},
		{"ISC", []string{"permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted"}},
		{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
		{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may be used to endorse or promote"}},
		{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	}
}

// look reads the terms at the top of a module's directory.
func look(path, version, dir string) (module, error) {
	m := module{path: path, version: version}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !termFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return m, fmt.Errorf("%s: %w", path, err)
		}
		m.texts = append(m.texts, text{entry.Name(), string(content)})
		if id := classify(string(content)); m.licence == "" {
			m.licence = id
		}
	}
	if m.licence == "" {
		return m, fmt.Errorf("%s %s: no permissive licence found in %d files of terms", path, version, len(m.texts))
	}
	return m, nil
}

// classify is the licence that a text is, or "".
func classify(content string) string {
	plain := noLetter.ReplaceAllString(strings.ToLower(content), " ")
	if strings.Contains(plain, "general public license") && !strings.Contains(plain, "apache license") {
		return ""
	}
	for _, l := range permissive() {
		if !slices.ContainsFunc(l.phrases, func(phrase string) bool { return !strings.Contains(plain, phrase) }) {
			return l.id
		}
	}
	return ""
}
