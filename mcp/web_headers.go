package mcp

import (
	"errors"
	"fmt"
	"net/http"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// single are the headers that say what the body says. Of one that is there twice,
// a proxy could have judged the other.
var single = [...]string{mcpgo.HeaderProtocolVersion, "Mcp-Method", "Mcp-Name"}

// headersAgree holds the headers of a stateless request against its body (T51). It
// returns the refusal where they do not agree, nil where they do.
func (w *web) headersAgree(h http.Header, m message) []byte {
	mismatch := func(format string, args ...any) []byte {
		return rpcError(m.id, mcpgo.HEADER_MISMATCH, fmt.Sprintf(format, args...))
	}
	for _, name := range single {
		if len(h.Values(name)) > 1 {
			return mismatch("%s header is there twice", name)
		}
	}
	stated, meant := h.Get(mcpgo.HeaderProtocolVersion), m.meta.ProtocolVersion()
	switch {
	case h.Get(mcpgo.HeaderLastEventID) != "":
		return mismatch("%s is not supported: streams of this version are not resumed, send the request again with a new id", mcpgo.HeaderLastEventID)
	case stated == "":
		return mismatch("%s header is required", mcpgo.HeaderProtocolVersion)
	case meant == "":
		return rpcError(m.id, mcpgo.INVALID_PARAMS, "missing or invalid _meta field "+mcpgo.MetaKeyProtocolVersion)
	case stated != meant:
		return mismatch("%s header %.40q does not match the request's %s %.40q", mcpgo.HeaderProtocolVersion, stated, mcpgo.MetaKeyProtocolVersion, meant)
	}
	if err := w.standardHeadersAgree(h, m, meant); err != nil {
		var fault mcpgo.HeaderMismatchError
		if errors.As(err, &fault) {
			return mismatch("%v", err)
		}
		return rpcError(m.id, mcpgo.INVALID_PARAMS, err.Error())
	}
	return nil
}

// standardHeadersAgree compares what the protocol wants repeated in headers: the
// method, the name, and the arguments that a tool marks so.
func (w *web) standardHeadersAgree(h http.Header, m message, version string) error {
	if err := mcpgo.ValidateStandardHeaders(h.Get, version, mcpgo.MCPMethod(m.method), m.params); err != nil {
		return err
	}
	if m.method != string(mcpgo.MethodToolsCall) {
		return nil
	}
	name, _ := mcpgo.ExtractHeaderName(mcpgo.MethodToolsCall, m.params)
	tool := w.s.mcp.GetTool(name)
	if tool == nil {
		return nil // said by whoever looks for the tool
	}
	return mcpgo.ValidateParamHeadersLookup(func(name string) (string, bool) {
		values := h.Values(name)
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}, &tool.Tool, m.params)
}
