package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"caisson/internal/nearest"
)

// Load reads settings from an environment in the form of os.Environ; of a
// repeated variable the last one counts.
//
// The error is nil or Faults with everything that is wrong. The value is
// usable either way, so that a server can say what is wrong in its own
// surroundings: a variable that is at fault has its zero value.
func Load(environ []string) (Settings, error) {
	s := Settings{given: given(environ)}
	var faults Faults

	clean := s.screen(&faults)
	s.parse(clean, &faults)
	for _, f := range s.fields() {
		f.check(s.given[f.name], &faults)
	}
	s.checkRules(&faults)
	s.nameInstance(&faults)
	s.warnEndpoint()
	order(faults)
	if len(faults) > 0 {
		return s, faults
	}
	return s, nil
}

// given picks our variables. An empty one is as good as absent: compose files
// and units pass `NAME=` for what was left out.
func given(environ []string) map[string]string {
	vars := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !ours(name) {
			continue
		}
		delete(vars, name)
		if value != "" {
			vars[name] = value
		}
	}
	return vars
}

// screen warns about names that nobody reads and refuses certificate material
// wherever it stands (CFG-7). It returns what may be parsed.
func (s *Settings) screen(faults *Faults) map[string]string {
	known := Names()
	clean := make(map[string]string, len(s.given))
	for name, value := range s.given {
		row := slices.Contains(known, name)
		switch {
		case holdsMaterial(value):
			faults.add(name, "holds several lines or what looks like certificate material; the environment carries the paths of files, never their content")
		case row:
			clean[name] = value
		default:
			s.Warnings = append(s.Warnings, unknown(name, known))
		}
	}
	sort.Strings(s.Warnings)
	return clean
}

// unknown names the nearest variable of the same group, told by what follows
// the prefix: with it, everything would be near.
func unknown(name string, known []string) string {
	prefix := DockerPrefix
	if strings.HasPrefix(name, MCPPrefix) {
		prefix = MCPPrefix
	}
	var tails []string
	for _, k := range known {
		if tail, ok := strings.CutPrefix(k, prefix); ok {
			tails = append(tails, tail)
		}
	}
	text := name + " is set but not known and has no effect"
	if near := nearest.Likely(strings.TrimPrefix(name, prefix), tails); near != "" {
		text += fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return text
}

// parse fills both groups. The library's own texts repeat the value and name
// the field, not the variable, so that only which field failed is taken.
func (s *Settings) parse(vars map[string]string, faults *Faults) {
	for _, group := range []struct {
		prefix string
		target any
	}{{DockerPrefix, &s.Docker}, {MCPPrefix, &s.MCP}} {
		err := env.ParseWithOptions(group.target, env.Options{
			Environment: vars,
			Prefix:      group.prefix,
			FuncMap:     map[reflect.Type]env.ParserFunc{reflect.TypeFor[time.Duration](): seconds},
		})
		var all env.AggregateError
		if !errors.As(err, &all) {
			continue
		}
		for _, one := range all.Errors {
			var wrong env.ParseError
			if !errors.As(one, &wrong) {
				faults.add(group.prefix, "cannot be read: %v", one)
				continue
			}
			structField, _ := reflect.TypeOf(group.target).Elem().FieldByName(wrong.Name)
			f := field{name: group.prefix + structField.Tag.Get("env"), tag: structField.Tag, value: reflect.Zero(structField.Type)}
			faults.add(f.name, "takes %s, got %s", f.takes(), Shown(vars[f.name]))
		}
	}
}

// seconds reads a decimal number of seconds, exactly to the nanosecond, and
// refuses what a Duration cannot hold.
func seconds(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > math.MaxInt64/float64(2*time.Second) {
		return nil, errors.New("not a number of seconds")
	}
	return time.Duration(math.Round(n * float64(time.Second))), nil
}

// order sorts faults by the table, unknown names first, so that two runs say
// the same.
func order(faults Faults) {
	known := Names()
	sort.SliceStable(faults, func(i, j int) bool {
		a, b := slices.Index(known, faults[i].Name), slices.Index(known, faults[j].Name)
		if a != b {
			return a < b
		}
		return faults[i].Name < faults[j].Name
	})
}
