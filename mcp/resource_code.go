package mcp

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// rpcServerFault is the JSON-RPC code of a resource that could not be read
// through no fault of the request. It is of the range that JSON-RPC leaves to
// servers, and none that a client's library uses for itself.
const rpcServerFault = -32010

// mcp-go sends every error of a resource handler as -32603, and lets no handler
// choose. So the handler puts the code before its sentence, and it is moved to
// its place where the message goes out. The sequence below stands in no other
// place of a message: inside of a JSON string its quotes would be escaped.
const (
	codeMark   = "rpc-code="
	codedError = `"error":{"code":-32603,"message":"` + codeMark
)

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

// recode moves the code of a resource's error to its place. A message without
// one is returned as it is.
func recode(message []byte) []byte {
	before, rest, found := bytes.Cut(message, []byte(codedError))
	code, sentence, whole := bytes.Cut(rest, []byte(";"))
	if !found || !whole {
		return message
	}
	return bytes.Join([][]byte{before, []byte(`"error":{"code":`), code, []byte(`,"message":"`), sentence}, nil)
}

// recoder is a response whose messages are recoded; mcp-go writes each with one
// call.
type recoder struct{ http.ResponseWriter }

// Write sends what mcp-go writes.
func (r recoder) Write(p []byte) (int, error) {
	if _, err := r.ResponseWriter.Write(recode(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush makes streams possible.
func (r recoder) Flush() {
	_ = http.NewResponseController(r.ResponseWriter).Flush() // a writer that cannot has nothing to hold back
}

// Unwrap lets http.ResponseController reach the connection.
func (r recoder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
