package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// targets are the most that a median may be, over the engine's own.
var targets = map[string]float64{create: 1.25, noop: 1.6}

// page is the result in Markdown.
func (b *bench) page() string {
	var p strings.Builder
	p.WriteString("# What Caisson costs on top of the engine\n\nWritten by `make bench`; run it for the figures of your own machine.\n\n")
	fmt.Fprintf(&p, "Engine %s over mTLS on the same machine, %d cores, %d samples of each create and %d of everything else, taken in turns: the engine's own\n"+
		"call with the same host configuration, then the same through Caisson over stdio and over Streamable HTTP, one call at a time.\n"+
		"Times are in milliseconds; the ratio is of the medians, to the engine's own.\n\n",
		b.engine, runtime.NumCPU(), len(b.samples[create][viaEngine]), len(b.samples[noop][viaEngine]))
	p.WriteString("| what | way | p50 | p99 | ratio | target |\n| --- | --- | ---: | ---: | ---: | --- |\n")
	for _, what := range []string{create, noop, upload, download} {
		base := percentile(b.samples[what][viaEngine], 50)
		for _, way := range []string{viaEngine, viaStdio, viaHTTP} {
			if samples := b.samples[what][way]; len(samples) > 0 {
				ratio := float64(percentile(samples, 50)) / float64(base)
				fmt.Fprintf(&p, "| %s | %s | %s | %s | %.2f | %s |\n", what, way, ms(percentile(samples, 50)), ms(percentile(samples, 99)), ratio, verdict(what, way, ratio))
			}
		}
	}
	p.WriteString("\nThe engine's own file calls are its archive calls, which work as root and see no other mounts; Caisson's are commands of the session's user\n" +
		"inside the session, and every upload is verified. An exec of ours runs in a wrapper that keeps its process group and its exit code apart from the engine's.\n")
	return p.String()
}

func verdict(what, way string, ratio float64) string {
	target, ok := targets[what]
	switch {
	case !ok || way == viaEngine:
		return ""
	case ratio <= target:
		return fmt.Sprintf("≤ %.2f, met", target)
	default:
		return fmt.Sprintf("≤ %.2f, **missed**", target)
	}
}

// percentile is the smallest sample that at least that share is not above.
func percentile(samples []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(share/100*float64(len(sorted))))-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
