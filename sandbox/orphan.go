package sandbox

import (
	"context"
	"time"
)

// Orphan is a command that runs in a session though the server that started it is
// gone, and its output with it. It can still be stopped, and its end be awaited.
type Orphan struct {
	ExecID    string // the handle that it was started under
	Argv      []string
	StartedAt time.Time // zero: not known
	TimeoutAt time.Time // when its own server would have stopped it; zero: not known
	Backend   Backend   // takes no input and has no stream to drain

	// Running asks the engine whether it still runs. KindExecNotFound is an engine that was
	// restarted under the running container: it may run on.
	Running func(ctx context.Context) (bool, error)
}
