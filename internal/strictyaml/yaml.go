package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// Most bounds a file in bytes.
	Most = 256 << 10
	// deepest bounds how far a file nests.
	deepest = 64
)

// Kind is what a Node is.
type Kind uint8

// The kinds of nodes.
const (
	KindNull Kind = iota
	KindString
	KindInt
	KindFloat
	KindBool
	KindList
	KindMap
)

func (k Kind) String() string {
	return [...]string{"nothing", "a string", "a whole number", "a number", "true or false", "a list", "a mapping"}[k]
}

// Node is a value of the file with its place. Mappings keep their order, which
// rules depend on.
type Node struct {
	Kind  Kind
	At    Position
	Text  string // of a scalar: a string's content, else as it is written
	Items []Node
	Pairs []Pair
}

// Pair is one entry of a mapping.
type Pair struct {
	Key   string
	At    Position
	Value Node
}

// Get returns the value of a key.
func (n Node) Get(key string) (Node, bool) {
	for _, p := range n.Pairs {
		if p.Key == key {
			return p.Value, true
		}
	}
	return Node{}, false
}

// Read reads one document in the strict part of YAML that our files use: string
// keys, each once, and no anchors, aliases, merges or tags, with which a file
// says something else than what it shows. What is wrong is added to f; ok says
// that nothing was.
func Read(f *Collector, text []byte) (root Node, ok bool) {
	switch {
	case len(text) > Most:
		f.Add(Position{}, "%s has at most %d bytes, this one has %d", f.What, Most, len(text))
		return Node{}, false
	case !utf8.Valid(text):
		f.Add(Position{}, "%s is UTF-8 text", f.What)
		return Node{}, false
	}
	// Some editors begin a file with a mark of its byte order.
	file, err := parseYAML(bytes.TrimPrefix(text, []byte("\uFEFF")))
	if err != nil {
		at, message := syntax(err)
		f.Add(at, "not YAML: %s", message)
		return Node{}, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) != 1 {
		f.Add(Position{}, "%s is one YAML document, this has %d", f.What, len(bodies))
		return Node{}, false
	}
	before := len(f.All)
	root = convert(f, bodies[0], 0)
	return root, len(f.All) == before
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

// tooDeep finds where brackets, or dashes of one line, nest deeper than a file
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

func convert(f *Collector, n ast.Node, depth int) Node {
	if n == nil {
		return Node{}
	}
	at := place(n.GetToken())
	if depth > deepest {
		f.Add(at, "nests deeper than %d levels", deepest)
		return Node{At: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return mapping(f, at, n.Values, depth)
	case *ast.MappingValueNode:
		return mapping(f, at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := Node{Kind: KindList, At: at}
		for _, item := range n.Values {
			list.Items = append(list.Items, convert(f, item, depth+1))
		}
		return list
	case *ast.StringNode:
		return Node{Kind: KindString, At: at, Text: n.Value}
	case *ast.LiteralNode:
		return Node{Kind: KindString, At: at, Text: n.Value.Value}
	case *ast.IntegerNode:
		// 010 and 1_000 are other numbers to other readers of YAML.
		text := fmt.Sprint(n.Value)
		if written := n.GetToken().Value; written != text {
			f.Add(at, "write %s as a decimal number, or put it into quotes", Shown(written))
		}
		return Node{Kind: KindInt, At: at, Text: text}
	case *ast.FloatNode:
		return Node{Kind: KindFloat, At: at, Text: fmt.Sprint(n.Value)}
	case *ast.BoolNode:
		return Node{Kind: KindBool, At: at, Text: fmt.Sprint(n.Value)}
	case *ast.NullNode:
		return Node{Kind: KindNull, At: at}
	default:
		f.Add(at, "%s is not used in %s", strings.ToLower(n.Type().YAMLName()), f.What)
		return Node{At: at}
	}
}

func mapping(f *Collector, at Position, values []*ast.MappingValueNode, depth int) Node {
	m := Node{Kind: KindMap, At: at}
	first := map[string]Position{}
	for _, v := range values {
		before := len(f.All)
		key := convert(f, v.Key, depth+1)
		if len(m.Pairs) == 0 {
			m.At = key.At // not the colon, which is what the library names
		}
		if key.Kind != KindString {
			if len(f.All) == before { // else it has been said
				f.Add(key.At, "a key is a string; put %s into quotes", Shown(key.Text))
			}
			continue
		}
		if earlier, twice := first[key.Text]; twice {
			f.Add(key.At, "%s is there already, in line %d", Shown(key.Text), earlier.Line)
			continue
		}
		first[key.Text] = key.At
		m.Pairs = append(m.Pairs, Pair{key.Text, key.At, convert(f, v.Value, depth+1)})
	}
	return m
}
