package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fault is one thing that is wrong with one variable. Text says what it takes
// and what it got, and is safe to print.
type Fault struct {
	Name string // SANDBOX_DOCKER_HOST
	Text string
}

func (f Fault) String() string { return f.Name + " " + f.Text }

// Faults is every fault of one reading, in the order of the table. It is the
// error that Load returns.
type Faults []Fault

// Error gives one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

func (f *Faults) add(name, format string, args ...any) {
	*f = append(*f, Fault{Name: name, Text: fmt.Sprintf(format, args...)})
}

// With returns the faults and one more, in the order of the table: one that only
// the use of a value could find. A variable that has a fault already is not
// reported twice. Text may begin with the variable's name.
func (f Faults) With(name, text string) Faults {
	if f.Has(name) {
		return f
	}
	all := append(slices.Clone(f), Fault{Name: name, Text: strings.TrimPrefix(text, name+" ")})
	order(all)
	return all
}

// Has says whether one of the variables has a fault already, so that one wrong value
// is not reported a second time for what follows from it.
func (f Faults) Has(names ...string) bool {
	for _, fault := range f {
		for _, name := range names {
			if fault.Name == name {
				return true
			}
		}
	}
	return false
}

// shownLimit is the length past which a value is not repeated: longer ones are
// more likely a file's content or a token than a slip.
const shownLimit = 120

var (
	pemBegin = "-----BEGIN"
	// A run that no setting has in it and that keys and tokens do.
	tokenRun = regexp.MustCompile(`[A-Za-z0-9+_=-]{32,}`)
	userinfo = regexp.MustCompile(`://[^/]*@`)
	// Public, and as long as a token.
	digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

// holdsMaterial says whether a value is a file's content where its path belongs
// (CFG-7).
func holdsMaterial(value string) bool {
	return strings.Contains(value, pemBegin) || strings.ContainsAny(value, "\n\r")
}

// looksSecret says whether a value had better not be repeated anywhere.
func looksSecret(value string) bool {
	return holdsMaterial(value) || !utf8.ValidString(value) || userinfo.MatchString(value) ||
		tokenRun.MatchString(digest.ReplaceAllString(value, ""))
}

// Shown returns a value for a message: quoted, or described by its length
// alone where it looks like a secret.
func Shown(value string) string {
	switch {
	case value == "":
		return "nothing"
	case len(value) > shownLimit || looksSecret(value):
		return fmt.Sprintf("a value of %d characters that is not shown here", utf8.RuneCountInString(value))
	default:
		return fmt.Sprintf("%q", value)
	}
}
