package wrapper

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkEXW_Cost compares a command under the wrapper with the same one without: the
// medians, and the processor time that a command takes with all its helpers.
func BenchmarkEXW_Cost(b *testing.B) {
	for _, sh := range shells {
		b.Run(sh.name, func(b *testing.B) {
			box := newBox(b, sh.name)
			var bare, wrapped, bareCPU, wrappedCPU []time.Duration
			for b.Loop() {
				began := time.Now()
				cmd := box.command("/usr/bin/true")
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, time.Since(began))
				bareCPU = append(bareCPU, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
				w := box.run("/usr/bin/true")
				if w.code != 0 {
					b.Fatal(w.code)
				}
				wrapped = append(wrapped, w.took)
				wrappedCPU = append(wrappedCPU, w.cmd.ProcessState.UserTime()+w.cmd.ProcessState.SystemTime())
			}
			b.ReportMetric(median(bare), "bare-ms")
			b.ReportMetric(median(wrapped), "wrapped-ms")
			b.ReportMetric(median(bareCPU), "bare-cpu-ms")
			b.ReportMetric(median(wrappedCPU), "wrapped-cpu-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
