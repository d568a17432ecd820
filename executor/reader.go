package executor

import (
	"fmt"
	"io"
	"strings"

	"caisson/internal/strictyaml"
)

// reader reads a manifest for one server, and collects what is wrong with it.
type reader struct {
	strictyaml.Reader
	server    Server
	executors []*Instance // named ones, read before all that may name them
}

func (r *reader) named() []string {
	var names []string
	for _, i := range r.executors {
		names = append(names, i.Name)
	}
	return names
}

// noVariable refuses ${VAR} where it would be taken for its own letters.
func (r *reader) noVariable(n node, what, text string) bool {
	if strings.Contains(text, "${") {
		r.Add(n.At, "%s takes no ${VAR}: variables of the server are read in env alone", what)
		return false
	}
	return true
}

// Where faults of a manifest stand, and what they are.
type (
	Position = strictyaml.Position
	Fault    = strictyaml.Fault
	Faults   = strictyaml.Faults
)

type (
	node = strictyaml.Node
	pair = strictyaml.Pair
)

func shown(value string) string { return strictyaml.Shown(value) }

func meant(name string, known []string) string { return strictyaml.Meant(name, known) }

func list(names []string) string { return strictyaml.Join(names) }

func printable(text string) bool { return strictyaml.Printable(text) }

// ReadManifest reads r as Parse does.
func ReadManifest(name string, r io.Reader, s Server) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, strictyaml.Most+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return Parse(name, text, s)
}
