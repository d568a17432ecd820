package executor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// mostManifest bounds a manifest in bytes.
	mostManifest = 256 << 10
	// deepest bounds how far a manifest nests.
	deepest = 64
)

// kind is what a node is.
type kind uint8

const (
	kindNull kind = iota
	kindString
	kindInt
	kindFloat
	kindBool
	kindList
	kindMap
)

func (k kind) String() string {
	return [...]string{"nothing", "a string", "a whole number", "a number", "true or false", "a list", "a mapping"}[k]
}

// node is a value of the file with its place. Mappings keep their order, which
// rules depend on.
type node struct {
	kind  kind
	at    Position
	text  string // of a scalar: a string's content, else as it is written
	items []node
	pairs []pair
}

// pair is one entry of a mapping.
type pair struct {
	key   string
	at    Position
	value node
}

// get returns the value of a key.
func (n node) get(key string) (node, bool) {
	for _, p := range n.pairs {
		if p.key == key {
			return p.value, true
		}
	}
	return node{}, false
}

// readYAML reads one document in the strict part of YAML that a manifest uses:
// string keys, each once, and no anchors, aliases, merges or tags, with which a
// file says something else than what it shows.
func readYAML(f *faults, text []byte) (root node, ok bool) {
	switch {
	case len(text) > mostManifest:
		f.add(Position{}, "a manifest has at most %d bytes, this one has %d", mostManifest, len(text))
		return node{}, false
	case !utf8.Valid(text):
		f.add(Position{}, "a manifest is UTF-8 text")
		return node{}, false
	}
	// Some editors begin a file with a mark of its byte order.
	file, err := parseYAML(bytes.TrimPrefix(text, []byte("\uFEFF")))
	if err != nil {
		at, message := syntax(err)
		f.add(at, "not YAML: %s", message)
		return node{}, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) != 1 {
		f.add(Position{}, "a manifest is one YAML document, this has %d", len(bodies))
		return node{}, false
	}
	before := len(f.all)
	root = convert(f, bodies[0], 0)
	return root, len(f.all) == before
}

// parseYAML calls the library, which panics on some malformed texts: on a
// reload that would end every session's server.
func parseYAML(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the text cannot be read (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		return nil, &yaml.SyntaxError{Message: fmt.Sprintf("nests deeper than %d levels", deepest), Token: t}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tooDeep finds where brackets, or dashes of one line, nest deeper than a manifest
// may: what the library does with them takes time that grows with the square of
// their number.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceEntryType:
			dashes++
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if depth > deepest || dashes > deepest {
			return t
		}
	}
	return nil
}

func syntax(err error) (Position, string) {
	var e yaml.Error
	if !errors.As(err, &e) {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return Position{}, text
	}
	return place(e.GetToken()), e.GetMessage()
}

func place(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{t.Position.Line, t.Position.Column}
}

func convert(f *faults, n ast.Node, depth int) node {
	if n == nil {
		return node{}
	}
	at := place(n.GetToken())
	if depth > deepest {
		f.add(at, "nests deeper than %d levels", deepest)
		return node{at: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return mapping(f, at, n.Values, depth)
	case *ast.MappingValueNode:
		return mapping(f, at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := node{kind: kindList, at: at}
		for _, item := range n.Values {
			list.items = append(list.items, convert(f, item, depth+1))
		}
		return list
	case *ast.StringNode:
		return node{kind: kindString, at: at, text: n.Value}
	case *ast.LiteralNode:
		return node{kind: kindString, at: at, text: n.Value.Value}
	case *ast.IntegerNode:
		// 010 and 1_000 are other numbers to other readers of YAML.
		text := fmt.Sprint(n.Value)
		if written := n.GetToken().Value; written != text {
			f.add(at, "write %s as a decimal number, or put it into quotes", shown(written))
		}
		return node{kind: kindInt, at: at, text: text}
	case *ast.FloatNode:
		return node{kind: kindFloat, at: at, text: fmt.Sprint(n.Value)}
	case *ast.BoolNode:
		return node{kind: kindBool, at: at, text: fmt.Sprint(n.Value)}
	case *ast.NullNode:
		return node{kind: kindNull, at: at}
	default:
		f.add(at, "%s is not used in a manifest", strings.ToLower(n.Type().YAMLName()))
		return node{at: at}
	}
}

func mapping(f *faults, at Position, values []*ast.MappingValueNode, depth int) node {
	m := node{kind: kindMap, at: at}
	first := map[string]Position{}
	for _, v := range values {
		before := len(f.all)
		key := convert(f, v.Key, depth+1)
		if len(m.pairs) == 0 {
			m.at = key.at // not the colon, which is what the library names
		}
		if key.kind != kindString {
			if len(f.all) == before { // else it has been said
				f.add(key.at, "a key is a string; put %s into quotes", shown(key.text))
			}
			continue
		}
		if earlier, twice := first[key.text]; twice {
			f.add(key.at, "%s is there already, in line %d", shown(key.text), earlier.Line)
			continue
		}
		first[key.text] = key.at
		m.pairs = append(m.pairs, pair{key.text, key.at, convert(f, v.Value, depth+1)})
	}
	return m
}

// ReadManifest reads r as Parse does.
func ReadManifest(name string, r io.Reader, s Server) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return Parse(name, text, s)
}
