package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// rpcServerFault is the JSON-RPC code of a resource that could not be read
// through no fault of the request. It is of the range that JSON-RPC leaves to
// servers, and none that a client's library uses for itself.
const rpcServerFault = -32010

// codeMark begins the text of a handler's error. mcp-go sends every such error as
// -32603 and lets no handler choose; so the handler puts the code and the data before
// its sentence, and placeCode moves them where they belong.
const codeMark = "rpc-code="

// codedSentence is the text of a handler's error: its code, its data where it has
// any, and the sentence.
func codedSentence(code int, data any, sentence string) string {
	var encoded string
	if raw, err := json.Marshal(data); err == nil && data != nil {
		encoded = base64.StdEncoding.EncodeToString(raw)
	}
	return codeMark + strconv.Itoa(code) + ";" + encoded + ";" + sentence
}

func rpcCode(ctx context.Context, kind sandbox.Kind) int {
	switch kind {
	case sandbox.KindFileNotFound, sandbox.KindSessionNotFound, sandbox.KindSessionLost:
		if mcpgo.IsModernProtocol(server.RequestProtocolVersion(ctx)) {
			return mcpgo.INVALID_PARAMS // as that version has it
		}
		return mcpgo.RESOURCE_NOT_FOUND
	case sandbox.KindInvalid, sandbox.KindPathEscapes, sandbox.KindIsDirectory, sandbox.KindNotDirectory, sandbox.KindTooLarge, sandbox.KindPermission:
		return mcpgo.INVALID_PARAMS
	default:
		return rpcServerFault
	}
}

// placeCode moves the code and the data of a handler's error to their places. Any
// other error stays as it is.
func placeCode(e *mcpgo.JSONRPCErrorDetails) {
	rest, marked := strings.CutPrefix(e.Message, codeMark)
	parts := strings.SplitN(rest, ";", 3)
	if e.Code != mcpgo.INTERNAL_ERROR || !marked || len(parts) != 3 {
		return
	}
	code, err := strconv.Atoi(parts[0])
	if err != nil {
		return
	}
	e.Code, e.Message = code, parts[2]
	if data, err := base64.StdEncoding.DecodeString(parts[1]); err == nil && len(data) > 0 {
		e.Data = json.RawMessage(data)
	}
}

// placeForm says in the protocol's words that parameters do not have their form. mcp-go
// tells it as a message that cannot be read, with its reader's error behind.
func placeForm(e *mcpgo.JSONRPCErrorDetails, method string) {
	if (e.Code == mcpgo.INVALID_REQUEST || e.Code == mcpgo.PARSE_ERROR) && strings.Contains(e.Message, "json: ") {
		e.Code, e.Message, e.Data = mcpgo.INVALID_PARAMS, "the params of "+method+" do not have the form that the protocol gives them", nil
	}
}
