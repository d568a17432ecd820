package e2e_test

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// atOnce is how many commands at a time the engine takes so that each still starts within
// about a second: most, or fewer where so many of its own execs take longer. A kill has
// 5 s, of which a start in the crowd is one part (STP-12), and a slow machine is no fault
// of the program's.
func (e *engine) atOnce(t testing.TB, session string, most int) int {
	t.Helper()
	id := e.container(t, session).ID
	n := most
	for ; n > 4; n = max(4, n*3/4) {
		began := time.Now()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if err := e.bareExec(t, id); err != nil {
					t.Errorf("an exec of the engine's own: %v", err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if t.Logf("%d execs of the engine's own at once take %v", n, took); took <= time.Second {
			break
		}
	}
	return n
}

// bareExec runs true by the engine's own calls, and waits for its end.
func (e *engine) bareExec(t testing.TB, id string) error {
	made, err := e.api.ContainerExecCreate(t.Context(), id, container.ExecOptions{Cmd: []string{"true"}, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	stream, err := e.api.ContainerExecAttach(t.Context(), made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(io.Discard, stream.Reader)
	state, stateErr := e.api.ContainerExecInspect(t.Context(), made.ID)
	if err = errors.Join(err, stateErr); err == nil && state.ExitCode != 0 {
		err = errors.New("it did not exit with 0")
	}
	return err
}
