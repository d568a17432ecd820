package settings

import (
	"reflect"
	"strings"
)

// Row is one variable as the documentation shows it.
type Row struct {
	Name    string
	Default string // as one would set it, or words where it is found out at start
	Meaning string
}

// Entry is one variable as it is in force.
type Entry struct {
	Row
	Value  string // secrets are described, not shown
	Source string // "environment" or "default"
}

// Table returns every variable, in the order of the documentation (CFG-15).
func Table() []Row {
	var s Settings
	rows := make([]Row, 0, 64)
	for _, f := range s.fields() {
		rows = append(rows, f.row())
	}
	return rows
}

// Names returns the names of all variables.
func Names() []string {
	rows := Table()
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	return names
}

// Entries returns every variable with what is in force.
func (s Settings) Entries() []Entry {
	fields := s.fields()
	entries := make([]Entry, len(fields))
	for i, f := range fields {
		e := Entry{Row: f.row(), Source: "default"}
		e.Value = e.Default
		if raw, ok := s.given[f.name]; ok {
			e.Value, e.Source = raw, "environment"
			if looksSecret(raw) {
				e.Value = "[redacted]"
			}
		}
		entries[i] = e
	}
	return entries
}

// field is one variable and where its value goes.
type field struct {
	name  string
	tag   reflect.StructTag
	value reflect.Value
}

func (f field) row() Row {
	def := f.tag.Get("envDefault")
	if shown, ok := f.tag.Lookup("shown"); ok {
		def = shown
	}
	return Row{Name: f.name, Default: def, Meaning: f.tag.Get("doc")}
}

// fields walks both groups in the order of their declaration.
func (s *Settings) fields() []field {
	var all []field
	for _, group := range []struct {
		prefix string
		value  reflect.Value
	}{
		{DockerPrefix, reflect.ValueOf(&s.Docker).Elem()},
		{MCPPrefix, reflect.ValueOf(&s.MCP).Elem()},
	} {
		for i := range group.value.NumField() {
			tag := group.value.Type().Field(i).Tag
			all = append(all, field{name: group.prefix + tag.Get("env"), tag: tag, value: group.value.Field(i)})
		}
	}
	return all
}

// ours says whether a variable belongs to one of the groups.
func ours(name string) bool {
	return strings.HasPrefix(name, DockerPrefix) || strings.HasPrefix(name, MCPPrefix)
}
