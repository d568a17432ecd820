package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check holds one value against the range or the words of its tags. raw is the
// value as it was set, empty where the default stands.
func (f field) check(raw string, faults *Faults) {
	if raw == "" || faults.Has(f.name) {
		return
	}
	if words := f.tag.Get("oneof"); words != "" && !slices.Contains(strings.Fields(words), f.value.String()) {
		faults.add(f.name, "takes %s, got %s", f.takes(), Shown(raw))
		return
	}
	n, isNumber := f.number()
	if !isNumber {
		return
	}
	low, zeroToo, high := f.bounds()
	// Written so that NaN, which compares with nothing, is refused.
	if inside := n >= low && n <= high; !inside && !(zeroToo && n == 0) {
		faults.add(f.name, "takes %s, got %s", f.takes(), Shown(raw))
	}
}

// takes says in words what the variable accepts.
func (f field) takes() string {
	if words := strings.Fields(f.tag.Get("oneof")); len(words) > 0 {
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	if text := f.tag.Get("takes"); text != "" {
		return text
	}
	if f.value.Kind() == reflect.Bool {
		return "true or false"
	}
	low, zeroToo, high := f.bounds()
	text := fmt.Sprintf("%s from %s to %s", f.kind(), plain(low), plain(high))
	if zeroToo {
		return "0, or " + text
	}
	return text
}

// kind names the sort of number.
func (f field) kind() string {
	switch {
	case f.value.Type() == reflect.TypeFor[time.Duration]():
		return "a number of seconds"
	case f.value.CanFloat():
		return "a number"
	default:
		return "a whole number"
	}
}

// number returns the value in the unit that the variable is set in.
func (f field) number() (float64, bool) {
	switch {
	case f.value.Type() == reflect.TypeFor[time.Duration]():
		return time.Duration(f.value.Int()).Seconds(), true
	case f.value.CanInt():
		return float64(f.value.Int()), true
	case f.value.CanFloat():
		return f.value.Float(), true
	default:
		return 0, false
	}
}

// bounds reads the tags min and max. They are constants of the table; a test
// reads them all.
func (f field) bounds() (low float64, zeroToo bool, high float64) {
	text, zeroToo := strings.CutPrefix(f.tag.Get("min"), "0|")
	low, _ = strconv.ParseFloat(text, 64)
	high, _ = strconv.ParseFloat(f.tag.Get("max"), 64)
	return low, zeroToo, high
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
