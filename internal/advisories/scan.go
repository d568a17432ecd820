package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// finding is an advisory that concerns a module of ours, by the deepest way in
// which it was met.
type finding struct {
	id, module string
	fixed      string // the version that mends it; "" where there is none
	called     bool   // a function of it can be reached
	summary    string
}

// scan is one run of govulncheck.
type scan struct {
	goVersion string
	findings  map[string]finding // by id
}

// message is one message of govulncheck's JSON, as far as it is used here.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
	} `json:"config"`
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV   string `json:"osv"`
		Fixed string `json:"fixed_version"`
		Trace []struct {
			Module   string `json:"module"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

// readScan reads a whole run. One without its first message is none: a check that
// saw nothing because nothing ran may not pass.
func readScan(in io.Reader) (scan, error) {
	s := scan{findings: map[string]finding{}}
	summaries := map[string]string{}
	decoder := json.NewDecoder(in)
	for {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("govulncheck's output: %w", err)
		}
		switch {
		case m.Config != nil:
			s.goVersion = m.Config.GoVersion
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0:
			first := m.Finding.Trace[0]
			f := s.findings[m.Finding.OSV]
			f.id, f.module, f.fixed = m.Finding.OSV, first.Module, m.Finding.Fixed
			f.called = f.called || first.Function != ""
			s.findings[f.id] = f
		}
	}
	if s.goVersion == "" {
		return s, errors.New("govulncheck's output: there is none")
	}
	for id, f := range s.findings {
		f.summary = summaries[id]
		s.findings[id] = f
	}
	return s, nil
}
