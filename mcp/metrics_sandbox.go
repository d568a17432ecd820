package mcp

import (
	"time"

	"caisson/sandbox"
)

func (m *Metrics) countSandboxes() {
	createBuckets := []float64{.1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 300, 900}
	execBuckets := []float64{.05, .1, .25, .5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}
	m.made = m.histogram("caisson_session_create_duration_seconds", "How long the provider took to make a session, by the code of the outcome: ok, or an error code.", createBuckets, "code")
	m.ended = m.counter("caisson_sessions_ended_total", "Sessions that are gone, by how: ended (destroyed, idle, or at the server's end) or lost (the container was found gone).", "how")
	m.execs = m.counter("caisson_execs_total", "Commands that have ended, by outcome: succeeded (exit code 0), failed (another exit code), timed_out, killed or lost.", "outcome")
	m.execSeconds = m.histogram("caisson_exec_duration_seconds", "How long commands ran, by outcome.", execBuckets, "outcome")
	m.execBytes = m.counter("caisson_exec_output_bytes_total", "Bytes that commands printed, kept or not, counted at their end, by stream.", "stream")
	m.engineErrors = m.counter("caisson_engine_errors_total", "Engine calls that gave an error, by what it was taken for. session_lost is the engine's 404; engine_unavailable is an engine or a link that fails.", "kind")
	m.probes = m.histogram("caisson_probe_duration_seconds", "Probes of the egress firewall, by tier and result: in_force, not_in_force, or error (the probe could not be made).", []float64{.5, 1, 2, 3, 5, 10, 20, 30, 60}, "tier", "result")
}

// SessionMade is of sandbox.Observer.
func (m *Metrics) SessionMade(took time.Duration, err error) {
	code := "ok"
	if err != nil {
		code = codes[sandbox.KindOf(err)].code
	}
	m.made.WithLabelValues(code).Observe(took.Seconds())
}

// SessionEnded is of sandbox.Observer.
func (m *Metrics) SessionEnded(lost bool) {
	how := "ended"
	if lost {
		how = "lost"
	}
	m.ended.WithLabelValues(how).Inc()
}

// ExecEnded is of sandbox.Observer.
func (m *Metrics) ExecEnded(view sandbox.ExecView, stdout, stderr int64) {
	outcome := string(view.Status)
	if view.Status == sandbox.StatusExited {
		outcome = "failed"
		if view.ExitCode != nil && *view.ExitCode == 0 {
			outcome = "succeeded"
		}
	}
	m.execs.WithLabelValues(outcome).Inc()
	m.execSeconds.WithLabelValues(outcome).Observe(view.EndedAt.Sub(view.StartedAt).Seconds())
	m.execBytes.WithLabelValues("stdout").Add(float64(stdout))
	m.execBytes.WithLabelValues("stderr").Add(float64(stderr))
}

// EngineFailed is of sandbox.Observer.
func (m *Metrics) EngineFailed(kind sandbox.Kind) {
	m.engineErrors.WithLabelValues(word(kind.String())).Inc()
}

// Probed is of sandbox.Observer.
func (m *Metrics) Probed(tier sandbox.Network, took time.Duration, err error) {
	result := "in_force"
	switch {
	case err == nil:
	case sandbox.KindOf(err) == sandbox.KindFirewall:
		result = "not_in_force"
	default:
		result = "error"
	}
	m.probes.WithLabelValues(string(tier), result).Observe(took.Seconds())
}
