package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// message is one JSON-RPC message of a client. Its parts are read once, here, and
// in one way: what is told apart by them (whose call a notice cancels, whether
// headers agree) is judged on what mcp-go then serves (T51).
type message struct {
	raw    []byte
	id     json.RawMessage // a string or a number, as it was sent; empty for a notice
	method string          // empty for a client's response to a request of ours
	params json.RawMessage
	result json.RawMessage // of a response, with failed
	failed json.RawMessage
	meta   *mcpgo.Meta
	token  json.RawMessage // under which progress is wanted; empty: none is
}

// rpcFault is why a message is not served.
type rpcFault struct {
	code int
	text string
}

// Error is the sentence that a client reads.
func (f *rpcFault) Error() string { return f.text }

func invalidMessage(format string, args ...any) *rpcFault {
	return &rpcFault{mcpgo.INVALID_REQUEST, fmt.Sprintf(format, args...)}
}

// readMessage takes a message apart. With a fault, the id is there if it could be
// read. Names that encoding/json would take for one another are refused: two
// readers could then see two messages in one.
func readMessage(raw []byte) (message, *rpcFault) {
	m := message{raw: raw}
	if !json.Valid(raw) {
		return m, &rpcFault{mcpgo.PARSE_ERROR, "the message is no JSON"}
	}
	if !utf8.Valid(raw) { // json.Valid lets it pass, and an answer that repeats the id would be no JSON
		return m, &rpcFault{mcpgo.PARSE_ERROR, "the message is not UTF-8, which JSON is sent in"}
	}
	if valuesIn(raw) > maxValues {
		return m, invalidMessage("the message has more than %d members and elements, the most that may be; send it in parts", maxValues)
	}
	fields, err := readObject(raw)
	if err != nil {
		return m, invalidMessage("%v", err)
	}
	for name := range fields {
		switch lower := strings.ToLower(name); lower {
		case "jsonrpc", "id", "method", "params", "result", "error":
			if lower != name {
				return m, invalidMessage("the member is called %q, not %q", lower, name)
			}
		}
	}
	if id, given := fields["id"]; given {
		if len(id) > maxName {
			return m, invalidMessage("id is longer than 1 KiB, the most that may be")
		}
		if _, ok := idKey(id); !ok {
			return m, invalidMessage("id must be a string or a number of the size of a double")
		}
		m.id = id
	}
	var version string
	if json.Unmarshal(fields["jsonrpc"], &version) != nil || version != mcpgo.JSONRPC_VERSION {
		return m, invalidMessage("jsonrpc must be %q", mcpgo.JSONRPC_VERSION)
	}
	m.params, m.result, m.failed = fields["params"], fields["result"], fields["error"]
	if name, given := fields["method"]; given && (len(name) > maxName || json.Unmarshal(name, &m.method) != nil || m.method == "") {
		return m, invalidMessage("method must be a name of at most 1 KiB")
	}
	if m.method != string(mcpgo.MethodToolsCall) && len(raw) > maxOther {
		return m, invalidMessage("a message that calls no tool may have %d MiB", maxOther>>20)
	}
	if m.method == "" && (m.id == nil || m.result == nil && m.failed == nil) {
		return m, invalidMessage("the message has no method")
	}
	if params := bytes.TrimSpace(m.params); len(params) > 0 && params[0] != '{' && string(params) != "null" {
		return m, &rpcFault{mcpgo.INVALID_PARAMS, "params must be an object"}
	}
	return m, m.readMeta()
}

// readMeta reads the parameters' _meta the way mcp-go does.
func (m *message) readMeta() *rpcFault {
	if len(m.params) == 0 || m.params[0] != '{' {
		return nil
	}
	if _, err := readObject(m.params); err != nil {
		return invalidMessage("params: %v", err)
	}
	var p struct {
		Meta *mcpgo.Meta `json:"_meta"`
	}
	if json.Unmarshal(m.params, &p) == nil {
		m.meta = p.Meta
	}
	var t struct {
		Name json.RawMessage `json:"name"`
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.params, &t) == nil {
		m.token = t.Meta.Token
	}
	if fault := nameFault("params._meta.progressToken", m.token); fault != nil {
		return fault
	}
	return nameFault("params.name", t.Name)
}

// isRequest says whether the message wants an answer.
func (m *message) isRequest() bool { return m.method != "" && m.id != nil }

// opensStream says whether the message asks for a stream, which is open until
// somebody ends it.
func (m *message) opensStream() bool {
	return m.isRequest() && m.method == string(mcpgo.MethodSubscriptionsListen)
}

// modern says whether the message is of the stateless protocol by its own word.
func (m *message) modern() bool { return mcpgo.IsModernProtocol(m.meta.ProtocolVersion()) }

// readObject reads the members of an object, and refuses one that is there twice,
// whatever the case of its letters.
func readObject(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		if open == json.Delim('[') {
			return nil, invalidMessage("the message must be one object, not a list of them")
		}
		return nil, invalidMessage("the message must be an object")
	}
	fields, seen := map[string]json.RawMessage{}, map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if folded := strings.ToLower(name); seen[folded] {
			return nil, invalidMessage("the member %.40q is there twice", name)
		} else {
			seen[folded] = true
		}
		fields[name] = value
	}
	if _, err := d.Token(); err != nil && err != io.EOF {
		return nil, err
	}
	return fields, nil
}

// idKey is what a request is known by while it is served: 1 and "1" are two
// requests, and a number keeps every digit.
func idKey(id json.RawMessage) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(id))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return "s" + v, true
	case json.Number:
		_, err := v.Float64()
		return "n" + v.String(), err == nil // mcp-go cannot read one that is larger
	default:
		return "", false
	}
}
