package mcp

import (
	"time"

	"caisson/sandbox"
)

// callBuckets reach from a listing to the longest call with progress.
func callBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}
}

func (m *Metrics) countCalls() {
	m.calls = m.counter("caisson_calls_total", "Calls that have ended, by tool and by the code of their result: ok, or an error code.", "tool", "code")
	m.callSeconds = m.histogram("caisson_call_duration_seconds", "How long calls took, by tool.", callBuckets(), "tool")
	m.callBytes = m.counter("caisson_call_bytes_total", "Bytes of arguments (in) and of results' contents (out).", "direction")
	m.byPrincipal = m.counter("caisson_principal_calls_total", "Calls by principal and decision (allowed or refused). Principals that the operator's file does not name are other; none: the server has no principals.", "principal", "decision")
	m.refusals = m.counter("caisson_http_refusals_total", "HTTP requests that were refused before a call was read from them, by reason; rate_limited are those over a principal's rate.", "reason")
	failures := m.counter("caisson_audit_failures_total", "Audit records that could not be written.")
	m.auditFailures = failures.WithLabelValues()
}

// called counts a call that has ended, from its record.
func (m *Metrics) called(principal string, r auditRecord, took time.Duration) {
	tool := m.tools.of(r.Tool)
	m.calls.WithLabelValues(tool, r.Code).Inc()
	m.callSeconds.WithLabelValues(tool).Observe(took.Seconds())
	m.callBytes.WithLabelValues("in").Add(float64(*r.BytesIn))
	m.callBytes.WithLabelValues("out").Add(float64(*r.BytesOut))
	m.byPrincipal.WithLabelValues(principal, r.Decision).Inc()
}

// roster is what an Authenticator can also be: one that knows the principals of
// the operator's file.
type roster interface {
	// Listed says whether the operator's file has a principal of that name now.
	Listed(name string) bool
}

// principalLabel is a caller's principal as a label has it.
func (s *Server) principalLabel(c caller) string {
	if c.principal == nil {
		return noPrincipals
	}
	if known, ok := s.options.Authenticator.(roster); !ok || !known.Listed(c.principal.Name) {
		return other
	}
	label := s.metrics.principals.of(c.principal.Name)
	if label != other {
		s.owners.Store(c.owner.Hash(), label)
	}
	return label
}

// showServer declares what is read of the server.
func (m *Metrics) showServer(version string) {
	m.gauge("caisson_info", "Always 1; the label has the program's version.", func(_ *Server, show func(float64, ...string)) { show(1, version) }, "version")
	m.gauge("caisson_calls_under_way", "Calls that are being served. There is no queue: a client over its limit of calls is answered busy.", func(s *Server, show func(float64, ...string)) { show(float64(s.calls.underWay())) })
	m.gauge("caisson_client_sessions", "Sessions of the protocol that HTTP and SSE clients have begun and not ended.", func(s *Server, show func(float64, ...string)) { show(float64(s.clientSessions())) })
	m.gauge("caisson_sessions", "Sandbox sessions by state: creating, running, stopped or lost.", func(s *Server, show func(float64, ...string)) {
		census := s.census()
		for _, state := range []sandbox.State{sandbox.StateCreating, sandbox.StateRunning, sandbox.StateStopped, sandbox.StateLost} {
			show(float64(census.Sessions[state]), string(state))
		}
	}, "state")
	m.gauge("caisson_principal_sessions", "Sandbox sessions by principal, as in caisson_principal_calls_total. A principal that has made no call since the server's start, and the containers of tools, count as other.", func(s *Server, show func(float64, ...string)) {
		for label, n := range s.sessionsByPrincipal() {
			show(float64(n), label)
		}
	}, "principal")
	m.gauge("caisson_execs_running", "Commands that run.", func(s *Server, show func(float64, ...string)) { show(float64(s.census().Execs)) })
	m.gauge("caisson_exec_records", "Commands that run, or whose output is kept.", func(s *Server, show func(float64, ...string)) { show(float64(s.census().Records)) })
	m.gauge("caisson_halted", "1 after an operator has stopped everything, until the server is started anew.", func(s *Server, show func(float64, ...string)) {
		if s.halted.Load() {
			show(1)
			return
		}
		show(0)
	})
}

func (s *Server) census() sandbox.Census {
	if s.manager == nil {
		return sandbox.Census{}
	}
	return s.manager.Census()
}

// sessionsByPrincipal brings the sessions' owners, of whom the manager knows
// hashes, together with the principals that have called.
func (s *Server) sessionsByPrincipal() map[string]int {
	by := map[string]int{}
	mine := sandbox.Owner{Name: s.owner}.Hash()
	for hash, n := range s.census().Owners {
		label := other
		if name, ok := s.owners.Load(hash); ok {
			label = name.(string)
		} else if hash == mine {
			label = noPrincipals
		}
		by[label] += n
	}
	return by
}

// clientSessions is how many client sessions there are over HTTP and SSE.
func (s *Server) clientSessions() int {
	if web := s.serving.Load(); web != nil {
		return web.streamable.count() + web.sse.count()
	}
	return 0
}
