package worker

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is a signal as people write it.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}
