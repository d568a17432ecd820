package docker

import (
	"errors"
	"syscall"
)

// userTimeout is the kernel's TCP_USER_TIMEOUT, in milliseconds.
const userTimeout = 18

// giveUp makes the kernel end a connection whose other side has acknowledged nothing
// for ackLimit. Keep-alive alone does not: it is silent while data is under way,
// which is sent again for a quarter of an hour.
func giveUp(network, _ string, conn syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var set error
	err := conn.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(ackLimit.Milliseconds()))
	})
	return errors.Join(err, set)
}
