package docker

import (
	"strings"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// refusals are the engine's reasons against a create or a start that a caller
// can do something about. All of words must be in its message.
var refusals = []struct {
	words []string
	kind  sandbox.Kind
	field string
	text  string // empty: the engine's own words
}{
	{[]string{"Range of CPUs is"}, sandbox.KindRejected, "cpu", ""},
	{[]string{"NanoCPUs can not be set"}, sandbox.KindRejected, "cpu", "the engine cannot enforce a cap on the CPU"},
	{[]string{"Minimum memory limit"}, sandbox.KindRejected, "memory_mb", ""},
	{[]string{"unknown runtime specified"}, sandbox.KindRejected, "runtime", "the engine does not have the OCI runtime that this server is set to"},
	{[]string{"unknown or invalid runtime name"}, sandbox.KindRejected, "runtime", "the engine does not have the OCI runtime that this server is set to"},
	{[]string{"No such image"}, sandbox.KindImageNotFound, "", "the image is gone from the engine"},
	{[]string{"docker-init"}, sandbox.KindNotSupported, "", "the engine has no init (docker-init), which a session needs"},
	{[]string{"seccomp", "not supported"}, sandbox.KindNotSupported, "", "the engine cannot filter system calls (seccomp), which a session needs"},
	{[]string{"exec format error"}, sandbox.KindImageUnusable, "image", "the image is built for another kind of processor than the engine's"},
	{[]string{"sleep", "executable file not found"}, sandbox.KindImageUnusable, "image", "the image has no sleep, which a session needs"},
	{[]string{"sleep", "no such file or directory"}, sandbox.KindImageUnusable, "image", "the image has no sleep, which a session needs"},
	{[]string{"sleep", "permission denied"}, sandbox.KindImageUnusable, "image", "the image's sleep cannot be run by an unprivileged user"},
	{[]string{"no available IPv4 addresses"}, sandbox.KindCapacity, "network", "the engine's network has no address left"},
	{[]string{"address pool"}, sandbox.KindCapacity, "network", "the engine has no addresses left for a network"},
	{[]string{"no space left on device"}, sandbox.KindNoSpace, "", "the engine's disk is full"},
	{[]string{"is already in use by container"}, sandbox.KindBusy, "", "the engine has a container of that name"},
}

// createFailed maps an engine's refusal of a create.
func (p *Provider) createFailed(err error) error {
	if err == nil {
		return nil
	}
	const op = "create session"
	for _, r := range refusals {
		if !mentions(err.Error(), r.words) {
			continue
		}
		text := r.text
		if text == "" {
			text = "the engine says: " + oneLine(afterColon(err.Error()), 200)
		}
		e := sandbox.Errorf(op, r.kind, "%s", text).Because(err)
		e.Field = r.field
		return e
	}
	if errdefs.IsNotFound(err) {
		return sandbox.Errorf(op, sandbox.KindUnavailable, "something that the session needs was removed from the engine meanwhile").Because(err)
	}
	return p.failed(op, err)
}

// startFailed maps an engine's refusal of a start.
func (p *Provider) startFailed(err error) error { return p.createFailed(err) }

// mentions says whether the message has all the words, in any case: engines
// differ in theirs.
func mentions(message string, words []string) bool {
	message = strings.ToLower(message)
	for _, w := range words {
		if !strings.Contains(message, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

// readWarnings judges the engine's warnings about a create. A cap that was
// dropped refuses the session; swap that is not counted is told (D34).
func readWarnings(warnings []string) ([]sandbox.Note, error) {
	var notes []sandbox.Note
	for _, w := range warnings {
		lower := strings.ToLower(w)
		switch {
		case strings.Contains(lower, "swap"):
			notes = append(notes, sandbox.Note{Code: "swap_not_limited", Text: "the engine's kernel does not count swap: the memory cap holds for memory, and swap comes on top"})
		case strings.Contains(lower, "memory"):
			return nil, dropped("memory_mb", w)
		case strings.Contains(lower, "cpu"):
			return nil, dropped("cpu", w)
		case strings.Contains(lower, "pids"):
			return nil, dropped("pids", w)
		default:
			notes = append(notes, sandbox.Note{Code: "engine_warning", Text: "the engine warns: " + oneLine(w, 200)})
		}
	}
	return notes, nil
}

func dropped(field, warning string) error {
	return sandbox.Rejected(field, "the engine would drop this cap: %s", oneLine(warning, 200))
}

func droppedNote(names []string) sandbox.Note {
	return sandbox.Note{Code: "image_env_dropped", Text: "these environment variables of the image run code in every shell or program and were left out: " + oneLine(strings.Join(names, ", "), 400)}
}
