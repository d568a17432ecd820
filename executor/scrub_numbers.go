package executor

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// numberForm is a value that may come back as a number of JSON.
var numberForm = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$`)

// numbers finds values of an environment among numbers of JSON: the same number,
// however it is written, and one in whose digits a longer value stands. Read-only once
// made.
type numbers struct {
	same   map[string]bool // by canonical
	within []string
}

// add adds a value, where it is one that a number may be.
func (n *numbers) add(value string) {
	value = strings.TrimSpace(value)
	mantissa, _, _ := strings.Cut(strings.ToLower(value), "e")
	if len(strings.TrimLeft(mantissa, "+-0.")) < leastSecret || !numberForm.MatchString(value) {
		return // fewer digits are in every result
	}
	if n.same == nil {
		n.same = map[string]bool{}
	}
	n.same[canonical(value)] = true
	if digits := strings.TrimLeft(value, "+-0"); len(digits) >= leastEncoded {
		n.within = append(n.within, digits)
	}
}

// has says whether a number of JSON is one of the values.
func (n *numbers) has(literal string) bool {
	if len(n.same) == 0 {
		return false
	}
	if n.same[canonical(literal)] {
		return true
	}
	for _, digits := range n.within {
		if strings.Contains(literal, digits) {
			return true
		}
	}
	return false
}

// canonical is a number without its sign as its digits and their power of ten, the
// same for all ways to write it.
func canonical(literal string) string {
	mantissa, power := strings.TrimLeft(literal, "+-"), 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(mantissa[i+1:]); err != nil {
			return literal // no value has such an exponent
		}
		mantissa = mantissa[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	short := strings.TrimRight(digits, "0")
	return short + "e" + strconv.Itoa(power+len(digits)-len(short))
}

// scrubbed copies a piece of JSON that has no string in it, with texts in the places
// of numbers that are values.
func (n *numbers) scrubbed(b *bytes.Buffer, piece []byte) {
	if len(n.same) == 0 {
		b.Write(piece)
		return
	}
	for i := 0; i < len(piece); {
		if c := piece[i]; c != '-' && (c < '0' || c > '9') {
			b.WriteByte(c)
			i++
			continue
		}
		literal := piece[i:numberEnd(piece, i)]
		i += len(literal)
		if n.has(string(literal)) {
			writeJSONString(b, scrubbed)
		} else {
			b.Write(literal)
		}
	}
}
