package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// target is the most that a median may be.
type target struct {
	ratio float64       // to the engine's own
	time  time.Duration // or as it is
}

// targets are by what is done, and the way.
var targets = map[string]map[string]target{
	create:   {viaStdio: {ratio: 1.25}, viaHTTP: {ratio: 1.25}},
	noop:     {viaWrapper: {ratio: 1.5}, viaStdio: {ratio: 1.6}, viaHTTP: {ratio: 1.6}},
	stop:     {viaStdio: {ratio: 2}, viaHTTP: {ratio: 2}},
	crowded:  {viaStdio: {time: 2 * time.Second}, viaHTTP: {time: 2 * time.Second}},
	warmTool: {viaStdio: {ratio: 1.3}, viaHTTP: {ratio: 1.3}}, // to our exec's
}

// page is the result in Markdown.
func (b *bench) page() string {
	var p strings.Builder
	p.WriteString("# What Caisson costs on top of the engine\n\nWritten by `make bench`; run it for the figures of your own machine.\n\n")
	fmt.Fprintf(&p, "Engine %s over mTLS on the same machine, %d cores, %d samples of each create and of stops beside 2,000 processes and %d of everything\n"+
		"else, taken in turns: the engine's own call with the same host configuration, then the same through Caisson over stdio and over Streamable HTTP,\n"+
		"one call at a time. The machine's load average was %s before and %s after. Times are in milliseconds; the ratio is of the medians, to the engine's own.\n\n",
		b.engine, runtime.NumCPU(), len(b.samples[create][viaEngine]), len(b.samples[noop][viaEngine]), b.loads[0], b.loads[1])
	p.WriteString("| what | way | p50 | p99 | ratio | target |\n| --- | --- | ---: | ---: | ---: | --- |\n")
	for _, what := range []string{create, noop, stop, crowded, upload, download, small, warmTool} {
		for _, way := range []string{viaEngine, viaWrapper, viaStdio, viaHTTP} {
			if samples := b.samples[what][way]; len(samples) > 0 {
				p50 := percentile(samples, 50)
				ratio := float64(p50) / float64(percentile(b.base(what, way), 50))
				fmt.Fprintf(&p, "| %s | %s | %s | %s | %.2f | %s |\n", what, way, ms(p50), ms(percentile(samples, 99)), ratio, verdict(targets[what][way], p50, ratio))
			}
		}
	}
	p.WriteString(remarks)
	return p.String()
}

// base is what a thing is measured against.
func (b *bench) base(what, way string) []time.Duration {
	switch own := b.samples[what][viaEngine]; {
	case what == warmTool:
		return b.samples[small][way]
	case len(own) == 0:
		return b.samples[noop][viaEngine] // the engine has no stop: a command is the least that one could be
	default:
		return own
	}
}

const remarks = `
The engine's own file calls are its archive calls, which work as root and see no other mounts; Caisson's are commands of the session's user
inside the session, and every upload is verified. An exec of ours runs in a wrapper that keeps its process group and its exit code apart from the engine's;
"wrapper" is that alone, the engine's own calls around it. The engine cannot stop a command of its own accord: a stop is a command, and its ratio is
to the engine's time for ` + "`true`" + `. It has ended the command's group, learnt its status and looked through all processes for who still holds the
output, for which it has 2 s. A tool of the manifest runs in a container with half a CPU, so that its ratio is to an exec of ours, by the same way, in a
session with the limits of a tool's container; the first call, which makes the container, is not among them.
`

func verdict(t target, p50 time.Duration, ratio float64) string {
	var text string
	var met bool
	switch {
	case t.ratio > 0:
		text, met = fmt.Sprintf("≤ %.2f", t.ratio), ratio <= t.ratio
	case t.time > 0:
		text, met = fmt.Sprintf("≤ %s ms", ms(t.time)), p50 <= t.time
	default:
		return ""
	}
	if !met {
		return text + ", **missed**"
	}
	return text + ", met"
}

// load is the machine's load average over a minute.
func load() (string, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first, nil
}

// percentile is the smallest sample that at least that share is not above.
func percentile(samples []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(share/100*float64(len(sorted))))-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
