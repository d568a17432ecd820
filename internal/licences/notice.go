package main

import (
	"fmt"
	"io"
	"strings"
)

// writeNotice writes what each module asks to be kept with its copies.
func writeNotice(out io.Writer, modules []module) error {
	var b strings.Builder
	b.WriteString("This program contains the following works, each under the terms that follow it.\n")
	for _, m := range modules {
		name := m.path
		if name == "std" {
			name = "The Go standard library"
		}
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 78), name, m.version, m.licence)
		for _, t := range m.texts {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", t.name, strings.TrimSpace(t.content))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
