package executor

import (
	"encoding/json"

	"caisson/sandbox"
)

// The kinds of a definition.
const (
	KindCommand = "command"
	KindREPL    = "repl"
	KindToolkit = "toolkit"
	KindAgent   = "agent"
)

// Definition is a tool as clients are told of it. What a toolkit says of its tools
// is a third party's word: it is cleaned, bounded and brought into a form that
// clients accept, and no more believed than that.
type Definition struct {
	Name, Title, Description string
	InputSchema              json.RawMessage // an object with properties, without combinators or references at its root
	Kind                     string

	ReadOnly, Destructive, Idempotent, OpenWorld bool

	// Blocked is why a call is refused whatever the policy says, such as a
	// definition that is not the pinned one; empty: it is not.
	Blocked string
}

const (
	replSchema = `{"type":"object","properties":{` +
		`"code":{"type":"string","description":"Python code. The value of its last expression is returned."},` +
		`"timeout_seconds":{"type":"number","minimum":0.1,"description":"How long the code may run. Default 60."}},` +
		`"required":["code"],"additionalProperties":false}`
	agentSchema = `{"type":"object","properties":{` +
		`"question":{"type":"string","description":"What the agent is asked."},` +
		`"include_previous_results":{"type":"boolean","description":"Whether the agent is to use what it was asked before, where it keeps that."}},` +
		`"required":["question"],"additionalProperties":false}`
)

// own lists the definitions of a manifest's tools and agents: all but those of
// toolkits, which only their servers know.
func (m *Manifest) own() []entry {
	var all []entry
	for _, t := range m.Tools {
		e := entry{subject: t.subject(t.Name), path: CommandPath, parts: map[string]any{"name": t.Name, "command": t.Command}}
		e.Definition = Definition{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Kind: KindCommand}
		if t.REPL != "" {
			e.path, e.parts = REPLPath, map[string]any{"name": t.Name}
			e.Kind, e.InputSchema = KindREPL, json.RawMessage(replSchema)
		}
		all = append(all, m.open(e))
	}
	for _, a := range m.Agents {
		all = append(all, m.open(entry{
			Definition: Definition{Name: a.Name, Description: a.Description, InputSchema: json.RawMessage(agentSchema), Kind: KindAgent},
			subject:    a.subject(a.Name), path: AgentPath, parts: a.parts(),
		}))
	}
	return all
}

// open fills the hints that nobody says anything of: the worst is taken to be
// true, but that a tool without a network touches no open world.
func (m *Manifest) open(e entry) entry {
	instance := m.policies[0].Resolve(e.subject).Rule.Instance
	e.Destructive = true
	e.OpenWorld = instance.Executor != Docker || instance.Options.Network != sandbox.NetworkNone
	return e
}

func (a Agent) parts() map[string]any {
	return map[string]any{
		"agent_ref": a.Ref, "tool_name": a.Name, "tool_description": a.Description, "use_conversation_method": true,
	}
}
