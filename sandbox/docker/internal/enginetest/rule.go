package enginetest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Rule is a failpoint: what is done to the first calls that it is for, to the ones
// after them, and so on. Its form is containerd's, which is FreeBSD's fail(9):
//
//	METHOD PATH [COUNT*]ACTION[(ARG)][->...]
//	POST /containers/create 1*error(500)->3*delay(2000)->off
//
// METHOD may be *, PATH is without the API's version, * in it stands for one part
// and ** for any rest. A term without a count is for all further calls; behind the
// last counted one nothing is done. The actions:
//
//	off                 nothing
//	error(STATUS)       answered with the status in the engine's place
//	delay(MS[-MS])      passed on later; of two times, one between them
//	reset               the caller's connection is reset, the engine gets nothing
//	drop                the engine gets the call, the answer is swallowed
//	hang                the engine gets nothing, the caller no answer
//	truncate(BYTES)     the answer's body ends there, as if that were all
//	cut(BYTES)          the connection breaks there
//	slice               the answer comes byte by byte
//	rate(BYTES)         so many bytes a second, both ways
type Rule struct {
	method string
	path   *regexp.Regexp
	terms  []*term
}

type term struct {
	text  string // as it is noted in the record
	left  int    // calls; -1: all
	until time.Duration
	fault Fault
}

var (
	methodForm = regexp.MustCompile(`^(\*|[A-Z]+)$`)
	termForm   = regexp.MustCompile(`^(?:([0-9]+)\*)?([a-z]+)(?:\(([^()]*)\))?$`)
)

// ParseRule reads one rule.
func ParseRule(line string) (*Rule, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 || !methodForm.MatchString(fields[0]) || !strings.HasPrefix(fields[1], "/") && fields[1] != "**" {
		return nil, fmt.Errorf("rule %q: not METHOD PATH TERMS", line)
	}
	path := regexp.QuoteMeta(fields[1])
	path = strings.ReplaceAll(path, `\*\*`, `.*`)
	path = strings.ReplaceAll(path, `\*`, `[^/]*`)
	r := &Rule{method: fields[0], path: regexp.MustCompile("^" + path + "$")}
	for text := range strings.SplitSeq(fields[2], "->") {
		t, err := parseTerm(text)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", line, err)
		}
		r.terms = append(r.terms, t)
	}
	return r, nil
}

// ParseRules reads a rule a line; empty lines and those that begin with # are none.
func ParseRules(in io.Reader) ([]*Rule, error) {
	var all []*Rule
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := ParseRule(line)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

func parseTerm(text string) (*term, error) {
	m := termForm.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("term %q: not [COUNT*]ACTION[(ARG)]", text)
	}
	t := &term{text: strings.TrimPrefix(text, m[1]+"*"), left: -1}
	if m[1] != "" {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, fmt.Errorf("term %q: %w", text, err)
		}
		t.left = n
	}
	return t, t.action(m[2], m[3])
}

// action sets what the term does.
func (t *term) action(name, arg string) error {
	first, last, span := strings.Cut(arg, "-")
	n, err := strconv.Atoi(first)
	takes := false
	switch name {
	case "off":
	case "reset":
		t.fault.Reset = true
	case "drop":
		t.fault.Swallow = true
	case "hang":
		t.fault.Hang = true
	case "slice":
		t.fault.Bytes = true
	case "error":
		takes, t.fault.Status, t.fault.Message = true, n, "a fault of the test's"
		if err == nil && (n < 400 || n > 599) {
			err = fmt.Errorf("%d is no status of an error", n)
		}
	case "delay":
		takes, t.fault.Delay = true, time.Duration(n)*time.Millisecond
		if span && err == nil {
			var most int
			most, err = strconv.Atoi(last)
			t.until, span = time.Duration(most)*time.Millisecond, false
		}
	case "truncate":
		takes, t.fault.Truncate = true, n
	case "cut":
		takes, t.fault.CutAt = true, n
	case "rate":
		takes, t.fault.Rate = true, n
	default:
		return fmt.Errorf("no action %q", name)
	}
	switch {
	case !takes && arg != "":
		return fmt.Errorf("%s takes no argument", name)
	case takes && (err != nil || span || n <= 0):
		return fmt.Errorf("%s(%s): not a number that it takes", name, arg)
	}
	return nil
}

func (r *Rule) matches(method, path string) bool {
	return (r.method == "*" || r.method == method) && r.path.MatchString(path)
}

// next is what is done to the next call, and the term that says so. The proxy's
// lock is held.
func (r *Rule) next() (Fault, string) {
	for _, t := range r.terms {
		if t.left == 0 {
			continue
		}
		if t.left > 0 {
			t.left--
		}
		f := t.fault
		if t.until > f.Delay {
			f.Delay += rand.N(t.until - f.Delay)
		}
		return f, t.text
	}
	return Fault{}, ""
}
