package executor

import (
	"encoding/json"
	"fmt"
)

// newEnvelope makes one whose tool is made from the parts.
func newEnvelope(path, method string, arguments json.RawMessage, parts map[string]any) (Envelope, error) {
	e := Envelope{ToolPath: path, Method: method, Arguments: arguments, Nonce: NewNonce(), InitArgs: map[string]json.RawMessage{}}
	for name, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return Envelope{}, fmt.Errorf("write envelope: %w", err)
		}
		e.InitArgs[name] = text
	}
	return e, nil
}
