package docker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// dialFailed is nc's status when it was refused or not answered in time.
const dialFailed = 1

// probeReport is what probe.sh said.
type probeReport struct {
	dials    map[string]probeDial
	self     probeDial
	resolver string
	answered bool   // the resolver answered, whatever its answer but that it failed
	words    string // the resolver's last words
}

type probeDial struct {
	code int
	took time.Duration
}

// readProbe reads a report strictly: what is not as the script writes it decides nothing.
func readProbe(report string, sum int) (probeReport, error) {
	r := probeReport{dials: map[string]probeDial{}, self: probeDial{code: -1}}
	ended := false
	for line := range strings.Lines(report) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number != strconv.Itoa(sum) {
			continue
		}
		word, rest, _ := strings.Cut(rest, " ")
		switch word {
		case "lacks":
			return r, sandbox.Errorf("prove the egress firewall", sandbox.KindImageUnusable, "the probe's image has no %q; set SANDBOX_DOCKER_READINESS_PROBE_IMAGE to one with nc, nslookup, timeout and sleep, such as busybox", oneLine(rest, 40))
		case "dial":
			target, rest, _ := strings.Cut(rest, " ")
			d, ok := readDial(rest)
			if !ok {
				return r, &undecidedError{"a dial's report is not as it should be"}
			}
			r.dials[target] = d
		case "self":
			if d, ok := readDial(rest); ok {
				r.self = d
			}
		case "resolver":
			r.resolver = oneLine(rest, 60)
		case "dns":
			r.hear(rest)
		case "end":
			ended = true
		}
	}
	if !ended {
		return r, &undecidedError{"the probe did not come to its end"}
	}
	return r, nil
}

// readDial reads a status and two times of /proc/uptime.
func readDial(text string) (probeDial, bool) {
	var d probeDial
	var began, ended float64
	n, err := fmt.Sscanf(text, "%d %g %g", &d.code, &began, &ended)
	d.took = time.Duration((ended - began) * float64(time.Second))
	return d, err == nil && n == 3 && d.took >= 0
}

// hear takes a line of nslookup. Its heading repeats the question; an answer, also that
// there is no such name, comes behind it.
func (r *probeReport) hear(line string) {
	line = oneLine(line, 120)
	if line == "" || strings.HasPrefix(line, "Server:") || strings.HasPrefix(line, "Address:") {
		return
	}
	r.words = line
	for _, code := range []string{"NXDOMAIN", "REFUSED", "No answer", "NOTIMP", "FORMERR", "Name:"} {
		if strings.Contains(line, code) && !strings.Contains(line, "onnection refused") {
			r.answered = true
		}
	}
}
