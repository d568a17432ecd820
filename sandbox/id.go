package sandbox

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// idLetters is lower-case base32 without padding: 26 letters carry the 128
// random bits that make a handle unguessable (D7).
var idLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	sessionPrefix = "sbx_"
	execPrefix    = "exec_"
	idLength      = 26
)

// NewSessionID makes an unguessable session handle: sbx_ and 26 letters.
func NewSessionID() string { return sessionPrefix + randomLetters() }

// NewExecID makes an unguessable exec handle: exec_ and 26 letters.
func NewExecID() string { return execPrefix + randomLetters() }

// ValidSessionID says whether id has the form of a session handle. What has not
// is never asked of an engine.
func ValidSessionID(id string) bool {
	rest, ok := strings.CutPrefix(id, sessionPrefix)
	return ok && len(rest) == idLength && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// ExecBits are the random bits of an exec handle; ok is false for what has not the
// form of one.
func ExecBits(id string) (bits [16]byte, ok bool) {
	rest, ok := strings.CutPrefix(id, execPrefix)
	raw, err := idLetters.DecodeString(rest)
	if !ok || err != nil || len(raw) != len(bits) || idLetters.EncodeToString(raw) != rest {
		return bits, false
	}
	return [16]byte(raw), true
}

// ExecIDOf is the exec handle with these bits.
func ExecIDOf(bits [16]byte) string { return execPrefix + idLetters.EncodeToString(bits[:]) }

// ShortID is as much of a handle as a log may show: enough to find it, not
// enough to use it.
func ShortID(id string) string {
	const shown = 12
	return id[:min(len(id), shown)]
}

func randomLetters() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	return idLetters.EncodeToString(raw[:])
}
