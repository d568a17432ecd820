package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"caisson/sandbox"
	"caisson/wrapper"
)

// errNoRoom is a stop that the container has no process left for.
var errNoRoom = errors.New("the session has no room for the stop's own process")

// stop sends a signal to a command's group by an exec of its own, and returns
// what that found as soon as it says so: its own end may be seconds away
// (STP-7). Where even that has no room, a kill ends the session (D24). ctx bounds
// all of it.
func (s *Session) stop(ctx context.Context, id string, sig sandbox.Signal) (sandbox.StopReport, error) {
	report, err := s.stopOnce(ctx, id, sig)
	if errors.Is(err, errNoRoom) {
		report, err = s.stopWithHeadroom(ctx, id, sig)
	}
	switch {
	case !errors.Is(err, errNoRoom):
		return report, err
	case sig == sandbox.SignalKill:
		return s.endForStop(ctx, err)
	}
	return report, killFailed("the session has no room for the process that sends the signal").Because(err)
}

func (s *Session) stopOnce(ctx context.Context, id string, sig sandbox.Signal) (sandbox.StopReport, error) {
	conn := s.p.dialAhead(ctx)
	made, err := s.p.api.ContainerExecCreate(ctx, s.containerID, container.ExecOptions{
		User: s.user.String(), WorkingDir: "/", Cmd: wrapper.StopArgv(id, string(sig)),
		AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		conn.drop()
		return s.stopRefused(err)
	}
	st, err := s.p.attachOn(ctx, conn, made.ID)
	if err != nil {
		return s.stopRefused(err)
	}
	defer st.close()
	cut := context.AfterFunc(ctx, st.close)
	defer cut()
	said := &stopOutput{id: id}
	_, err = stdcopy.StdCopy(said, &said.errors, st.reader)
	if said.report != nil {
		return reportOf(*said.report)
	}
	switch {
	case ctx.Err() != nil:
		return sandbox.StopReport{}, killFailed("the stop did not finish in time%s", said.quote()).Because(context.Cause(ctx))
	case bytes.HasPrefix(said.out, engineWords):
		return sandbox.StopReport{}, noRoomOr(string(said.out))
	case !s.runs(ctx):
		return sandbox.StopReport{Gone: true}, nil
	}
	return sandbox.StopReport{}, killFailed("the stop ended without a report%s", said.quote()).Because(err)
}

// stopRefused reads the engine's refusal of the stop's exec (KIL-9 to KIL-11).
func (s *Session) stopRefused(err error) (sandbox.StopReport, error) {
	switch {
	case errdefs.IsNotFound(err), isGoing(err), isStopped(err):
		return sandbox.StopReport{Gone: true}, nil
	case isPaused(err):
		return sandbox.StopReport{}, killFailed("the session's container is paused on the engine").Because(err)
	}
	return sandbox.StopReport{}, killFailed("the engine did not take the stop: %s", textOf(s.p.failed("stop command", err))).Because(err)
}

func noRoomOr(text string) error {
	refused := startRefused(text)
	if refused.Kind == sandbox.KindCapacity {
		return fmt.Errorf("%w: %w", errNoRoom, refused)
	}
	return killFailed("the engine could not start the stop").Because(refused)
}

func killFailed(format string, args ...any) *sandbox.Error {
	return sandbox.Errorf("stop command", sandbox.KindKillFailed, format, args...)
}

// stopOutput watches a stop's output for its report, and ends the reading there.
type stopOutput struct {
	id     string
	out    []byte
	errors cappedBuffer
	report *wrapper.Report
}

// errReported ends the reading of a stop's output.
var errReported = errors.New("the stop has reported")

const stopOutputLimit = 64 << 10

func (o *stopOutput) Write(p []byte) (int, error) {
	if len(o.out)+len(p) <= stopOutputLimit {
		o.out = append(o.out, p...)
	}
	if r, ok := wrapper.ParseReport(o.id, o.out); ok {
		o.report = &r
		return 0, errReported
	}
	return len(p), nil
}

// quote is what the stop had said, for a note (STP-14).
func (o *stopOutput) quote() string {
	said := oneLine(string(o.out)+" "+string(o.errors), 200)
	if strings.TrimSpace(said) == "" {
		return "; it had said nothing"
	}
	return "; it had said: " + said
}

// cappedBuffer keeps the first bytes of what is written to it.
type cappedBuffer []byte

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if room := headLimit - len(*b); room > 0 {
		*b = append(*b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

var _ io.Writer = (*cappedBuffer)(nil)

// stopFailures are the words for a stop that says it failed.
var stopFailures = map[string]string{
	wrapper.FailedStatus:     "the command's group was killed, and its status did not come: the process that watches over it was itself stopped or killed",
	wrapper.FailedUnreadable: "the open files of a process that could hold the output cannot be read",
	wrapper.FailedStarting:   "the command had not begun; it ends before it runs",
	wrapper.FailedSignal:     "this signal cannot be sent",
}

// reportOf turns the wrapper's report into the contract's.
func reportOf(w wrapper.Report) (sandbox.StopReport, error) {
	if w.Failed == wrapper.FailedFork {
		return sandbox.StopReport{}, errNoRoom
	}
	if w.Failed != "" {
		return sandbox.StopReport{}, killFailed("%s", stopFailures[w.Failed])
	}
	r := sandbox.StopReport{Found: w.Found, Held: w.Held}
	if w.Status >= 0 {
		r.Status = &w.Status
	}
	return r, nil
}
