package docker

import (
	"bytes"
	"context"
	_ "embed" // for the scripts
	"io"
	"time"

	"caisson/sandbox"
)

//go:embed filescript_base.sh
var fileBase string

//go:embed filescript_walk.sh
var fileWalk string

//go:embed filescript_make.sh
var fileMake string

//go:embed filescript_write.sh
var fileWriteBody string

//go:embed filescript_stage.sh
var fileStageBody string

//go:embed filescript_read.sh
var fileReadBody string

//go:embed filescript_list.sh
var fileListBody string

//go:embed filescript_extract.sh
var fileExtractBody string

func writeScript() string   { return fileBase + fileWalk + fileMake + fileWriteBody }
func stageScript() string   { return fileBase + fileStageBody }
func readScript() string    { return fileBase + fileWalk + fileReadBody }
func listScript() string    { return fileBase + fileWalk + fileListBody }
func extractScript() string { return fileBase + fileWalk + fileMake + fileExtractBody }

// fileArgv is a script's argv. The paths among args are seen in the session's
// process list; contents never are.
func fileArgv(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "caisson-files"}, args...)
}

const (
	reportMax = 256 << 10 // of a script that prints a report alone
	wordsMax  = 16 << 10  // of stderr
)

// bounded keeps the first max bytes written to it and drops the rest.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom knows no bound
	max  int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.kept.Len(); room > 0 {
		b.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *bounded) String() string { return b.kept.String() }

// command runs a script that prints a report alone and returns it.
func (t fileTools) command(ctx context.Context, op, script string, args []string, stdin io.Reader) (string, error) {
	out, words := bounded{max: reportMax}, bounded{max: wordsMax}
	code, err := t.run.pipe(ctx, fileArgv(script, args...), stdin, &out, &words)
	if err != nil {
		return "", err
	}
	if report := out.String(); code == 0 && isWhole(report) {
		return report, nil
	}
	return "", scriptFailure(op, out.String(), words.String(), code)
}

// isWhole says whether a report has its last line.
func isWhole(report string) bool {
	return report == "OK\n" || len(report) > 4 && report[len(report)-4:] == "\nOK\n"
}

// holdOpen is the stdin of a script that waits, after its output, until the
// whole of it has arrived: the engine cuts the stream of a process that has
// ended after about 2 s (D27). It ends when release is called. Until then it
// gives a blank now and then, which makes a connection that is gone known.
type holdOpen struct{ released chan struct{} }

const heartbeat = 250 * time.Millisecond

func newHoldOpen() *holdOpen { return &holdOpen{make(chan struct{})} }

// release lets the script end. Only the goroutine that reads its output may call it.
func (h *holdOpen) release() {
	select {
	case <-h.released:
	default:
		close(h.released)
	}
}

// Read blocks for a heartbeat at most.
func (h *holdOpen) Read(p []byte) (int, error) {
	select {
	case <-h.released:
		return 0, io.EOF
	case <-time.After(heartbeat):
		p[0] = ' '
		return 1, nil
	}
}

// errCut is for an output that has no end.
func errCut(op string) *sandbox.Error {
	return sandbox.Errorf(op, sandbox.KindUnavailable, "the engine's stream ended before all had arrived; try again, or with smaller pieces")
}
