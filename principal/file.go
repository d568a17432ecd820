package principal

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"caisson/internal/strictyaml"
	"caisson/sandbox"
)

// Faults is what is wrong with a file, the error that Parse returns.
type Faults = strictyaml.Faults

type node = strictyaml.Node

const (
	longestName     = 128 // characters
	longestIdentity = 256 // characters of a common name or a subject
	mostTokens      = 8   // of one principal: the old and the new one while they are changed
)

var (
	digestForm    = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	workspaceForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`) // leaves a character of a key of 64
)

// keys are what a principal may have, in the order of the documentation.
func keys() []string {
	return []string{
		"name", "token_sha256", "client_cert_cn", "oidc_subject", "max_sessions", "max_workspaces", "max_network", "max_cpu", "max_memory_mb", "max_pids",
		"max_ttl_seconds", "tools", "images", "workspaces", "policy", "rate_per_minute",
	}
}

// Parse reads a file of principals. Name stands for the file in faults, policies
// are the execution policies that there are, nil when that is not known. The
// error is Faults with everything that is wrong; none repeats a token or a hash.
func Parse(name string, text []byte, policies []string) (*Book, error) {
	f := &file{
		Reader:   strictyaml.Reader{Collector: &strictyaml.Collector{File: name, What: "a file of principals"}},
		policies: policies, known: policies != nil, book: &Book{},
	}
	if root, ok := strictyaml.Read(f.Collector, text); ok {
		f.read(root)
	}
	if len(f.All) > 0 {
		return nil, f.Sorted()
	}
	return f.book, nil
}

// file reads one file.
type file struct {
	strictyaml.Reader
	policies []string
	known    bool
	book     *Book
}

func (f *file) read(root node) {
	if !f.Mapping(root, "a file of principals", "principals") {
		return
	}
	all, ok := f.Required(root, "a file of principals", "principals")
	if !ok {
		return
	}
	items := f.List(all, "principals")
	if len(items) == 0 && all.Kind == strictyaml.KindList {
		f.Add(all.At, "principals is empty: nobody could call")
	}
	for _, item := range items {
		if f.Mapping(item, "a principal", keys()...) {
			e := entry{position: item.At.Line}
			f.identity(item, &e)
			f.bounds(item, &e)
			f.reach(item, &e)
			f.book.entries = append(f.book.entries, e)
		}
	}
}

// identity reads who a principal is and how it shows that.
func (f *file) identity(item node, e *entry) {
	if n, ok := f.Required(item, "a principal", "name"); ok {
		e.Name = f.unique(n, "name", longestName, func(e entry) string { return e.Name })
	}
	ways := 0
	if n, ok := item.Get("token_sha256"); ok {
		ways++
		f.tokens(n, e)
	}
	if n, ok := item.Get("client_cert_cn"); ok {
		ways++
		e.certCN = f.unique(n, "client_cert_cn", longestIdentity, func(e entry) string { return e.certCN })
	}
	if n, ok := item.Get("oidc_subject"); ok {
		ways++
		e.subject = f.unique(n, "oidc_subject", longestIdentity, func(e entry) string { return e.subject })
	}
	if ways == 0 {
		f.Add(item.At, "a principal needs token_sha256, client_cert_cn or oidc_subject to show who it is")
	}
}

// unique reads a name that no principal before has.
func (f *file) unique(n node, what string, most int, of func(entry) string) string {
	text, ok := f.Text(n, what)
	switch {
	case !ok:
	case utf8.RuneCountInString(text) > most:
		f.Add(n.At, "%s has at most %d characters", what, most)
	case strings.TrimSpace(text) != text:
		f.Add(n.At, "%s begins or ends with a space", what)
	default:
		for _, other := range f.book.entries {
			if of(other) == text {
				f.Add(n.At, "this %s is another's already, in line %d", what, other.position)
			}
		}
		return text
	}
	return ""
}

// tokens reads one hash, or a few while a token is being changed. A fault says
// nothing of the value: it may be the token itself.
func (f *file) tokens(n node, e *entry) {
	items := []node{n}
	if n.Kind == strictyaml.KindList {
		items = n.Items
		if len(items) == 0 || len(items) > mostTokens {
			f.Add(n.At, "token_sha256 is one hash or a list of 1 to %d", mostTokens)
		}
	}
	for _, item := range items {
		text, ok := f.Text(item, "token_sha256")
		if !ok {
			continue
		}
		if !digestForm.MatchString(text) {
			f.Add(item.At, "token_sha256 is the SHA-256 of the token, 64 hexadecimal digits; `caisson principals hash` makes one")
			continue
		}
		var digest [sha256.Size]byte
		_, _ = hex.Decode(digest[:], []byte(text)) // of the right form
		if digest == sha256.Sum256(nil) || digest == [sha256.Size]byte{} {
			f.Add(item.At, "token_sha256 is the hash of no token at all")
			continue
		}
		for _, other := range append(f.book.entries, *e) {
			if slices.Contains(other.digests, digest) {
				f.Add(item.At, "this token_sha256 is there already, in line %d", other.position)
			}
		}
		e.digests = append(e.digests, digest)
	}
}

// bounds reads the ceilings of a principal's sessions.
func (f *file) bounds(item node, e *entry) {
	c := &sandbox.Ceilings{}
	for key, read := range map[string]func(node){
		"max_sessions": func(n node) {
			v, _ := f.Whole(n, "max_sessions", 1, 100_000)
			c.Sessions = int(v)
		},
		"max_workspaces": func(n node) {
			v, _ := f.Whole(n, "max_workspaces", 1, 100_000)
			c.MaxWorkspaces = int(v)
		},
		"max_network": func(n node) {
			v, _ := f.OneOf(n, "max_network", string(sandbox.NetworkNone), string(sandbox.NetworkInternal), string(sandbox.NetworkEgress))
			c.MaxNetwork = sandbox.Network(v)
		},
		"max_cpu":       func(n node) { c.MaxCPU, _ = f.Number(n, "max_cpu", 0.01, 4096) },
		"max_memory_mb": func(n node) { c.MaxMemoryMB, _ = f.Whole(n, "max_memory_mb", 6, 67_108_864) },
		"max_pids":      func(n node) { c.MaxPids, _ = f.Whole(n, "max_pids", 16, 4_194_304) },
		"max_ttl_seconds": func(n node) {
			v, _ := f.Whole(n, "max_ttl_seconds", 1, 31_536_000)
			c.MaxTTL = time.Duration(v) * time.Second
		},
		"images": func(n node) { c.Images = f.patterns(n, "images") },
		"workspaces": func(n node) {
			text, ok := f.Text(n, "workspaces")
			if ok && !workspaceForm.MatchString(text) {
				f.Add(n.At, "workspaces is what workspace keys must begin with: 1 to 63 of A-Z a-z 0-9 _ -")
			}
			c.Workspaces = text
		},
	} {
		if n, ok := item.Get(key); ok {
			read(n)
			e.Ceilings = c
		}
	}
}

// reach reads what a principal may call, and how often.
func (f *file) reach(item node, e *entry) {
	if n, ok := item.Get("tools"); ok {
		e.Tools = f.patterns(n, "tools")
	}
	if n, ok := item.Get("rate_per_minute"); ok {
		v, _ := f.Whole(n, "rate_per_minute", 1, 1_000_000)
		e.RatePerMinute = int(v)
	}
	if n, ok := item.Get("policy"); ok {
		text, ok := f.Text(n, "policy")
		if ok && f.known && !slices.Contains(f.policies, text) {
			f.Add(n.At, "the manifest has no execution policy %s; %s", strictyaml.Shown(text), strictyaml.Meant(text, f.policies))
		}
		e.Policy = text
	}
}

// patterns reads a list of patterns. An empty one could mean all or none, so it
// is neither.
func (f *file) patterns(n node, what string) []string {
	all := f.Texts(n, what)
	if n.Kind == strictyaml.KindList && len(n.Items) == 0 {
		f.Add(n.At, "%s is empty: leave it out to allow all", what)
	}
	for _, pattern := range all {
		if _, err := path.Match(pattern, ""); err != nil {
			f.Add(n.At, "%s: %s is no pattern", what, strictyaml.Shown(pattern))
		}
	}
	return all
}
