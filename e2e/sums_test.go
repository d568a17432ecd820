package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func unmarshal(r result, v any) error { return json.Unmarshal(r.Structured, v) }
