package docker

import (
	"bytes"
	"context"
	"strings"

	"caisson/sandbox"
)

// contractCommands is what an image must provide (EXW-1).
var contractCommands = []string{"sh", "setsid", "mkfifo", "mv", "rm", "cat", "kill", "readlink", "ls", "sleep"}

// contractRest is what it must provide beside commands, in the words of
// contractScript.
var contractRest = []string{"a sleep that takes a fractional time", "/proc", "a writable /tmp"}

// contractScript prints what is missing, one a line, and then a last word, so
// that a script that could not run to its end is not taken for one that found
// nothing. It looks where the wrapper looks.
const contractScript = `PATH=/usr/bin:/bin:/usr/sbin:/sbin
for c in "$@"; do command -v "$c" >/dev/null 2>&1 || echo "$c"; done
sleep 0.01 >/dev/null 2>&1 || echo "a sleep that takes a fractional time"
[ -r /proc/self/stat ] || echo "/proc"
(: >/tmp/.caisson-probe) 2>/dev/null || echo "a writable /tmp"
rm -f /tmp/.caisson-probe
echo checked`

// checkContract sees to it, once for each image, that it has what a session
// needs. A session that lacks something would fail at its first command, with
// less to say.
func (p *Provider) checkContract(ctx context.Context, s *Session) error {
	if p.images.contractHolds(s.info.ImageID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var out, discarded bytes.Buffer
	_, err := s.pipe(ctx, append([]string{"/bin/sh", "-c", contractScript, "sh"}, contractCommands...), nil, &out, &discarded)
	if err != nil {
		return s.idleFailure(ctx, err)
	}
	missing, whole := strings.CutSuffix(out.String(), "checked\n")
	switch lines := strings.Split(strings.TrimSpace(missing), "\n"); {
	case !whole:
		return s.idleFailure(ctx, imageUnusable("the image's /bin/sh cannot run the check of the image"))
	case lines[0] != "":
		return imageUnusable("the image lacks " + strings.Join(lines, ", ")).Because(missingFromImage(lines))
	}
	p.images.contractHeld(s.info.ImageID)
	return nil
}

// idleFailure tells an image whose process 1 ended at once from other failures of
// the check: the engine's init takes a command that is not there, and ends with it.
func (s *Session) idleFailure(ctx context.Context, err error) error {
	c, inspectErr := s.p.api.ContainerInspect(ctx, s.containerID)
	if inspectErr != nil || c.State == nil || c.State.Running {
		return err
	}
	if c.State.ExitCode == 126 || c.State.ExitCode == 127 {
		return imageUnusable("the image has no sleep that an unprivileged user may run, with which a session idles").Because(err)
	}
	return imageUnusable("the image's container ends as soon as it is started").Because(err)
}

func imageUnusable(text string) *sandbox.Error {
	e := sandbox.Errorf("create session", sandbox.KindImageUnusable, "%s", text)
	e.Field = "image"
	return e
}
