package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"caisson/sandbox"
)

// The bounds of what is checked before it is held against a schema. The check cannot
// be stopped, keeps an error for each fault that it finds, and computes with numbers
// as exact fractions.
const (
	mostValues = 100_000   // in the arguments of one call, those in lists and objects among them
	mostChecks = 1_000_000 // values times the schemas that one of them may be held against
	mostDigits = 1000      // of a number, as it is written
	// mostExponent is the largest exponent of a number either way; no float64 has more.
	mostExponent = 400
	// mostWide is how many numbers may have more than wideDigits characters or such an
	// exponent: to compute with each costs as much as with a hundred others.
	mostWide   = 1000
	wideDigits = 40
)

// countValues refuses arguments with more values than most, before anything is made
// of them. The text is valid JSON.
func countValues(text []byte, most int) error {
	values, depth := 1, 0
	var name []byte // of the argument that is being read
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			literal := literalAt(text[i:])
			i += len(literal) - 1
			if after := bytes.TrimLeft(text[i+1:], " \t\r\n"); depth == 1 && len(after) > 0 && after[0] == ':' {
				name = literal
			}
		case '{', '[':
			values++
			depth++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if values > most {
			at := "arguments"
			if name != nil {
				at = field([]string{nameOf(name)})
			}
			return sandbox.Invalid(at, "the arguments hold more than %d values, which is all that can be checked for this tool, and the last of them are in %s; hand large data over in a file, or in one text", most, at)
		}
	}
	return nil
}

// checkNumbers refuses numbers that cost too much to compute with, and says where one
// of them stands.
func checkNumbers(value any) error {
	var c numberCheck
	return c.check(value, nil)
}

// numberCheck goes through the numbers of a value.
type numberCheck struct {
	wide int
}

func (c *numberCheck) check(value any, at []string) error {
	switch v := value.(type) {
	case json.Number:
		if fault := c.fault(string(v)); fault != "" {
			return sandbox.Invalid(field(at), "%s is wrong: %s", field(at), fault)
		}
	case []any:
		for i, item := range v {
			if err := c.check(item, append(at, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, item := range v {
			if err := c.check(item, append(at, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault says what is wrong with a number of JSON, or nothing.
func (c *numberCheck) fault(literal string) string {
	wide := len(literal) > wideDigits
	if len(literal) > mostDigits {
		return fmt.Sprintf("a number has at most %d characters; give a longer one as a text", mostDigits)
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(literal[i+1:])
		if err != nil || exponent > mostExponent || exponent < -mostExponent {
			return fmt.Sprintf("a number's exponent is -%d to %d", mostExponent, mostExponent)
		}
		wide = wide || exponent > wideDigits || exponent < -wideDigits
	}
	if wide {
		c.wide++
	}
	if c.wide > mostWide {
		return fmt.Sprintf("at most %d numbers have more than %d characters or an exponent beyond -%d to %d; give more of them as texts", mostWide, wideDigits, wideDigits, wideDigits)
	}
	return ""
}

// weight is what it costs to look through a part of a schema: 1 for a text, 4 for
// what has to be read or computed.
func weight(part any) int {
	n := 4
	switch v := part.(type) {
	case string:
		n = 1
	case []any:
		for _, item := range v {
			n += weight(item)
		}
	case map[string]any:
		for _, item := range v {
			n += weight(item)
		}
	}
	return n
}

// width bounds how many schemas of a schema without references one value may be held
// against: those of all branches for the same value, and below them those for the
// same member or item.
func width(schema any) int {
	var w schemaWalk
	here, below := 1, 0
	object, _ := schema.(map[string]any)
	for word, part := range object {
		list, isList := part.([]any)
		named, _ := part.(map[string]any)
		switch word {
		case "properties": // a member is one of them
			widest := 0
			for _, one := range named {
				widest = max(widest, width(one))
			}
			below += widest
		case "prefixItems":
			widest := 0
			for _, one := range list {
				widest = max(widest, width(one))
			}
			below += widest
		case "patternProperties":
			for _, one := range named {
				below += width(one)
			}
		case "dependentSchemas":
			for _, one := range named {
				here += width(one)
			}
		case "anyOf", "oneOf", "allOf":
			for _, one := range list {
				here += width(one)
			}
		case "not", "if", "then", "else":
			here += width(part)
		case "enum", "const", "required", "dependentRequired": // each is looked through
			here += weight(part) / 4
		default:
			for _, other := range w.ofSchema() {
				if word == other && !isList {
					below += width(part)
				}
			}
		}
	}
	return here + below
}
