package mcp

import (
	"context"

	"caisson/sandbox"
)

type execOutputInput struct {
	exec     *string
	wait     *int64
	waitFor  *string
	stdoutAt *int64
	stderrAt *int64
	chars    *int64
	pattern  *string
}

func execIDField(dst **string) field {
	return nameField("exec_id", dst, "The handle that exec returned.").must()
}

func (in *execOutputInput) fields() []field {
	return []field{
		execIDField(&in.exec),
		intField("wait_seconds", &in.wait, "How long to wait for the command's end before answering.").within(0, longestWait).orElse(0),
		nameField("wait_for", &in.waitFor, "Answer as soon as new output matches this regular expression (RE2)."),
		intField("stdout_offset", &in.stdoutAt, "Read stdout again from this byte on, in order; a negative number counts from the end. Default: on from your last result."),
		intField("stderr_offset", &in.stderrAt, "Likewise for stderr."),
		charsField(&in.chars),
		nameField("grep", &in.pattern, "Show only lines that match this regular expression (RE2)."),
	}
}

func (s *Server) execOutputTool() tool {
	return define[execOutputInput, execResult](about{
		name: "exec_output", title: "Read a command's output",
		description: "Reads the output of a command that exec started, while it runs and for an hour after it and its session have ended, and tells how it stands. " +
			"Without an offset it goes on from where your last result for this exec_id ended, and cuts long output in the middle; with one it reads in order from there, so that a part that was left out can be fetched piece by piece (the next piece begins at stdout_next). " +
			"wait_seconds waits for the end, wait_for for a line. To search a long output, use grep together with stdout_offset 0.",
		readOnly: true, idempotent: true,
	}, (*execOutputInput).fields, s.execOutput)
}

func (s *Server) execOutput(ctx context.Context, c *call, in *execOutputInput) (*reply, error) {
	c.exec = *in.exec
	e, err := s.manager.Exec(c.owner, *in.exec)
	if err != nil {
		return nil, err
	}
	s.manager.Touch(c.owner, e.SessionID())
	request := outputRequest{from: s.cursors.of(c.caller, e), chars: or(in.chars, defaultOutputChars)}
	for i, at := range []*int64{in.stdoutAt, in.stderrAt} {
		if at != nil {
			request.from[i], request.onwards[i] = *at, true
		}
	}
	if in.pattern != nil {
		pattern, err := compile("grep", *in.pattern)
		if err != nil {
			return nil, err
		}
		request.grep = &lineFilter{pattern: pattern, search: s.search(c)}
	}
	match, err := newMatcher(in.waitFor, request.from, s.search(c))
	if err != nil {
		return nil, err
	}
	asked := seconds(or(in.wait, 0))
	limit, cut := c.waitLimit(asked)
	c.progress.say(describeExec(e))
	if err := await(ctx, e, limit, match); err != nil {
		return nil, err // the command goes on: this call only looked
	}
	notes := match.skippedNote()
	if cut && e.View().Status == sandbox.StatusRunning {
		notes = append(notes, cutNote(asked))
	}
	s.manager.Touch(c.owner, e.SessionID())
	if request.grep != nil {
		// The time begins with the search, and is no longer for who would wait longer.
		searching, stop := context.WithTimeout(ctx, s.callLimit)
		defer stop()
		request.grep.ended, request.grep.over = searching.Done(), func() bool { return searching.Err() != nil }
	}
	before := s.cursors.of(c.caller, e)
	_, r := s.execReply(c, e, target{}, request, notes...)
	if err := clientGone(ctx); err != nil {
		s.cursors.set(c.caller, e, before) // nobody has seen what this call found
		return nil, err
	}
	return r, nil
}
