package wire

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"caisson/sandbox"
)

const (
	// tailShown is how much of an output without a result is repeated, in bytes.
	tailShown = 4 << 10
	// headShown is how much of a block that cannot be read is repeated.
	headShown = 512
)

func invalidResult(format string, args ...any) *sandbox.Error {
	return sandbox.Errorf("read result", sandbox.KindInvalid, format, args...)
}

// The lines around a result. The nonce is known to the worker alone (D16): what a
// tool prints itself never passes for its result.
func beginLine(nonce string) []byte { return []byte("__CAISSON_TOOL_RESULT_BEGIN_" + nonce + "__") }
func endLine(nonce string) []byte   { return []byte("__CAISSON_TOOL_RESULT_END_" + nonce + "__") }

// EncodeBlock gives the block that the worker prints: each marker on a line of its
// own, whatever was printed before, around one JSON object. The error is
// KindInvalid for a result that contradicts itself.
func EncodeBlock(r Result, nonce string) ([]byte, error) {
	if !nonceForm.MatchString(nonce) {
		return nil, invalidResult("a nonce is 32 hex digits in lower case")
	}
	text, err := r.encode()
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{nil, beginLine(nonce), text, endLine(nonce), nil}, []byte("\n")), nil
}

// ReadResult finds the result in what the worker has written to standard output,
// and in nothing else: standard error is never looked at. Everything outside the
// block with this nonce is chatter. It always returns a result; where there is no
// block, or one that cannot be read, or more than one, that is a failure which says
// so with a part of the output.
func ReadResult(stdout []byte, nonce string) Result {
	if !nonceForm.MatchString(nonce) {
		return Failure(StatusError, "the call has no nonce, so that nothing in its output counts as its result")
	}
	r, fault := FindResult(stdout, nonce)
	switch fault {
	case "", Unreadable:
		return r
	default:
		tail := stdout[max(0, len(stdout)-tailShown):]
		return Failure(StatusError, fmt.Sprintf("%s; its output ends: %s", fault, cutText(tail)))
	}
}

// Unreadable is the fault of a block that holds no result.
const Unreadable = "the tool's result cannot be read"

// FindResult is ReadResult for a reader that has kept a part of the output alone:
// fault says in a few words why there is no result, and is empty where there is
// one. With Unreadable the result is the failure that says what was found in its
// place.
func FindResult(stdout []byte, nonce string) (r Result, fault string) {
	payload, fault := findBlock(stdout, nonce)
	if fault != "" {
		return Result{}, fault
	}
	r, err := decodeResult(payload)
	if err != nil {
		head := payload[:min(len(payload), headShown)]
		return Failure(StatusError, fmt.Sprintf("%s: %s; it begins: %s", Unreadable, textOf(err), cutText(head))), Unreadable
	}
	return r, ""
}

// Marker says whether a line, without its end, is one of the two around the result
// of the call with that nonce.
func Marker(line []byte, nonce string) (begin, end bool) {
	return bytes.Equal(line, beginLine(nonce)), bytes.Equal(line, endLine(nonce))
}

// findBlock returns what stands between the two markers. A second block with the
// same nonce was printed by something that has seen the first, and then neither
// can be believed.
func findBlock(stdout []byte, nonce string) (payload []byte, fault string) {
	begin, end := beginLine(nonce), endLine(nonce)
	from, to, at := -1, -1, 0
	for line := range bytes.Lines(stdout) {
		next := at + len(line)
		switch bare := bytes.TrimSuffix(line, []byte("\n")); {
		case bytes.Equal(bare, begin):
			if from >= 0 {
				return nil, "the tool gave more than one result"
			}
			from = next
		case bytes.Equal(bare, end):
			if from < 0 || to >= 0 {
				return nil, "the tool's result has an end without a beginning"
			}
			to = at
		}
		at = next
	}
	switch {
	case from < 0:
		return nil, "the tool gave no result"
	case to < 0:
		return nil, "the tool's result has no end"
	default:
		return stdout[from:to], ""
	}
}

// cutText makes a piece of an output fit for a text: cut characters and bytes that
// are none are replaced.
func cutText(piece []byte) string {
	for len(piece) > 0 && !utf8.RuneStart(piece[0]) {
		piece = piece[1:]
	}
	return string(bytes.ToValidUTF8(piece, []byte("\uFFFD")))
}
