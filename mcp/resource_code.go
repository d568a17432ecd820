package mcp

import (
	"context"
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

// codeMark begins the text of a resource handler's error. mcp-go sends every such
// error as -32603 and lets no handler choose; so the handler puts the code before
// its sentence, and placeCode moves it where it belongs.
const codeMark = "rpc-code="

// codedSentence is the text of a resource handler's error.
func codedSentence(ctx context.Context, kind sandbox.Kind, sentence string) string {
	return codeMark + strconv.Itoa(rpcCode(ctx, kind)) + ";" + sentence
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

// placeCode moves the code of a resource's error to its place. Any other error
// stays as it is.
func placeCode(e *mcpgo.JSONRPCErrorDetails) {
	rest, marked := strings.CutPrefix(e.Message, codeMark)
	code, sentence, whole := strings.Cut(rest, ";")
	n, err := strconv.Atoi(code)
	if e.Code != mcpgo.INTERNAL_ERROR || !marked || !whole || err != nil {
		return
	}
	e.Code, e.Message = n, sentence
}
