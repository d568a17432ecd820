package docker

import (
	"encoding/hex"
	"testing"

	"caisson/sandbox"
)

// TestWrapperID: the wrapper's name for an exec tells the exec's handle, whole.
func TestWrapperID(t *testing.T) {
	for range 100 {
		handle := sandbox.NewExecID()
		id, err := wrapperID(handle)
		if err != nil {
			t.Fatal(err)
		}
		bits, err := hex.DecodeString(id)
		if err != nil || len(bits) != 16 {
			t.Fatalf("%q: %v", id, err)
		}
		if got := sandbox.ExecIDOf([16]byte(bits)); got != handle {
			t.Errorf("%s became %s", handle, got)
		}
	}
	one, err := wrapperID("exec_1")
	other, err2 := wrapperID("exec_1")
	if err != nil || err2 != nil || len(one) != 32 || one == other {
		t.Errorf("for what is no handle: %q, %q, %v, %v", one, other, err, err2)
	}
}
