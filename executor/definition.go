package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

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
	// noArguments is the schema of a command that declares none.
	noArguments = `{"type":"object","properties":{},"additionalProperties":false}`
	replSchema  = `{"type":"object","properties":{` +
		`"code":{"type":"string","description":"Python code. The value of its last expression is returned."},` +
		`"timeout_seconds":{"type":"number","minimum":0.1,"description":"How long the code may run. Default 60."}},` +
		`"required":["code"],"additionalProperties":false}`
	agentSchema = `{"type":"object","properties":{` +
		`"question":{"type":"string","description":"What the agent is asked."},` +
		`"include_previous_results":{"type":"boolean","description":"Whether the agent is to use what it was asked before, where it keeps that."}},` +
		`"required":["question"],"additionalProperties":false}`
)

// entry is a definition with what a call of it needs.
type entry struct {
	Definition
	subject Subject
	path    string         // of the envelope
	method  string         // of a toolkit: the tool's own name
	parts   map[string]any // what the tool is made from
	checker checker        // of arguments
}

// envelope makes the envelope of one call, for a client session: a REPL is one for
// each (D26).
func (e *entry) envelope(arguments json.RawMessage, client string) (Envelope, error) {
	parts := e.parts
	if e.path == REPLPath {
		parts = maps.Clone(parts)
		parts["instance"] = clientHash(client)
	}
	return newEnvelope(e.path, e.method, arguments, parts)
}

// clientHash names a client session without telling its key; no session has none.
func clientHash(client string) string {
	if client == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("client\x00" + client))
	return hex.EncodeToString(sum[:8])
}

// own lists a manifest's tools and agents: all but what toolkits have, which only
// their servers know.
func (m *Manifest) own() []*entry {
	var all []*entry
	for _, t := range m.Tools {
		e := &entry{subject: t.subject(t.Name), path: CommandPath, parts: map[string]any{"name": t.Name, "command": t.Command}}
		e.Definition = Definition{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Kind: KindCommand}
		if t.REPL != "" {
			e.path, e.parts = REPLPath, map[string]any{"name": t.Name}
			e.Kind, e.InputSchema = KindREPL, json.RawMessage(replSchema)
		}
		all = append(all, e)
	}
	for _, a := range m.Agents {
		all = append(all, &entry{
			Definition: Definition{Name: a.Name, Description: a.Description, InputSchema: json.RawMessage(agentSchema), Kind: KindAgent},
			subject:    a.subject(a.Name), path: AgentPath, parts: map[string]any{
				"agent_ref": a.Ref, "tool_name": a.Name, "tool_description": a.Description, "use_conversation_method": true,
			},
		})
	}
	for _, e := range all {
		// Nobody says what these do: the worst is taken to be true, but that a tool
		// without a network touches no open world.
		instance := m.policies[0].Resolve(e.subject).Rule.Instance
		e.Destructive = true
		e.OpenWorld = instance.Executor != Docker || instance.Options.Network != sandbox.NetworkNone
		e.take(acceptable(e.InputSchema))
	}
	return all
}

// take gives an entry the form of its schema.
func (e *entry) take(f form) {
	if f.said != "" {
		e.Description = cutAt(e.Description, longestDescription-len(f.said)-len("…\n")) + "\n" + f.said
	}
	e.InputSchema, e.checker = f.schema, f.checker
}
