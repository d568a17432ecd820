package mcp

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"caisson/sandbox"
)

// The bounds of a pattern that a client sends. RE2 does not backtrack, but a byte may
// cost a step for each instruction of the program that a pattern compiles to, and
// repetitions make many instructions of few characters (T53).
const (
	maxPattern      = 2 << 10 // bytes
	maxInstructions = 2000
	// matchSteps bounds one match: instructions times bytes.
	matchSteps = 8 << 20
)

// pattern is a regular expression of a client, in RE2 syntax; ^ and $ stand for the
// ends of lines. It may be used by several at once.
type pattern struct {
	*regexp.Regexp
	size int // instructions, or some more
}

// lineMode makes ^ and $ stand for the ends of lines.
const lineMode = "(?m)"

// compile reads a pattern that a client sent. One that is too large is refused
// before anything is made of it.
func compile(field, text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, sandbox.Invalid(field, "%s has %d bytes; a regular expression may have %d", field, len(text), maxPattern)
	}
	tree, err := syntax.Parse(lineMode+text, syntax.Perl)
	if err != nil {
		return nil, wrongPattern(field, err)
	}
	size := 2 + programSize(tree) // a beginning and an end
	if size > maxInstructions {
		return nil, sandbox.Invalid(field, "%s is too costly: with its repetitions it has about %d parts; a regular expression may have %d", field, size, maxInstructions)
	}
	re, err := regexp.Compile(lineMode + text)
	if err != nil {
		return nil, wrongPattern(field, err)
	}
	return &pattern{re, size}, nil
}

func wrongPattern(field string, err error) error {
	return sandbox.Invalid(field, "%s is no regular expression in RE2 syntax: %s", field, faultOf(err))
}

// faultOf is what is wrong with a pattern, without what we put before it.
func faultOf(err error) string {
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		return "it cannot be compiled"
	}
	return fmt.Sprintf("%s: %s", fault.Code, show(strings.TrimPrefix(fault.Expr, lineMode)))
}

// programSize is how many instructions a tree compiles to, or some more. It cannot overflow: the
// parser refuses repetitions, also nested, of more than 1000.
func programSize(tree *syntax.Regexp) int {
	n := 0
	for _, part := range tree.Sub {
		n += programSize(part)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return len(tree.Rune)
	case syntax.OpConcat:
		return n
	case syntax.OpRepeat:
		if tree.Max == -1 { // {2,} is two, the last with a loop
			return max(tree.Min, 1)*n + 2
		}
		return tree.Min*n + (tree.Max-tree.Min)*(n+1) + 1 // {2,4} is two, and two that may be left out
	case syntax.OpCapture, syntax.OpStar:
		return n + 2
	default: // an alternative has a branch for each but one
		return n + max(len(tree.Sub), 1)
	}
}

// part is how much of an output is matched at once: less with a costly pattern, so
// that a match, which nothing can stop, is over in less than a second.
func (p *pattern) part(most int) int { return min(most, matchSteps/p.size) }
