package mcp

import (
	"bytes"
	"encoding/json"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// The bounds of one message, beside that of its length.
const (
	maxValues   = 100_000 // members and elements, on all levels
	smallValues = 1_000   // that are not counted for memory
	maxName     = 1 << 10 // bytes of an id, a method, a name or a progress token, as they are written
	maxOther    = 2 << 20 // bytes of a message that calls no tool: nothing else carries files
)

// valuesIn counts the members and elements of a JSON text, on all levels: each is a
// value of its own once the text has been read, and costs many times what it takes
// there. A text that is no JSON has some count.
func valuesIn(raw []byte) (n int) {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[', ',':
			n++
		case '"':
			i = stringEnd(raw, i+1)
		}
	}
	return n
}

// stringEnd is where the string ends that begins at from, after its quote.
func stringEnd(raw []byte, from int) int {
	for at := from; ; at++ {
		quote := bytes.IndexByte(raw[at:], '"')
		if quote < 0 {
			return len(raw)
		}
		at += quote
		back := at
		for back > from && raw[back-1] == '\\' {
			back--
		}
		if (at-back)%2 == 0 {
			return at
		}
	}
}

// nameFault refuses what a client calls something by when it is too long: the server
// keeps some of them, and repeats them in answers.
func nameFault(field string, value json.RawMessage) *rpcFault {
	if len(value) <= maxName {
		return nil
	}
	return &rpcFault{mcpgo.INVALID_PARAMS, field + " is longer than 1 KiB, the most that may be"}
}
