package mcp

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"caisson/sandbox"
)

// Metrics counts what the server, its manager and its provider do. It is made
// before them, since all three tell it, and shows what the server holds once
// there is one. It may be used concurrently.
//
// Every label has a bounded set of values. No metric has a handle, an image, an
// address or a word of a client's; a principal is named only when it is one of
// the operator's file.
type Metrics struct {
	registry *prometheus.Registry
	rows     []MetricRow
	server   atomic.Pointer[Server]

	calls         *prometheus.CounterVec
	callSeconds   *prometheus.HistogramVec
	callBytes     *prometheus.CounterVec
	byPrincipal   *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	auditFailures prometheus.Counter

	made         *prometheus.HistogramVec
	ended        *prometheus.CounterVec
	execs        *prometheus.CounterVec
	execSeconds  *prometheus.HistogramVec
	execBytes    *prometheus.CounterVec
	engineErrors *prometheus.CounterVec
	probes       *prometheus.HistogramVec

	tools      closedSet
	principals closedSet
}

// MetricRow is one metric as the documentation shows it.
type MetricRow struct {
	Name   string
	Kind   string // counter, gauge or histogram
	Labels []string
	Help   string
}

var _ sandbox.Observer = (*Metrics)(nil)

// NewMetrics makes the metrics with a registry of their own. version is the
// program's.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		tools:    closedSet{limit: maxToolLabels}, principals: closedSet{limit: maxPrincipalLabels},
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.countCalls()
	m.countSandboxes()
	m.showServer(version)
	return m
}

// Handler serves /metrics on an address of its own, and nothing else. It asks no
// one for a token: it belongs where only the operator reaches it. What a browser
// sends for a page is refused, and so is a name that somebody else's page could
// have pointed at this machine.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	page := m.page()
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		rebound := local != nil && isLoopback(hostName(local.String())) && !isLoopback(hostName(r.Host))
		if rebound || r.Header.Get("Origin") != "" {
			writeStatus(rw, http.StatusForbidden, "forbidden")
			return
		}
		page.ServeHTTP(rw, r)
	})
	return mux
}

// page shows the metrics in the text format.
func (m *Metrics) page() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Rows lists the metrics of ours, in the order of their declaration.
func (m *Metrics) Rows() []MetricRow { return m.rows }

const (
	maxToolLabels      = 300 // a toolkit's server names its tools itself
	maxPrincipalLabels = 200
	// other stands for what is not named in a label.
	other = "other"
	// noPrincipals stands in the label principal where the server has none.
	noPrincipals = "none"
)

// closedSet bounds the values of a label: those that come first are shown, all
// others are other.
type closedSet struct {
	limit int

	mu   sync.Mutex
	seen map[string]struct{}
}

func (c *closedSet) of(value string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[value]; ok {
		return value
	}
	if len(c.seen) >= c.limit {
		return other
	}
	if c.seen == nil {
		c.seen = map[string]struct{}{}
	}
	c.seen[value] = struct{}{}
	return value
}

func (m *Metrics) row(name, kind, help string, labels []string) {
	m.rows = append(m.rows, MetricRow{name, kind, labels, help})
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	m.row(name, "counter", help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m.row(name, "histogram", help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// gauge is read when the metrics are: read calls show for every value there is.
func (m *Metrics) gauge(name, help string, read func(s *Server, show func(value float64, labels ...string)), labels ...string) {
	m.row(name, "gauge", help, labels)
	m.registry.MustRegister(&gauge{m: m, desc: prometheus.NewDesc(name, help, labels, nil), read: read})
}

type gauge struct {
	m    *Metrics
	desc *prometheus.Desc
	read func(s *Server, show func(value float64, labels ...string))
}

// Describe tells the registry what there is.
func (g *gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect reads the values. Before there is a server there are none.
func (g *gauge) Collect(out chan<- prometheus.Metric) {
	if s := g.m.server.Load(); s != nil {
		g.read(s, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
		})
	}
}

// word is a name as a label has it.
func word(s string) string { return strings.ReplaceAll(s, " ", "_") }
