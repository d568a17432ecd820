package mcp

import (
	"context"
	"fmt"
	"time"

	"caisson/sandbox"
)

// The clocks of run, whose command has to end within the call.
const (
	runTimeout  = 40 * time.Second // without progress
	runMargin   = 2 * time.Second  // of the call's time, for the stop and the answer
	destroyWait = 5 * time.Second  // for the session's end; the engine goes on with it
)

type runInput struct {
	command
	image    *string
	files    []fileInput
	outputs  []string
	network  *string
	cpu      *float64
	memoryMB *int64
}

type runResult struct {
	execResult
	Outputs []outputFile `json:"outputs" about:"The files asked for, where they were there."`
}

type outputFile struct {
	Path     string `json:"path" about:"As asked for."`
	Content  string `json:"content" about:"The whole file; a directory as a tar."`
	Encoding string `json:"encoding" enum:"utf-8,base64" about:"How content is encoded."`
}

func (in *runInput) fields() []field {
	return append(in.command.fields(),
		nameField("image", &in.image, "The container image. Default: the server's."),
		listField("files", &in.files, "Files to write before the command starts.", (*fileInput).fields),
		wordsField("outputs", &in.outputs, "Paths of files to return after the command, relative to the workspace or absolute."),
		networkField(&in.network),
		numberField("cpu", &in.cpu, "How many cores it may use, such as 0.5."),
		intField("memory_mb", &in.memoryMB, "How much memory it may use, in MiB."),
		intField("timeout_seconds", &in.timeout, "How long the command may run before it is stopped. Default: 40, or the server's for a client that asks for progress.").atLeast(1),
	)
}

func (s *Server) runTool() tool {
	return define[runInput, runResult](about{
		name: "run", title: "Run once in a fresh sandbox",
		description: "Runs one command in a sandbox made for it, which is gone afterwards with all its files: write files first, get outputs back. " +
			"For code that must leave nothing behind, or that needs another image, network or memory just once. It costs a second or two more than exec. " +
			"The command must end within the call: give a longer one to exec in a session.",
		openWorld: true,
	}, (*runInput).fields, s.runOnce)
}

func (s *Server) runOnce(ctx context.Context, c *call, in *runInput) (*reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	files, err := fileWrites(in.files)
	if err != nil {
		return nil, err
	}
	info, err := s.manager.Create(ctx, sandbox.Spec{
		Owner: c.owner, Ceilings: c.ceilings(), Image: or(in.image, ""), Network: sandbox.Network(or(in.network, "")), CPU: in.cpu, MemoryMB: in.memoryMB,
	}, c.stage)
	if err != nil {
		return nil, err
	}
	c.session = info.ID
	ended := false
	defer func() {
		if !ended { // an error or a panic on the way
			s.discard(ctx, c.owner, info.ID)
		}
	}()
	result, r, err := s.runIn(ctx, c, info, in, files)
	if err != nil {
		return nil, err
	}
	ended = true
	if !s.discard(ctx, c.owner, info.ID) {
		result.Notes = append(result.Notes, note{"still_destroying", "the session is still being destroyed"})
	}
	r.structured = result
	return r, nil
}

// runIn does what run does between the making and the end of its session.
func (s *Server) runIn(ctx context.Context, c *call, info sandbox.Info, in *runInput, files []sandbox.FileWrite) (*runResult, *reply, error) {
	session, release, err := s.manager.Acquire(c.owner, info.ID)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if len(files) > 0 {
		if _, err := session.WriteFiles(ctx, files); err != nil {
			return nil, nil, err
		}
	}
	spec, err := in.spec(info.HasBash)
	if err != nil {
		return nil, nil, err
	}
	cut := c.cutTimeout(&spec)
	e, err := s.manager.StartExec(ctx, c.owner, info.ID, spec)
	if err != nil {
		return nil, nil, in.asSent(err)
	}
	c.progress.say(describeExec(e))
	limit, _ := c.waitLimit(24 * time.Hour) // it ends with its timeout
	if err := await(ctx, e, limit, nil); err != nil {
		return nil, nil, cancelled(ctx) // its session is destroyed, and with it all that runs
	}
	if e.View().Status == sandbox.StatusRunning {
		if _, err := e.Kill(sandbox.SignalKill); err != nil {
			return nil, nil, err
		}
	}
	outputs, notes := readOutputs(ctx, session, in.outputs)
	result, r := s.execReply(c, e, target{}, outputRequest{chars: defaultOutputChars}, append(notes, cut...)...)
	r.text += outputsText(outputs)
	return &runResult{*result, outputs}, r, nil
}

// cutTimeout makes the command's timeout fit into what is left of the call.
func (c *call) cutTimeout(spec *sandbox.ExecSpec) []sandbox.Note {
	if c.deadline.IsZero() {
		return nil
	}
	asked := spec.Timeout
	most := max(min(runTimeout, time.Until(c.deadline)-runMargin), time.Second)
	if asked > 0 && asked <= most {
		return nil
	}
	spec.Timeout = most
	if asked == 0 {
		return nil
	}
	return []sandbox.Note{{Code: "timeout_cut", Text: fmt.Sprintf("timeout_seconds %d was cut to %d: without progress the command has to end within the call; use exec in a session for longer ones", int64(asked.Seconds()), int64(most.Seconds()))}}
}

// discard destroys a session on a clock of its own: a caller that has gone
// leaves none behind. It tells whether that was done in time; the manager goes
// on with it if not.
func (s *Server) discard(ctx context.Context, owner sandbox.Owner, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyWait)
	defer cancel()
	if _, _, err := s.manager.Destroy(ctx, owner, id); err != nil {
		s.log.Warn("session not destroyed in time", "session", sandbox.ShortID(id), "error", err)
		return false
	}
	return true
}
