package executor

import (
	"encoding/json"
	"fmt"

	"caisson/sandbox"
)

// NewEnvelope makes the envelope of one call of a tool that the manifest
// declares, with a nonce of its own. Name is the tool as clients see it;
// arguments are a JSON object. The error is KindInvalid before anything is asked
// of an engine: a tool that nobody declared, or a toolkit's that its filter leaves
// out.
func (m *Manifest) NewEnvelope(name string, arguments json.RawMessage) (Envelope, error) {
	for _, t := range m.Tools {
		switch {
		case t.Name != name:
		case t.REPL != "":
			return newEnvelope(REPLPath, "", arguments, map[string]any{"name": t.Name})
		default:
			return newEnvelope(CommandPath, "", arguments, map[string]any{"name": t.Name, "command": t.Command})
		}
	}
	for _, a := range m.Agents {
		if a.Name == name {
			return newEnvelope(AgentPath, "", arguments, map[string]any{
				"agent_ref": a.Ref, "tool_name": a.Name, "tool_description": a.Description, "use_conversation_method": true,
			})
		}
	}
	if kit, own, ok := m.ToolkitOf(name); ok && kit.Includes(own) {
		return newEnvelope(ToolkitPath, own, arguments, map[string]any{"name": kit.Name, "command": kit.Command})
	}
	return Envelope{}, sandbox.Invalid("name", "%s", m.Unknown(name))
}

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
