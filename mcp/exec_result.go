package mcp

import (
	"fmt"
	"slices"
	"time"

	"caisson/sandbox"
)

// Output is given as text, or as base64 where it is not text.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// The limits of max_output_chars.
const (
	defaultOutputChars = 16_000
	maxOutputChars     = 200_000
)

// note is something to know beside a result.
type note struct {
	Code string `json:"code" about:"What it is about, for programs."`
	Text string `json:"text" about:"A sentence."`
}

// execInfo is an exec without its output.
type execInfo struct {
	ExecID          string     `json:"exec_id" about:"Handle of this command."`
	SessionID       string     `json:"session_id" about:"The session that it ran in."`
	SessionCreated  *bool      `json:"session_created,omitempty" about:"True when this call made the session."`
	Status          string     `json:"status" enum:"running,exited,timed_out,killed,lost" about:"How it stands."`
	ExitCode        *int       `json:"exit_code,omitempty" about:"Only there when it is known."`
	CommandExitCode *int       `json:"command_exit_code,omitempty" about:"The command's own process has exited with this, but others hold its output."`
	OutputHeld      bool       `json:"output_held" about:"A process that the command started still holds its output."`
	OutputComplete  bool       `json:"output_complete" about:"All output has arrived."`
	StdoutBytes     int64      `json:"stdout_bytes" about:"What it has printed so far, shown or not."`
	StderrBytes     int64      `json:"stderr_bytes" about:"Likewise."`
	OOMKilled       *bool      `json:"oom_killed,omitempty" about:"Whether it ran out of memory, where that is known."`
	LostReason      string     `json:"lost_reason,omitempty" enum:"container_gone,stream_cut,status_unknown,server_restarted,stop_failed" about:"Why nobody can know how it ended."`
	TimeoutAt       *time.Time `json:"timeout_at,omitempty" about:"When it is stopped at the latest."`
	DurationMS      int64      `json:"duration_ms" about:"How long it has run."`
	Notes           []note     `json:"notes" about:"What else to know."`
}

// execOutput is what a result shows of an exec's output.
type execOutput struct {
	Stdout         string     `json:"stdout" about:"Standard output, exactly; where bytes are left out, omitted says so."`
	Stderr         string     `json:"stderr" about:"Standard error, likewise."`
	StdoutEncoding string     `json:"stdout_encoding" enum:"utf-8,base64" about:"base64 when it is not text."`
	StderrEncoding string     `json:"stderr_encoding" enum:"utf-8,base64" about:"Likewise."`
	StdoutNext     int64      `json:"stdout_next" about:"Where the next read of stdout begins."`
	StderrNext     int64      `json:"stderr_next" about:"Where the next read of stderr begins."`
	Truncated      bool       `json:"truncated" about:"This result leaves something out."`
	Omitted        []omission `json:"omitted" about:"What it leaves out."`
}

// execResult is the result of the tools that run commands.
type execResult struct {
	execInfo
	execOutput
}

// outputRequest says what of an exec's output a result shows.
type outputRequest struct {
	from    positions
	onwards [2]bool // an explicit offset: what comes first from there, not head and tail
	chars   int64
	grep    *lineFilter
}

// showOutput takes the excerpts of both streams within one budget of characters.
func showOutput(spool *sandbox.Spool, ended bool, r outputRequest) (stdout, stderr *excerpt) {
	var sources [2]*source
	for i := range sources {
		sources[i] = newSource(spool, sandbox.Stream(i), r.from[i], r.onwards[i], ended, r.chars)
		if r.grep != nil {
			sources[i].grep(r.grep, r.chars)
		}
	}
	out, err := shares(r.chars, sources[0].needs(), sources[1].needs())
	if r.grep != nil {
		return sources[0].takeMatches(out), sources[1].takeMatches(err)
	}
	return sources[0].take(out), sources[1].take(err)
}

// execReply makes the result of a call about an exec, and remembers for the
// caller where it ended. The view is taken first: it may be older than the
// output, never newer, so an end is only told with all that came before it.
func (s *Server) execReply(c *call, e *sandbox.Exec, t target, r outputRequest, notes ...sandbox.Note) (*execResult, *reply) {
	c.session = e.SessionID()
	view := e.View()
	stdout, stderr := showOutput(e.Spool(), view.Status != sandbox.StatusRunning, r)
	s.cursors.set(c.caller, e, positions{stdout.next, stderr.next})
	result := &execResult{execInfo: execInfoOf(e, view)}
	result.Notes = append(result.Notes, notesOf(notes)...)
	if t.created {
		result.SessionCreated = &t.created
	}
	result.Stdout, result.StdoutEncoding, result.StdoutNext = stdout.content(), stdout.encoding(), stdout.next
	result.Stderr, result.StderrEncoding, result.StderrNext = stderr.content(), stderr.encoding(), stderr.next
	result.Omitted = append(append([]omission{}, stdout.omitted...), stderr.omitted...)
	result.Truncated = len(result.Omitted) > 0
	if r.grep != nil && r.grep.cut {
		result.Notes = append(result.Notes, grepCutNote(stdout, stderr))
	}
	if result.Truncated {
		result.Notes = append(result.Notes, truncatedNote(result.Omitted, r.grep != nil))
	}
	return result, &reply{structured: result, text: execText(result, stdout, stderr), failed: execFailure(view)}
}

func execInfoOf(e *sandbox.Exec, v sandbox.ExecView) execInfo {
	info := execInfo{
		ExecID: v.ID, SessionID: v.SessionID, Status: string(v.Status), ExitCode: v.ExitCode,
		CommandExitCode: v.CommandExitCode, OutputHeld: v.OutputHeld, OutputComplete: v.OutputComplete,
		StdoutBytes: e.Spool().Total(sandbox.Stdout), StderrBytes: e.Spool().Total(sandbox.Stderr),
		OOMKilled: v.OOMKilled, LostReason: string(v.LostReason), Notes: notesOf(v.Notes),
	}
	end := v.EndedAt
	if v.Status == sandbox.StatusRunning {
		end = time.Now()
	}
	info.DurationMS = max(0, end.Sub(v.StartedAt).Milliseconds())
	if !v.TimeoutAt.IsZero() {
		at := v.TimeoutAt.UTC().Truncate(time.Millisecond)
		info.TimeoutAt = &at
	}
	return info
}

// execFailure is how a command's end that is no clean result is told: the
// output stays, but nobody may take it for a success.
func execFailure(v sandbox.ExecView) *failure {
	switch v.Status {
	case sandbox.StatusTimedOut:
		outcome := "was stopped"
		if slices.ContainsFunc(v.Notes, func(n sandbox.Note) bool { return n.Code == "kill_failed" }) {
			outcome = "could not be stopped: it may still run, and kill tries again"
		}
		return &failure{code: "timed_out", text: fmt.Sprintf("the command was still running at its timeout of %s and %s; its output so far is kept", v.TimeoutAt.Sub(v.StartedAt).Round(time.Millisecond), outcome)}
	case sandbox.StatusLost:
		kept := "; its output so far is kept"
		if v.LostReason == sandbox.LostServerRestarted {
			kept = "; what it printed is lost"
		}
		return &failure{code: "lost", text: lostText(v.LostReason) + kept}
	default:
		return nil
	}
}

func lostText(reason sandbox.LostReason) string {
	switch reason {
	case sandbox.LostContainerGone:
		return "the session's container is gone, and how the command ended is not known"
	case sandbox.LostStreamCut:
		return "the connection to the command broke; it may still run, and kill still stops it"
	case sandbox.LostServerRestarted:
		return "the server was restarted; the command may still run, and kill still stops it where it is found"
	case sandbox.LostStopFailed:
		return "stopping the command failed; it may still run"
	default:
		return "how the command ended is not known"
	}
}

func notesOf(notes []sandbox.Note) []note {
	all := make([]note, len(notes))
	for i, n := range notes {
		all[i] = note(n)
	}
	return all
}

// grepCutNote tells a reader where the search goes on.
func grepCutNote(stdout, stderr *excerpt) note {
	return note{"grep_cut", fmt.Sprintf("the time for a search was over before all output had been searched; exec_output with the same grep, stdout_offset %d and stderr_offset %d goes on", stdout.next, stderr.next)}
}

// truncatedNote says in words what omitted says in numbers, for readers of one
// form only.
func truncatedNote(omitted []omission, searched bool) note {
	var most omission
	var all, gone int64
	for _, o := range omitted {
		all += o.Bytes
		if !o.Recoverable {
			gone += o.Bytes
		} else if o.Bytes > most.Bytes {
			most = o
		}
	}
	text := fmt.Sprintf("%d bytes of output are left out", all)
	if most.Bytes > 0 {
		text += fmt.Sprintf("; exec_output with %s_offset %d reads on from there", most.Stream, most.Offset)
	}
	if gone > 0 {
		text += fmt.Sprintf("; %d of them are no longer kept", gone)
		if searched {
			text += " and were not searched"
		}
	}
	return note{"output_truncated", text}
}
