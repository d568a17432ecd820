//go:build !linux

package executor

import (
	"errors"
	"syscall"
	"time"
)

type group struct{ done chan struct{} }

func ownGroup() *syscall.SysProcAttr { return nil }

// startGroup refuses: the limits of a local call are Linux's.
func startGroup(func() (int, error)) (*group, error) {
	return nil, errors.New("the local executor works on Linux alone")
}

func (*group) limit(time.Duration) error { return nil }
func (*group) kill()                     {}
