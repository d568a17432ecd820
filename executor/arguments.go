package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	faultkind "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"caisson/internal/nearest"
	"caisson/sandbox"
)

// mostArguments bounds the arguments of one call in bytes, with room for the rest
// of an envelope.
const mostArguments = 48 << 20

// checker checks the arguments of a tool. It is read-only once made.
type checker struct {
	schema *jsonschema.Schema // nil: any object will do
	width  int                // schemas that one value may be held against
}

// check holds the arguments of a call against the tool's schema, and what the check
// costs against its bounds. The error is KindInvalid and names the argument at fault
// (TX-2).
func (c checker) check(arguments json.RawMessage) error {
	if len(arguments) > mostArguments {
		return sandbox.Errorf("check arguments", sandbox.KindTooLarge, "the arguments have %d bytes, at most %d can be sent", len(arguments), mostArguments)
	}
	if !json.Valid(arguments) {
		return sandbox.Invalid("arguments", "the arguments are no JSON object")
	}
	if err := countValues(arguments, min(mostValues, mostChecks/max(c.width, 1))); err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return sandbox.Invalid("arguments", "the arguments are no JSON object")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return sandbox.Invalid("arguments", "the arguments are an object")
	}
	if err := checkNumbers(object); err != nil {
		return err
	}
	if c.schema == nil {
		return nil
	}
	err = c.schema.Validate(object)
	var fault *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &fault):
		return sandbox.Invalid("arguments", "the arguments do not match the tool's schema")
	}
	return sentence(innermost(fault), c.schema)
}

// innermost is the cause that lies deepest in the arguments, the first of several:
// the others are consequences of it.
func innermost(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		below := innermost(cause)
		if best == e || len(below.InstanceLocation) > len(best.InstanceLocation) {
			best = below
		}
	}
	return best
}

// sentence says what is wrong with one argument.
func sentence(e *jsonschema.ValidationError, schema *jsonschema.Schema) error {
	at := field(e.InstanceLocation)
	inside := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	switch k := e.ErrorKind.(type) {
	case *faultkind.Required:
		name := inside(k.Missing[0])
		return sandbox.Invalid(name, "%s is required", name)
	case *faultkind.AdditionalProperties:
		name := inside(cutAt(clean(k.Properties[0]), 60))
		text := fmt.Sprintf("there is no argument %s", shown(name))
		if at == "" {
			text += known(schema, k.Properties[0])
		}
		return sandbox.Invalid(name, "%s", text)
	case *faultkind.AnyOf, *faultkind.OneOf, *faultkind.AllOf, *faultkind.Not:
		if at != "" {
			return sandbox.Invalid(at, "%s matches none of the forms that it may have", at)
		}
		return sandbox.Invalid("arguments", "the arguments match none of the forms that they may have")
	default:
		text := cutAt(clean(e.ErrorKind.LocalizedString(message.NewPrinter(language.English))), 300)
		if at == "" {
			return sandbox.Invalid("arguments", "the arguments are wrong: %s", text)
		}
		return sandbox.Invalid(at, "%s is wrong: %s", at, text)
	}
}

// known names the argument that was likely meant, or the ones there are.
func known(schema *jsonschema.Schema, name string) string {
	names := make([]string, 0, len(schema.Properties))
	for property := range schema.Properties {
		names = append(names, property)
	}
	if likely := nearest.Likely(name, names); likely != "" {
		return fmt.Sprintf("; did you mean %s?", likely)
	}
	return ""
}

// field is the way to a value in the arguments, as a person writes it.
func field(location []string) string {
	var b strings.Builder
	for _, step := range location {
		switch _, err := strconv.ParseUint(step, 10, 32); {
		case err == nil:
			b.WriteString("[" + step + "]")
		case b.Len() == 0:
			b.WriteString(step)
		default:
			b.WriteString("." + step)
		}
	}
	return cutAt(clean(b.String()), 200)
}
