package docker

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
	"caisson/wrapper"
)

// Orphans returns the commands that the engine says run in the session
// (sandbox.Session). No list is kept of what was started here: whoever holds
// records of running commands leaves those out, by their handles; after a restart
// there are none. Where the engine does not tell of one of them, the error comes
// with those that it told of. An engine that was restarted under running
// containers has forgotten all of them.
func (s *Session) Orphans(ctx context.Context) ([]sandbox.Orphan, error) {
	const op = "look for running commands"
	if err := s.p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	c, err := s.inspect(ctx)
	if err != nil {
		return nil, s.failed(op, err)
	}
	var (
		found []sandbox.Orphan
		errs  []error
	)
	for _, execID := range c.ExecIDs {
		process, err := s.p.readExec(ctx, execID)
		switch {
		case errdefs.IsNotFound(err): // ended and forgotten meanwhile
		case err != nil:
			errs = append(errs, s.p.failed(op, err))
		case process.Running:
			if o, ok := s.orphan(execID, process.argv()); ok {
				found = append(found, o)
			}
		}
	}
	return found, errors.Join(errs...)
}

// orphan makes an orphan of an exec whose argv is a wrapper's: its id is the bits
// of the handle.
func (s *Session) orphan(execID string, argv []string) (sandbox.Orphan, bool) {
	started, ok := wrapper.ReadArgv(argv)
	if !ok {
		return sandbox.Orphan{}, false
	}
	raw, err := hex.DecodeString(started.ID)
	if err != nil || len(raw) != 16 {
		return sandbox.Orphan{}, false
	}
	return sandbox.Orphan{
		ExecID: sandbox.ExecIDOf([16]byte(raw)), Argv: started.Argv, TimeoutAt: started.Until,
		Backend: orphanBackend{s: s, id: started.ID},
		Running: func(ctx context.Context) (bool, error) { return s.execRuns(ctx, execID) },
	}, true
}

// execRuns says whether an exec runs. The engine forgets one 5 minutes after its
// end, and all of them when it is restarted: asked more often than that, a
// forgotten one in a container that runs is KindExecNotFound, and may run on.
func (s *Session) execRuns(ctx context.Context, execID string) (bool, error) {
	const op = "ask for a running command"
	exec, err := s.p.inspectExec(ctx, execID)
	switch {
	case err == nil:
		return exec.Running, nil
	case !errdefs.IsNotFound(err):
		return false, s.p.failed(op, err)
	case s.runs(ctx):
		return false, sandbox.Errorf(op, sandbox.KindExecNotFound, "the engine was restarted and does not know the command any more; it may be running").Because(err)
	}
	return false, nil
}

// orphanBackend stops a command whose stream is gone.
type orphanBackend struct {
	s  *Session
	id string // the wrapper's
}

// Stop signals the command (sandbox.Backend).
func (o orphanBackend) Stop(ctx context.Context, sig sandbox.Signal) (sandbox.StopReport, error) {
	return o.s.stop(ctx, o.id, sig)
}

// WriteStdin is refused: the input ended with the server that held it (sandbox.Backend).
func (o orphanBackend) WriteStdin(context.Context, []byte) (int, error) {
	return 0, o.noStdin()
}

// CloseStdin is refused like WriteStdin (sandbox.Backend).
func (o orphanBackend) CloseStdin() error { return o.noStdin() }

func (o orphanBackend) noStdin() error {
	return sandbox.Errorf("write stdin", sandbox.KindStdinClosed, "the command's input ended with the server that started it")
}

// Close does nothing: there is no stream (sandbox.Backend).
func (o orphanBackend) Close() {}

// execProcess is what the engine tells of an exec beyond what its client library
// reads.
type execProcess struct {
	Running       bool
	ProcessConfig struct {
		Entrypoint string   `json:"entrypoint"`
		Arguments  []string `json:"arguments"`
	}
}

func (e execProcess) argv() []string {
	return append([]string{e.ProcessConfig.Entrypoint}, e.ProcessConfig.Arguments...)
}

// mostExec bounds the answer about one exec: the longest command line, escaped.
const mostExec = 16 << 20

func (p *Provider) readExec(ctx context.Context, execID string) (process execProcess, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	u := url.URL{Scheme: "http", Host: "engine", Path: "/v" + p.apiVersion() + "/exec/" + execID + "/json"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return process, err
	}
	req.Header.Set("User-Agent", userAgent(p.cfg))
	resp, err := p.api.HTTPClient().Do(req)
	if err != nil {
		return process, err
	}
	if resp.StatusCode != http.StatusOK {
		return process, refusal(resp)
	}
	defer func() { _ = resp.Body.Close() }()
	return process, json.NewDecoder(io.LimitReader(resp.Body, mostExec)).Decode(&process)
}
